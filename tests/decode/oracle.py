"""The projection's columns worked out from the tree: slow, obvious, and without the interpreter's rows."""

from collections.abc import Iterator
from typing import Any

from kcap.decode import slots
from kcap.decode.nodes import Node
from kcap.decode.plan import plan_for
from kcap.records.record_sets import decode_records
from kcap.schema import registry
from kcap.schema.facts import Field, within

Path = tuple[str, ...]


def fields(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """(path of field names, node) of every field, in wire order; indexes, counts and tag numbers are no names."""
    for child in node.children:
        if child.name == "tags":
            yield from (pair for tag in child.children if tag.children for pair in fields(tag, path))
        elif child.name.startswith("["):
            yield path, child
            yield from fields(child, path)
        elif child.name not in ("count", "present", "tag", "size", "undecoded", "length", "data"):
            yield (*path, child.name), child
            if child.name != "Records":
                yield from fields(child, (*path, child.name))


def schema(key: int, version: int, side: int) -> dict[Path, Field]:
    """Every field of a message at a version, by path."""
    message = registry.body(key, side)
    variant = message.variant(version) if message else None
    assert variant is not None
    found: dict[Path, Field] = {}

    def walk(inner: tuple[Field, ...], path: Path) -> None:
        for field in inner:
            if within(field.versions, version):
                found[(*path, field.name)] = field
                walk(field.fields or variant.structs.get(field.type.removeprefix("[]"), ()), (*path, field.name))

    walk(variant.fields, ())
    return found


def _partitions(types: dict[Path, Field], path: Path) -> bool:
    """Whether the array at `path` has one element a partition."""
    field = types[path]
    if not field.type.startswith("[]") or not slots.NOT_COUNTED.isdisjoint(path):
        return False
    if field.type == "[]int32":
        return field.name in slots.PARTITION_NUMBERS
    inside = [f for p, f in types.items() if p[:-1] == path and f.type == "int32"]
    return bool(inside) and inside[0].name in slots.PARTITION_FIELDS


def columns(body: Node, key: int, version: int, side: int) -> dict[str, Any]:
    """Slot or text -> value of a whole message, without those it does not have; `topics` as (name, id) beside them."""
    types = schema(key, version, side)
    message = registry.body(key, side)
    assert message is not None
    found: dict[str, Any] = {}
    errors: list[tuple[int, int]] = []
    topics: list[tuple[str | None, str | None]] = []
    open_struct: tuple[Path, str] | None = None
    record_fields = [
        decode_records(node.data[_prefix(node) :]) for path, node in fields(body) if _has_records(types, path, node)
    ]
    for path, node in fields(body):
        indexed = node.name.startswith("[")
        field = types.get(path)
        if field is None or (indexed and field.type != "[]string"):
            open_struct = None
            continue
        slot = slots.slot_of(message.name, path)
        if slot and not field.type.startswith("[]"):
            found.setdefault(slot, node.value)
        if side and field.type == "int16" and field.name.endswith("ErrorCode"):
            errors.append((len(path), node.value))
        if _partitions(types, path):
            count = node.children[0].value
            found["partition_count"] = found.get("partition_count", 0) + max(0, count)
        is_name = field.entity == "topicName" and (field.type == "string" or indexed)
        if is_name or (field.type == "uuid" and field.name == "TopicId"):
            kind = "name" if is_name else "id"
            joins = open_struct is not None and open_struct[0] == path[:-1] and open_struct[1] != kind and not indexed
            old = topics.pop() if joins else (None, None)
            topics.append((node.value, old[1]) if is_name else (old[0], node.value))
            open_struct = (path[:-1], kind)
    found = _counts(types, record_fields, errors, side) | found
    found["topics"] = topics
    found["wrapped"] = sum(b.magic < 2 and b.codec_id > 0 for r in record_fields for b in r.batches)
    assert plan_for(key, version, side) is not None
    return found


def _has_records(types: dict[Path, Field], path: Path, node: Node) -> bool:
    return path in types and types[path].type == "records" and node.value is not None


def _prefix(node: Node) -> int:
    return node.end - node.start - len(node.value)


def _counts(types: dict[Path, Field], sets: list[Any], errors: list[tuple[int, int]], side: int) -> dict[str, int]:
    found: dict[str, int] = {}
    if any(_partitions(types, path) for path in types):
        found["partition_count"] = 0
    if any(f.type == "records" for f in types.values()):
        batches = [batch for records in sets for batch in records.batches]
        found["batch_count"] = len(batches)
        found["record_count"] = sum(max(0, b.count) for b in batches if b.magic == 2 or not b.codec_id)
        found["records_bytes"] = sum(r.trailing_bytes + sum(b.size for b in r.batches) for r in sets)
        found["codecs"] = _mask(b.codec_id for b in batches)
        found["magics"] = _mask(b.magic for b in batches)
    if side and any(f.type == "int16" and f.name.endswith("ErrorCode") for f in types.values()):
        bad = [code for _, code in errors if code]
        found["error_count"] = len(bad)
        top = [code for depth, code in errors if depth == 1]
        if top:
            found["top_error_code"] = top[0]
        found["error_code"] = top[0] if top and top[0] else bad[0] if bad else 0
    return found


def _mask(numbers: Iterator[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
