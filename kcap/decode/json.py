"""Canonical JSON: a plan and a body in, the values that Kafka's own `*DataJsonConverter` writes out.

Law: equal to `<Name>DataJsonConverter.write(message, version, true)` of Kafka 4.4 except for the order of keys, and with the
raw bytes in records fields. Nothing raises, and everything before damage in a body is retained.
"""

import math
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kcap.decode import opcodes
from kcap.decode.plan import Label, Plan
from kcap.faults import fault_of
from kcap.model import Buffer
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError

Records = Literal["base64", "size", "bytes"]
"""How a records field is represented: its bytes, in base64 or raw, or `recordsSizeInBytes` as in the broker's request log."""

UNPACKED: Final = frozenset({opcodes.FIXED, opcodes.INT, opcodes.ERROR, opcodes.TOPIC_ID})
STRINGS: Final = {
    opcodes.STRING: False,
    opcodes.TOPIC_NAME: False,
    opcodes.COMPACT_STRING: True,
    opcodes.COMPACT_TOPIC_NAME: True,
}
BYTES: Final = {opcodes.BYTES: False, opcodes.RECORDS: False, opcodes.COMPACT_BYTES: True, opcodes.COMPACT_RECORDS: True}
RECORDS: Final = frozenset({opcodes.RECORDS, opcodes.COMPACT_RECORDS})
ARRAYS: Final = {opcodes.ARRAY: False, opcodes.PARTITIONS: False, opcodes.COMPACT_ARRAY: True, opcodes.COMPACT_PARTITIONS: True}


@dataclass(slots=True)
class JsonReading:
    """The values read from a body."""

    value: dict[str, Any] = field(default_factory=dict)
    unknown_tags: list[tuple[int, bytes]] = field(default_factory=list)
    """Tagged fields of the outermost struct that the schema does not know."""
    position: int = 0
    """Offset at which reading ended."""
    undecoded: str | None = None
    """Why the rest could not be read; None if all was."""


def base64(data: bytes) -> str:
    """Base64 with padding, the form of bytes in JSON."""
    return b2a_base64(data, newline=False).decode()


def uuid_text(data: bytes) -> str:
    """Kafka's form of a uuid: URL-safe base64 without padding, 22 characters (Uuid.toString)."""
    return base64(data).rstrip("=").replace("+", "-").replace("/", "_")


