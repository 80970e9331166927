"""Compiles message facts and a version into a flat program; only this module knows what a version means for the bytes.

A `Plan` has rows of small integers (`kcap.decode.opcodes`), and for each row a label with names for people. The tree, the
canonical JSON and the row projection all read by it. Law: the rows alone determine how many bytes each field takes; labels
never change where a reader goes.
"""

import functools
import struct
from dataclasses import dataclass
from typing import Any, Final

from kcap.decode import opcodes, slots
from kcap.limits import VERSION_PLANS_MAX
from kcap.schema import registry
from kcap.schema.facts import Field, MessageSpec, Variant, message, within
from kcap.schema.quirks import ERROR_SUFFIX

Row = tuple[int, int, int, int]

FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Fixed-size types and their `struct` formats, big-endian."""

SIZES: Final = {kind: struct.calcsize(">" + code) for kind, code in FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Label:
    """What people see of one row. A FIXED row has several fields, every other row one."""

    names: tuple[str, ...] = ()
    """Kafka's field names; empty for rows that only control the reader."""
    keys: tuple[str, ...] = ()
    """The names in Kafka's JSON, with the first letter in lower case."""
    types: tuple[str, ...] = ()
    """Kafka's types: `int32`, `string`, `[]Name`, ..."""
    unpack: struct.Struct | None = None
    """Unpacks fixed-size fields."""
    default: Any = None
    """For a CASE: the JSON value of an absent tagged field."""


_STEERING = Label()


@dataclass(frozen=True, slots=True)
class Plan:
    """How to read one message at one version."""

    message: str
    version: int
    rows: tuple[Row, ...]
    labels: tuple[Label, ...]
    slots: int
    """Presence bits of what some row may fill: `1 << slot`, with texts after the integers."""
    counters: int
    """Largest number of arrays and tag sections that can be open at once."""


def json_key(name: str) -> str:
    """Kafka's JSON key of a field: the name with its first letter in lower case."""
    return name[:1].lower() + name[1:]


