"""A message as nodes with byte spans: frame, header and plan in, the root node out.

Laws (in addition to those of `kcap.decode.nodes`): length bytes belong to their string; array counts and tag sections are
separate nodes. The readable part of a damaged body is retained, and the rest is one `undecoded` node. Nothing raises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from kcap.decode import opcodes
from kcap.decode.embedded import blob_plan
from kcap.decode.interpreter import COMPLETE, TRAILING, State, run
from kcap.decode.json import ARRAYS, BYTES, RECORDS, STRINGS, UNPACKED, JsonReader, single
from kcap.decode.nodes import BEHIND, Buffers, Node, Tiler
from kcap.decode.plan import Label, Plan, Row
from kcap.decode.projection import end_of
from kcap.decode.value_words import words
from kcap.wire.cursor import Cursor
from kcap.wire.text import decode_text
from kcap.wire.varints import DamageError, short_of

if TYPE_CHECKING:
    from kcap.decode.header import Header


@dataclass(frozen=True, slots=True)
class Inside:
    """The bytes of a field that holds something to decode, and what is known from the fields before it."""

    buffers: Buffers
    buffer: int
    start: int
    end: int
    topic: str = ""
    """Name or id of the topic; empty if none was given."""
    before: Sequence[Node] = ()
    """The fields before it in its struct."""

    @property
    def data(self) -> bytes:
        return self.buffers[self.buffer][self.start : self.end]


HOLDERS: Final = frozenset(ARRAYS) | {opcodes.TAGS, opcodes.STRUCT, opcodes.NULLABLE, opcodes.NULLABLE_TAGGED}
"""Ops that contain other rows; their column `a` is the row after these."""
TOPICS: Final = frozenset({opcodes.TOPIC_NAME, opcodes.COMPACT_TOPIC_NAME})

OPENERS: Final[dict[str, Callable[[Inside], Sequence[Node]]]] = {}
"""Field type, or message and field (`EnvelopeRequest.RequestData`) -> function that makes the nodes of its bytes. Higher layers
fill it, since this layer has no access to record batches or whole messages.
"""


class _Body:
    """Makes the nodes of one plan over one buffer."""

    def __init__(self, plan: Plan, buffers: Buffers, buffer: int) -> None:
        self.plan = plan
        self.buffers = buffers
        self.buffer = buffer
        self._cut: dict[int, tuple[Row, ...]] = {}
        self._state = State()

    def _rows(self, stop: int) -> tuple[Row, ...]:
        """The program that ends at row `stop`."""
        rows = self._cut.get(stop)
        if rows is None:
            rows = self._cut[stop] = (*self.plan.rows[:stop], (opcodes.END, 0, 0, 0))
        return rows

    def stepped(self, pc: int, stop: int, cursor: Cursor) -> int | None:
        """Offset at which rows `pc` up to `stop` end, by the interpreter, which is ten times as fast as making nodes; None if
        damaged.
        """
        rows = self._rows(stop)
        state = self._state
        state.begin(0, pc, cursor.position)
        del state.topics[:]
        state.wrapped.clear()
        run(state, rows, self.buffers[self.buffer], cursor.end)
        return state.position if state.status in (COMPLETE, TRAILING) else None

    def tiler(self, start: int, end: int, topic: str = "") -> Tiler:
        return Tiler(self.buffers, self.buffer, start, end, topic)

    def fields(self, pc: int, stop: int, tiler: Tiler) -> None:
        """Adds the fields of rows `pc` up to `stop`. Raises DamageError."""
        while pc < stop:
            pc = self.row(pc, tiler)

    def struct(self, pc: int, stop: int, start: int, end: int, topic: str) -> list[Node]:
        return self.tiler(start, end, topic).finish(lambda tiler: self.fields(pc, stop, tiler))

    def measure(self, pc: int, tiler: Tiler) -> tuple[int, bool]:
        """Steps over what the row begins. Returns its end, and whether all of it can be read; if it is damaged, the end is that
        of the span.
        """
        cursor = tiler.cursor
        op, stop, _, _ = self.plan.rows[pc]
        end = None
        if op in HOLDERS:
            end = end_of(self.buffers[self.buffer], self._rows(stop), pc, cursor.position, cursor.end)
            end = self.stepped(pc, stop, cursor) if end is None else end
        if end is not None:
            return end, True
        ahead = Cursor(cursor.buffer, cursor.position, cursor.end)
        try:
            JsonReader(self.plan, ahead, "size").row(pc, {})
        except DamageError:
            return cursor.end, False
        return ahead.position, True

    def row(self, pc: int, tiler: Tiler, name: str = "") -> int:
        """Adds the node or nodes of one row; returns the row after them. Raises DamageError after a node that is damaged
        inside.
        """
        op, a, _, _ = self.plan.rows[pc]
        label = self.plan.labels[pc]
        if op in UNPACKED:
            self.unpacked(label, tiler, name)
            if op == opcodes.TOPIC_ID:
                tiler.topic = tiler.topic or str(tiler.nodes[-1].value)
            return pc + 1
        name = name or (label.names[0] if label.names else "tags")
        if op in STRINGS:
            self.string(name, STRINGS[op], tiler)
            if op in TOPICS:
                tiler.topic = str(tiler.nodes[-1].value or tiler.topic)
            return pc + 1
        if op in BYTES:
            self.bytes_field(name, op, tiler)
            return pc + 1
        start = tiler.cursor.position
        end, whole = self.measure(pc, tiler)
        if start == end and not whole:
            raise short_of(name, start)
        if op in ARRAYS:
            self.array(pc, name, start, end, tiler)
        elif op == opcodes.TAGS:
            tiler.cursor.position = end
            tiler.add(name, start, None, "", lambda: self.tags(pc, start, end))
        elif op == opcodes.STRUCT:
            tiler.cursor.position = end
            tiler.add(name, start, None, "", lambda: self.struct(pc + 1, a, start, end, tiler.topic))
        else:
            null = self.is_null(op, start, end)
            tiler.cursor.position = end
            said = "null" if null else ""
            tiler.add(name, start, None, said, lambda: self.nullable(pc, start, end))
        if not whole:
            raise DamageError("")
        return a

    def unpacked(self, label: Label, tiler: Tiler, name: str) -> None:
        for field, key, kind in zip(label.names, label.keys, label.types, strict=True):
            form = single(field, key, kind).unpack
            assert form is not None
            tiler.fixed(name or field, form, kind, field, self.plan.message)

    def string(self, name: str, compact: bool, tiler: Tiler) -> None:
        cursor = tiler.cursor
        start = cursor.position
        at, end = cursor.read_span(compact=compact, width=2, string=True)
        value = None if at < 0 else decode_text(bytes(cursor.buffer[at:end]))
        tiler.add(name, start, value, "null" if value is None else value)

    def bytes_field(self, name: str, op: int, tiler: Tiler) -> None:
        cursor = tiler.cursor
        start = cursor.position
        at, end = cursor.read_span(compact=BYTES[op], width=4)
        value = None if at < 0 else bytes(cursor.buffer[at:end])
        node = tiler.add(name, start, value, words(name, "bytes", value))
        if not value:
            return
        opener = OPENERS.get("records" if op in RECORDS else f"{self.plan.message}.{name}")
        inner = blob_plan(self.plan.message, name, value)
        if inner:
            node.words += f", {inner.message} v{inner.version}"
            opener = _Body(inner, self.buffers, self.buffer).blob
        if opener:
            inside = Inside(self.buffers, self.buffer, at, end, tiler.topic, tuple(tiler.nodes[:-1]))
            node.expand = partial(self.opened, opener, start, inside)

    def blob(self, inside: Inside) -> list[Node]:
        """Nodes of the version of a blob and of its fields, by this body's plan."""

        def build(tiler: Tiler) -> None:
            tiler.fixed("version", Struct(">h"))
            self.fields(0, len(self.plan.rows) - 1, tiler)

        return self.tiler(inside.start, inside.end).finish(build)

    def opened(self, opener: Callable[[Inside], Sequence[Node]], start: int, inside: Inside) -> list[Node]:
        """Nodes of the length of a bytes field, then of its contents."""
        size = inside.end - inside.start
        length = Node("length", size, str(size), self.buffers, self.buffer, start, inside.start)
        inner = opener(inside)
        return [length, *inner] if inner else []

    def is_null(self, op: int, start: int, end: int) -> bool:
        if start >= end:
            return False
        byte = self.buffers[self.buffer][start]
        return byte == 0 if op == opcodes.NULLABLE_TAGGED else byte > 127

    def nullable(self, pc: int, start: int, end: int) -> list[Node]:
        op, a, _, _ = self.plan.rows[pc]

        def build(tiler: Tiler) -> None:
            at = tiler.cursor.position
            marker = tiler.cursor.read_uvarint() if op == opcodes.NULLABLE_TAGGED else tiler.cursor.read_int8()
            tiler.add("present", at, marker, "null" if self.is_null(op, start, end) else "present")
            if not self.is_null(op, start, end):
                self.fields(pc + 1, a, tiler)

        return self.tiler(start, end).finish(build)

    # --- arrays ------------------------------------------------------------------------------------------------------
    def array(self, pc: int, name: str, start: int, end: int, tiler: Tiler) -> None:
        cursor = tiler.cursor
        count = cursor.read_size(compact=ARRAYS[self.plan.rows[pc][0]], width=4)
        cursor.position = end
        said = "null" if count < 0 else "1 entry" if count == 1 else f"{count} entries"
        tiler.add(name, start, None, said, lambda: self.elements(pc, start, end, tiler.topic))

    def elements(self, pc: int, start: int, end: int, topic: str) -> list[Node]:
        op, exit_row, _, _ = self.plan.rows[pc]
        kind = self.plan.labels[pc].types[0][2:]
        body, loop = pc + 1, exit_row - 1

        def build(tiler: Tiler) -> None:
            at = tiler.cursor.position
            count = tiler.cursor.read_size(compact=ARRAYS[op], width=4)
            tiler.add("count", at, count, "null" if count < 0 else str(count))
            if loop < body:
                label = single(self.plan.labels[pc].names[0], "", kind)
                for index in range(count):
                    self.unpacked(label, tiler, f"[{index}]")
            elif kind in ("string", "bytes"):
                for index in range(count):
                    self.row(body, tiler, f"[{index}]")
            else:
                for index in range(count):
                    self.element(body, loop, index, tiler)

        return self.tiler(start, end, topic).finish(build)

    def element(self, body: int, loop: int, index: int, tiler: Tiler) -> None:
        cursor = tiler.cursor
        start, whole = cursor.position, True
        stepped = self.stepped(body, loop, cursor)
        if stepped is None:
            ahead = Cursor(cursor.buffer, start, cursor.end)
            try:
                JsonReader(self.plan, ahead, "size").fields(body, loop, {})
            except DamageError:
                if start == cursor.end:
                    raise
                ahead.position, whole = cursor.end, False
            stepped = ahead.position
        end = cursor.position = stepped
        topic = tiler.topic
        tiler.add(f"[{index}]", start, None, "", lambda: self.struct(body, loop, start, end, topic))
        if not whole:
            raise DamageError("")

    # --- tags --------------------------------------------------------------------------------------------------------
    def tags(self, pc: int, start: int, end: int) -> list[Node]:
        rows, labels = self.plan.rows, self.plan.labels
        cases = {rows[at][1]: at for at in range(pc + 2, pc + 2 + rows[pc + 1][3])}

        def build(tiler: Tiler) -> None:
            for _ in range(tiler.uvarint("count")):
                self.tag({tag: (rows[at][2], labels[at].names[0]) for tag, at in cases.items()}, tiler)

        return self.tiler(start, end).finish(build)

    def tag(self, cases: dict[int, tuple[int, str]], tiler: Tiler) -> None:
        """Adds one tagged field: its number, its size, its value."""
        cursor = tiler.cursor
        start = cursor.position
        number = cursor.read_uvarint()
        size = cursor.read_uvarint()
        target, name = cases.get(number, (-1, f"tag {number}"))
        whole = size <= cursor.left
        end = cursor.position + size
        if whole and target >= 0:
            part = self.tiler(cursor.position, cursor.end)
            end, whole = self.measure(target, part)
            whole = whole and end == cursor.position + size
        if not whole:
            end = cursor.end
        value = bytes(cursor.buffer[cursor.position : end]) if target < 0 else None
        cursor.position = end

        def inside() -> list[Node]:
            def build(inner: Tiler) -> None:
                inner.uvarint("tag")
                inner.uvarint("size")
                if target >= 0:
                    full = inner.cursor.position + size
                    self.row(target, inner, name)
                    if inner.cursor.position != full:
                        raise DamageError(f"{name} does not fill its tagged field")
                    return
                at = inner.cursor.position
                data = inner.cursor.read_bytes(size, f"tagged field {number}")
                inner.add("data", at, data, words("", "bytes", data))

            return self.tiler(start, end).finish(build)

        tiler.add(name, start, value, "" if target >= 0 else words("", "bytes", value), inside)
        if not whole:
            raise DamageError("")