def float_value(value: float) -> float | str:
    """A float64 in JSON: a number, or the name of a value that JSON cannot represent as a number."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {"uuid": uuid_text, "float64": float_value}
"""Conversions of unpacked values that are not yet the JSON value, by type."""


class JsonReader:
    """Applies the rows of one plan to one body."""

    def __init__(self, plan: Plan, cursor: Cursor, records: Records) -> None:
        self.rows = plan.rows
        self.labels = plan.labels
        self.cursor = cursor
        self.records = records
        self.reading = JsonReading()

    def fields(self, pc: int, stop: int, out: dict[Any, Any]) -> None:
        """Reads the fields of rows `pc` up to `stop` into `out`."""
        while pc < stop:
            pc = self.row(pc, out)

    def row(self, pc: int, out: dict[Any, Any]) -> int:
        """Reads the field or fields of one row into `out`; returns the row after them."""
        op, a, _, _ = self.rows[pc]
        label = self.labels[pc]
        if op in UNPACKED:
            self.unpacked(label, out)
            return pc + 1
        if op == opcodes.TAGS:
            return self.tags(pc, out)
        key = label.keys[0]
        compact = STRINGS.get(op)
        if compact is not None:
            out[key] = self.cursor.read_string(compact=compact)
            return pc + 1
        compact = BYTES.get(op)
        if compact is not None:
            self.bytes_field(op, key, compact, out)
            return pc + 1
        compact = ARRAYS.get(op)
        if compact is not None:
            self.array(pc, out, key, compact)
        elif (op == opcodes.NULLABLE and self.cursor.read_int8() < 0) or (
            op == opcodes.NULLABLE_TAGGED and self.cursor.read_uvarint() == 0
        ):
            out[key] = None
        else:
            inner: dict[Any, Any] = {}
            out[key] = inner
            self.fields(pc + 1, a, inner)
        return a

    def unpacked(self, label: Label, out: dict[Any, Any]) -> None:
        cursor = self.cursor
        assert label.unpack is not None
        if label.unpack.size <= cursor.left or len(label.keys) == 1:
            values = cursor.read(label.unpack)
            for key, kind, value in zip(label.keys, label.types, values, strict=True):
                convert = _CONVERT.get(kind)
                out[key] = convert(value) if convert else value
            return
        for name, key, kind in zip(label.names, label.keys, label.types, strict=True):
            self.unpacked(single(name, key, kind), out)

    def bytes_field(self, op: int, key: str, compact: bool, out: dict[Any, Any]) -> None:
        start, end = self.cursor.read_span(compact=compact, width=4)
        if start < 0:
            out[key] = None
        elif op in RECORDS and self.records == "size":
            out[f"{key}SizeInBytes"] = end - start
        else:
            data = bytes(self.cursor.buffer[start:end])
            out[key] = data if op in RECORDS and self.records == "bytes" else base64(data)

    def array(self, pc: int, out: dict[Any, Any], key: str, compact: bool) -> None:
        _, exit_row, _, size = self.rows[pc]
        cursor = self.cursor
        count = cursor.read_size(compact=compact, width=4)
        if count < 0:
            out[key] = None
            return
        items: list[Any] = []
        out[key] = items
        label = self.labels[pc]
        kind = label.types[0][2:]
        body, loop = pc + 1, exit_row - 1
        if (size >= 0 and size * count > cursor.left) or (size == 0 and count > cursor.left):
            count = cursor.left // size if size else 0
            self.elements(items, kind, body, loop, count)
            raise DamageError(f"{label.names[0]} has more elements than the body has bytes")
        self.elements(items, kind, body, loop, count)

    def elements(self, items: list[Any], kind: str, body: int, loop: int, count: int) -> None:
        if kind in ("string", "bytes"):
            holder: dict[Any, Any] = {}
            for _ in range(count):
                self.row(body, holder)
                items.append(holder[""])
        elif loop < body:
            label = single("", "", kind)
            holder = {}
            for _ in range(count):
                self.unpacked(label, holder)
                items.append(holder[""])
        else:
            for _ in range(count):
                element: dict[Any, Any] = {}
                items.append(element)
                self.fields(body, loop, element)

    def tags(self, pc: int, out: dict[Any, Any]) -> int:
        exit_row = self.rows[pc][1]
        cursor = self.cursor
        count = cursor.read_uvarint()
        outermost = self.rows[exit_row][0] == opcodes.END
        cases = {self.rows[at][1]: at for at in range(pc + 2, pc + 2 + self.rows[pc + 1][3])}
        for _ in range(count):
            tag = cursor.read_uvarint()
            size = cursor.read_uvarint()
            case = cases.get(tag)
            if case is None:
                data = cursor.read_bytes(size, f"tagged field {tag}")
                if outermost:
                    self.reading.unknown_tags.append((tag, data))
                continue
            end = cursor.position + size
            label = self.labels[case]
            key = label.keys[0]
            self.row(self.rows[case][2], out)
            if cursor.position != end:
                raise DamageError(f"{label.names[0]} does not fill its tagged field")
            if out.get(key) == label.default and type(out.get(key)) is type(label.default):
                del out[key]
        return exit_row


_SINGLES: dict[tuple[str, str, str], Label] = {}


def single(name: str, key: str, kind: str) -> Label:
    """The label of one field of a FIXED row."""
    found = _SINGLES.get((name, key, kind))
    if found is None:
        from struct import Struct

        from kcap.decode.plan import FORMATS

        found = _SINGLES[name, key, kind] = Label((name,), (key,), (kind,), Struct(">" + FORMATS[kind]))
    return found


def read_json(plan: Plan, buffer: Buffer, start: int = 0, records: Records = "base64") -> JsonReading:
    """Returns the body from `start` on as JSON values. `position` is where it ended; bytes after it are not read."""
    cursor = Cursor(buffer, start)
    reader = JsonReader(plan, cursor, records)
    try:
        reader.fields(0, len(plan.rows) - 1, reader.reading.value)
    except DamageError as damage:
        reader.reading.undecoded = damage.reason
    except Exception as error:  # noqa: BLE001 - the body counts as not readable, with the reason
        reader.reading.undecoded = fault_of(error)
    reader.reading.position = cursor.position
    return reader.reading