class _Compiler:
    """Emits the rows of one message and version."""

    def __init__(self, message: MessageSpec, variant: Variant, version: int, partitions: bool) -> None:
        self.message = message.name
        self.partitions = partitions
        """Whether partitions go to the side buffer of partitions."""
        self.element: tuple[str, ...] = ()
        """The path of a partition's struct while its fields are compiled."""
        self.captures = message.kind in ("request", "response")
        self.errors = message.kind == "response"
        self.structs = variant.structs
        self.version = version
        self.flexible = within(variant.flexible, version)
        self.rows: list[list[int]] = []
        self.labels: list[Label] = []
        self.barrier = 0
        self.slots = 0
        self.counters = 0

    def emit(self, op: int, a: int = 0, b: int = 0, c: int = 0, label: Label = _STEERING) -> int:
        self.rows.append([op, a, b, c])
        self.labels.append(label)
        return len(self.rows) - 1

    def here(self) -> int:
        """The next row's number, as a jump target: no fields before and after it are fused."""
        self.barrier = len(self.rows)
        return self.barrier

    def counter(self, depth: int) -> int:
        self.counters = max(self.counters, depth + 1)
        return depth

    def label(self, field: Field, *, default: Any = None) -> Label:
        kind = field.type
        unpack = struct.Struct(">" + FORMATS[kind]) if kind in FORMATS else None
        return Label((field.name,), (json_key(field.name),), (kind,), unpack, default)

    def present(self, field: Field) -> bool:
        return within(field.versions, self.version)

    def tagged(self, field: Field) -> bool:
        return within(field.tagged, self.version)

    def inner(self, kind: str, field: Field) -> tuple[Field, ...]:
        return field.fields or self.structs.get(kind, ())

    # --- structs -----------------------------------------------------------------------------------------------------
    def struct(self, fields: tuple[Field, ...], depth: int, path: tuple[str, ...]) -> None:
        """Emits the fields in order, then the tag section of a flexible version."""
        topic = ""
        for field in fields:
            if self.present(field) and not self.tagged(field):
                topic = self.value(field, depth, (*path, field.name), topic) or topic
        if self.flexible:
            self.tags([f for f in fields if self.present(f) and self.tagged(f)], depth, path)

    def tags(self, fields: list[Field], depth: int, path: tuple[str, ...]) -> None:
        counter = self.counter(depth)
        section = self.emit(opcodes.TAGS, b=counter)
        self.here()
        head = self.emit(opcodes.TAG, b=counter, c=len(fields))
        cases = [self.emit(opcodes.CASE, f.tag, label=self.label(f, default=self.default(f))) for f in fields]
        for case, field in zip(cases, fields, strict=True):
            self.rows[case][2] = self.here()
            self.value(field, depth + 1, (*path, field.name), "", tagged=True)
            self.here()
            self.emit(opcodes.TAG_END, head, counter)
        self.rows[section][1] = self.rows[head][1] = self.here()

    # --- values ------------------------------------------------------------------------------------------------------
    def value(self, field: Field, depth: int, path: tuple[str, ...], topic: str, *, tagged: bool = False) -> str:
        """Emits the rows of one field. `topic` is the type of the topic field before it in the struct (a name, an id, or
        empty); a field of the other type belongs to the same topic. Returns the same for this field."""
        kind = field.type
        if kind.startswith("[]"):
            self.array(field, depth, path)
            return ""
        if kind in SIZES or kind in ("string", "bytes", "records"):
            return self.scalar(field, path, topic)
        nullable = within(field.nullable, self.version)
        op = (opcodes.NULLABLE_TAGGED if tagged else opcodes.NULLABLE) if nullable else opcodes.STRUCT
        at = self.emit(op, label=self.label(field))
        self.here()
        self.struct(self.inner(kind, field), depth, path)
        self.rows[at][1] = self.here()
        return ""

    def scalar(self, field: Field, path: tuple[str, ...], before: str) -> str:
        kind, label = field.type, self.label(field)
        joins = bool(before) and before != kind
        if kind in ("bytes", "records"):
            mine = self.partitions and kind == "records" and bool(self.element)
            self.emit(self.form(opcodes.RECORDS if kind == "records" else opcodes.BYTES, field), c=int(mine), label=label)
            if kind == "records" and self.captures:
                self.fill("batch_count", "record_count", "records_bytes", "codecs", "magics")
            return ""
        slot = slots.slot_of(self.message, path) if self.captures else None
        topic = self.captures and (field.entity == "topicName" if kind == "string" else field.name == "TopicId")
        if kind == "string":
            if topic:
                self.emit(self.form(opcodes.TOPIC_NAME, field), c=int(joins), label=label)
            else:
                group = int(self.partitions and slot == "group_id" and len(path) > 1)
                self.emit(self.form(opcodes.STRING, field), slots.TEXT[slot] if slot else -1, c=group, label=label)
                self.fill(slot)
        elif kind == "uuid" and topic:
            self.emit(opcodes.TOPIC_ID, c=int(joins), label=label)
        else:
            self.integer(field, path, slot, label)
        return kind if topic else ""

    def integer(self, field: Field, path: tuple[str, ...], slot: str | None, label: Label) -> None:
        kind, (column, largest) = field.type, self.column(path)
        error = self.errors and kind == "int16" and field.name.endswith(ERROR_SUFFIX)
        if column is not None:
            again = int(error or slot is not None) | 2 * largest
            self.emit(opcodes.FIELD, SIZES[kind], slots.ELEMENT_AT[column], again, label=label)
        if error:
            self.emit(opcodes.ERROR, int(len(path) == 1), label=label)
            self.fill("error_code", "error_count", *(["top_error_code"] if len(path) == 1 else []))
        elif slot is not None:
            self.emit(opcodes.INT, SIZES[kind], slots.SLOT[slot], label=label)
            self.fill(slot)
        elif column is None:
            self.fixed(label)

    def column(self, path: tuple[str, ...]) -> tuple[str | None, bool]:
        """The column for a field of a partition in the side buffer, and whether the largest of several values is stored."""
        depth = len(self.element)
        if not depth or path[:depth] != self.element:
            return None, False
        if len(path) == depth + 1:
            return slots.partition_column(self.message, path[-1]), False
        return slots.LARGEST_COLUMNS.get((self.message, ".".join(path[depth:]))), True

    def fixed(self, label: Label) -> None:
        """Appends a field that no slot captures to the FIXED row before it."""
        size = SIZES[label.types[0]]
        if self.rows and self.rows[-1][0] == opcodes.FIXED and self.barrier < len(self.rows):
            last = self.labels[-1]
            types = last.types + label.types
            unpack = struct.Struct(">" + "".join(FORMATS[kind] for kind in types))
            self.labels[-1] = Label(last.names + label.names, last.keys + label.keys, types, unpack)
            self.rows[-1][1] += size
        else:
            self.emit(opcodes.FIXED, size, label=label)

    def array(self, field: Field, depth: int, path: tuple[str, ...]) -> None:
        kind = field.type[2:]
        counted = self.captures and self.counts_partitions(field, kind, path)
        if counted:
            self.fill("partition_count")
        at = self.emit(self.form(opcodes.PARTITIONS if counted else opcodes.ARRAY, field), c=-1, label=self.label(field))
        counter = self.rows[at][2] = self.counter(depth)
        body = self.here()
        if counted and self.partitions:
            self.elements(field, kind, depth, path)
            self.emit(opcodes.LOOP, body, counter)
        elif kind in SIZES:
            self.rows[at][3] = SIZES[kind]
        else:
            element = Field("", kind, field.versions, entity=field.entity, fields=field.fields)
            if kind in ("string", "bytes"):
                self.scalar(element, (*path, ""), "")
            else:
                self.struct(self.inner(kind, field), depth + 1, path)
            if len(self.rows) == body + 1 and self.rows[body][0] == opcodes.FIXED:
                self.rows[at][3] = self.rows[body][1]
            elif len(self.rows) == body:
                self.rows[at][3] = 0
            self.here()
            self.emit(opcodes.LOOP, body, counter)
        self.rows[at][1] = self.here()

    def elements(self, field: Field, kind: str, depth: int, path: tuple[str, ...]) -> None:
        """Emits the body of an array of partitions whose facts are requested one by one."""
        self.emit(opcodes.ELEMENT)
        if kind in SIZES:
            self.emit(opcodes.FIELD, SIZES[kind], slots.PARTITION, label=Label(("",), ("",), (kind,)))
        else:
            self.element = path
            self.struct(self.inner(kind, field), depth + 1, path)
            self.element = ()
        self.here()

    def counts_partitions(self, field: Field, kind: str, path: tuple[str, ...]) -> bool:
        if not slots.NOT_COUNTED.isdisjoint(path):
            return False
        if kind == "int32":
            return field.name in slots.PARTITION_NUMBERS
        first = next((f for f in self.inner(kind, field) if self.present(f) and f.type == "int32"), None)
        return first is not None and first.name in slots.PARTITION_FIELDS

    def form(self, op: int, field: Field) -> int:
        """`op`, or its compact form if the version uses it (KIP-482)."""
        return op + 1 if self.flexible and not field.rigid else op

    def fill(self, *names: str | None) -> None:
        for name in names:
            if name:
                self.slots |= 1 << (slots.SLOT[name] if name in slots.SLOT else len(slots.SLOTS) + slots.TEXT[name])

    def settle_errors(self) -> None:
        """Marks the nested errors that no error of the outermost struct follows; the first of them is the message's error."""
        outermost = [at for at, row in enumerate(self.rows) if row[0] == opcodes.ERROR and row[1]]
        for row in self.rows[outermost[-1] if outermost else 0 :]:
            if row[0] == opcodes.ERROR:
                row[2] = 1

    # --- defaults ----------------------------------------------------------------------------------------------------
    def default(self, field: Field) -> Any:
        """The JSON value of an absent field (Kafka's message generator, FieldSpec.fieldDefault)."""
        kind, default = field.type, field.default
        if default == "null":
            return None
        if kind.startswith("[]"):
            return []
        if kind == "bool":
            return str(default).lower() == "true"
        if kind == "float64":
            return float(default or 0)
        if kind == "uuid":
            return "A" * 22
        if kind in ("string", "bytes", "records"):
            return default or ""
        if kind in SIZES:
            return int(str(default or 0), 0)
        fields = (f for f in self.inner(kind, field) if self.present(f) and not self.tagged(f))
        return {json_key(f.name): self.default(f) for f in fields}