def body_nodes(plan: Plan, buffers: Buffers, buffer: int, start: int, end: int) -> list[Node]:
    """Nodes of the body of a message over `buffer[start:end]`; bytes after it are one `undecoded` node."""
    body = _Body(plan, buffers, buffer)
    return body.tiler(start, end).finish(lambda tiler: body.fields(0, len(plan.rows) - 1, tiler), BEHIND)


def message_tree(place: "Inside", name: str | None, header: "Header", plan: Plan | None, unknown: str | None) -> Node:
    """The root, with header and body of the frame at a place. `unknown` says why there is no plan."""
    buffers, buffer, start, size = place.buffers, place.buffer, place.start, place.end
    end = size if header.fault else start + header.end

    def header_nodes() -> list[Node]:
        def build(tiler: Tiler) -> None:
            for field, kind in header.fields:
                _header_field(field, kind, tiler)

        return Tiler(buffers, buffer, start, end).finish(build, header.fault or "bytes behind the header")

    def nodes() -> list[Node]:
        found = [Node("header", None, "", buffers, buffer, start, end, header_nodes)] if end > start else []
        if plan is None or header.fault:
            tiler = Tiler(buffers, buffer, end, size)
            tiler.rest(header.fault or unknown or "", always=size == start)
            return found + tiler.nodes
        body = partial(body_nodes, plan, buffers, buffer, end, size)
        found.append(Node("body", None, name or "", buffers, buffer, end, size, body))
        return found

    return Node(name or "message", None, unknown or "" if plan is None else "", buffers, buffer, start, size, nodes)


def _header_field(name: str, kind: str, tiler: Tiler) -> None:
    cursor = tiler.cursor
    start = cursor.position
    if kind == "tags":
        count = cursor.read_uvarint()
        for _ in range(count):
            cursor.read_uvarint()
            cursor.skip(cursor.read_uvarint(), "tagged field")
        tiler.add(name, start, count, "1 tag" if count == 1 else f"{count} tags")
    elif kind == "string":
        value = cursor.read_string()
        tiler.add(name, start, value, "null" if value is None else value)
    elif kind == "uvarint":
        tiler.uvarint(name)
    else:
        form = single(name, name, kind).unpack
        assert form is not None
        tiler.fixed(name, form, kind)
