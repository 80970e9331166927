"""The parts of a tree: buffers, nodes, and a helper that places nodes side by side.

Laws: the children of a node tile it (the first starts where it starts, each starts where the previous one ends, the last ends
where it ends), or are one node over a separate buffer. Children are made on request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from kcap.decode.json import uuid_text
from kcap.decode.value_words import words
from kcap.faults import fault_of
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError, read_varint, read_varlong

Expand = Callable[[], Sequence["Node"]]

UNDECODED: Final = "undecoded"
"""Name of the node that holds bytes that could not be read."""
BEHIND: Final = "bytes behind the message"
"""Text of that node if the message was read completely and bytes are left."""


@dataclass(slots=True)
class Buffer:
    """Bytes that nodes point into. `parent` and a span in it are the source of the bytes; the frame has no parent."""

    data: bytes
    parent: int = -1
    start: int = 0
    end: int = 0
    how: str = "frame"
    """`frame`, or how the bytes were made from the parent's: `gzip`, `zstd`, ..."""


class Buffers:
    """The buffers of one tree. Number 0 is the frame; each decompression opens a new one."""

    __slots__ = ("_opened", "entries")

    def __init__(self, frame: bytes) -> None:
        self.entries = [Buffer(frame)]
        self._opened: dict[tuple[int, int, int], int] = {}

    def __getitem__(self, number: int) -> bytes:
        return self.entries[number].data

    def open(self, data: bytes, parent: int, start: int, end: int, how: str) -> int:
        """Returns the number of the buffer made from `parent[start:end]`; it is the same number for the same span."""
        place = (parent, start, end)
        if place not in self._opened:
            self._opened[place] = len(self.entries)
            self.entries.append(Buffer(data, parent, start, end, how))
        return self._opened[place]


@dataclass(slots=True)
class Node:
    """A named span of a buffer, with its value and meaning."""

    name: str
    value: Any
    """Number, text (also for a uuid), bytes or None; None too for a node that only has children."""
    words: str
    buffers: Buffers = field(repr=False)
    buffer: int
    start: int
    end: int
    expand: Expand | None = field(default=None, repr=False)
    _children: tuple["Node", ...] | None = field(default=None, repr=False)

    @property
    def children(self) -> tuple["Node", ...]:
        """The nodes inside, made on first use."""
        if self._children is None:
            try:
                self._children = tuple(self.expand()) if self.expand else ()
            except Exception as error:  # noqa: BLE001 - the node has the reason; the others remain
                where = self.buffers, self.buffer, self.start, self.end
                self._children = (Node(UNDECODED, self.data, fault_of(error), *where),)
            self.expand = None
        return self._children

    @property
    def data(self) -> bytes:
        return self.buffers[self.buffer][self.start : self.end]

    def find(self, *names: str) -> "Node | None":
        """The first node along a path of names; None if there is none."""
        node: Node | None = self
        for name in names:
            node = next((child for child in node.children if child.name == name), None) if node else None
        return node


class Tiler:
    """Places nodes side by side over `buffer[start:end]`."""

    __slots__ = ("buffer", "buffers", "cursor", "first", "nodes", "topic")

    def __init__(self, buffers: Buffers, buffer: int, start: int, end: int, topic: str = "") -> None:
        self.first = start
        self.buffers = buffers
        self.buffer = buffer
        self.cursor = Cursor(buffers[buffer], start, end)
        self.nodes: list[Node] = []
        self.topic = topic
        """Name or id of the topic that the span is about, as far as it is known."""

    def add(self, name: str, start: int, value: Any = None, said: str = "", expand: Expand | None = None) -> Node:
        """Adds a node from `start` to the cursor."""
        node = Node(name, value, said, self.buffers, self.buffer, start, self.cursor.position, expand)
        self.nodes.append(node)
        return node

    def fixed(self, name: str, form: Struct, kind: str = "", key: str = "", message: str = "") -> Any:
        """Adds a node of one fixed-size value. Its text depends on the message and on the field name `key`, if that differs
        from `name`.
        """
        start = self.cursor.position
        (value,) = self.cursor.read(form)
        if kind == "uuid":
            value = uuid_text(value)
        self.add(name, start, value, words(key or name, kind, value, message))
        return value

    def uvarint(self, name: str) -> int:
        """Adds a node of one unsigned varint."""
        start = self.cursor.position
        value = self.cursor.read_uvarint()
        self.add(name, start, value, str(value))
        return value

    def varint(self, name: str, *, long: bool = False) -> int:
        """Adds a node of one zigzag varint."""
        cursor = self.cursor
        start = cursor.position
        value, cursor.position = (read_varlong if long else read_varint)(cursor.buffer, start, cursor.end)
        self.add(name, start, value, str(value))
        return value

    def rest(self, reason: str, *, always: bool = False) -> None:
        """Adds the remaining bytes as a node that says why they were not read; with `always`, even if there are none."""
        start = self.cursor.position
        if start < self.cursor.end or always:
            self.cursor.position = self.cursor.end
            self.add(UNDECODED, start, bytes(self.cursor.buffer[start : self.cursor.end]), reason)

    def finish(self, build: Callable[["Tiler"], None], behind: str = "bytes behind the last field") -> list[Node]:
        """Runs `build`, which adds nodes until it is done or until damage stops it. The nodes always tile the span."""
        try:
            build(self)
        except DamageError as damage:
            # No reason is needed, because the previous node gives it. The nodes may end before the cursor, inside a value that
            # was begun.
            self.cursor.position = self.nodes[-1].end if self.nodes else self.first
            self.rest(damage.reason, always=bool(damage.reason))
        except Exception as error:  # noqa: BLE001 - earlier nodes remain, and the last one has the reason
            self.cursor.position = self.nodes[-1].end if self.nodes else self.first
            self.rest(fault_of(error), always=True)
        else:
            self.rest(behind)
        return self.nodes