def compile_plan(message: MessageSpec, version: int, *, partitions: bool = False) -> Plan | None:
    """Returns the plan of a message at a version, with or without its partitions one by one; None if no release has it."""
    variant = message.variant(version)
    if variant is None:
        return None
    compiler = _Compiler(message, variant, version, partitions)
    compiler.struct(variant.fields, 0, ())
    compiler.settle_errors()
    compiler.emit(opcodes.END, compiler.slots & slots.WHOLE)
    return Plan(
        message.name,
        version,
        tuple((op, a, b, c) for op, a, b, c in compiler.rows),
        tuple(compiler.labels),
        compiler.slots,
        compiler.counters,
    )


@functools.lru_cache(VERSION_PLANS_MAX)
def plan_for(api_key: int, version: int, side: int) -> Plan | None:
    """The plan of a request (side 0) or response (side 1) body; None for an unknown API or version."""
    found = registry.body(api_key, side)
    return compile_plan(found, version) if found else None


@functools.lru_cache(VERSION_PLANS_MAX)
def partitions_plan_for(api_key: int, version: int, side: int) -> Plan | None:
    """The plan that reads partitions one by one; None also for an API that is not about partitions."""
    found = registry.body(api_key, side)
    if found is None or registry.api_name(api_key) not in slots.WITH_PARTITIONS:
        return None
    return compile_plan(found, version, partitions=True)


@functools.lru_cache(VERSION_PLANS_MAX)
def plan_of(name: str, version: int) -> Plan | None:
    """The plan of any message by its schema name; None if there is no such name or version."""
    found = message(name)
    return compile_plan(found, version) if found else None
