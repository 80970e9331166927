"""Partitions one by one: the projection's side buffer equals the tree, and no value is lost or made up."""

from importlib.util import find_spec
from typing import Any

import pytest

from kcap.decode import slots
from kcap.decode.nodes import Node
from kcap.decode.programs import program_index
from kcap.decode.projection import Projection, project
from kcap.schema import registry
from tests.decode.oracle import Path, _partitions, _prefix, schema
from tests.decode.samples import body_of, decode, sample, vectors

Json = dict[str, Any]


def partitions(body: Node, key: int, version: int, side: int) -> list[Json]:  # noqa: C901
    """The partitions of a message as the tree has them: topic, group, columns, bytes of records."""
    types = schema(key, version, side)
    message = registry.body(key, side)
    assert message is not None
    found: list[Json] = []
    around: Json = {"name": None, "id": None, "group": None}

    def walk(node: Node, path: Path, inside: bool) -> None:
        for child in node.children:
            if child.name.startswith("["):
                element = inside or (path in types and _partitions(types, path))
                if element:
                    found.append(dict(around))
                    if types[path].type == "[]int32":
                        found[-1]["partition"] = child.value
                elif path in types and any(p[:-1] == path and p[-1] == "TopicId" for p in types):
                    around.update({"name": None, "id": None})
                walk(child, path, element and types[path].type != "[]int32")
            elif child.name == "tags":
                for tag in child.children:
                    walk(tag, path, inside)
            elif (place := (*path, child.name)) in types:
                field = types[place]
                if field.entity == "topicName" and field.type == "string":
                    around["name"] = child.value
                elif field.name == "TopicId" and field.type == "uuid":
                    around["id"] = child.value
                elif slots.slot_of(message.name, place) == "group_id" and len(place) > 1:
                    around["group"] = child.value
                if inside and not field.type.startswith("[]"):
                    take(found[-1], field.name, field.type, child)
                largest(place, child)
                if field.type != "records":
                    walk(child, place, False)

    def largest(place: Path, node: Node) -> None:
        for (of, below), column in slots.LARGEST_COLUMNS.items():
            if of == message.name and ".".join(place).endswith(f".{below}"):
                found[-1][column] = max(node.value, found[-1].get(column, node.value))

    def take(row: Json, name: str, kind: str, node: Node) -> None:
        column = slots.partition_column(message.name, name)
        if kind == "records" and node.value:
            row["records"] = node.data[_prefix(node) :]
        elif column and kind.startswith("int"):
            row[column] = node.value

    walk(body, (), False)
    return found


def wanted() -> list[Json]:
    return [v for v in vectors("messages") if v["api"] in slots.WITH_PARTITIONS and v.get("note") != "a string is not UTF-8"]


def projected(found: list[Json], engine: Any) -> tuple[bytes, Projection]:
    buffer, starts, ends, programs = bytearray(), [], [], []
    for vector in found:
        starts.append(len(buffer))
        buffer += body_of(vector)
        ends.append(len(buffer))
        programs.append(program_index(vector["api_key"], vector["version"], int(vector["kind"] == "response"), True))
    return bytes(buffer), project(bytes(buffer), starts, ends, programs, engine=engine)


def rows(buffer: bytes, result: Projection) -> list[list[Json]]:
    """For each message what the side buffer says of its partitions."""
    found: list[list[Json]] = [[] for _ in range(len(result))]
    topics = list(zip(*result.topics, strict=True))
    for element in zip(*result.elements, strict=True):
        values = dict(zip(slots.ELEMENTS, map(int, element), strict=True))
        message, topic = values["message"], topics[values["topic"]]
        assert topic[0] == message
        row: Json = {"name": None, "id": None, "group": None}
        if topic[1] >= 0:
            row["name"] = buffer[topic[1] : topic[2]].decode()
        if topic[3] >= 0:
            row["id"] = buffer[topic[3] : topic[3] + 16]
        if values["group_start"] >= 0:
            row["group"] = buffer[values["group_start"] : values["group_end"]].decode()
        if values["records_start"] >= 0:
            row["records"] = buffer[values["records_start"] : values["records_end"]]
        row |= {name: values[name] for name in slots.ELEMENTS[slots.PARTITION :] if values[name] != slots.NOTHING}
        found[message].append(row)
    return found


def test_partitions_equal_the_trees() -> None:
    """Law: every partition of every vector, in wire order, with its topic, group, records and columns."""
    found = wanted()
    buffer, result = projected(found, "plain")
    count = 0
    for vector, mine in zip(found, rows(buffer, result), strict=True):
        body = decode(vector).tree().find("body")
        assert body is not None
        theirs = partitions(body, vector["api_key"], vector["version"], int(vector["kind"] == "response"))
        for row in mine + theirs:
            row["id"] = row["id"] is not None
        assert mine == theirs, (vector["api"], vector["version"], vector["kind"])
        count += len(mine)
    assert count > len(found) // 2


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_jitted_equals_plain() -> None:
    """Law: the compiled interpreter gives the same side buffers, also where they have to grow."""
    found = [v for v in sample("messages") if v["api"] in slots.WITH_PARTITIONS] * 40
    _, plain = projected(found, "plain")
    _, jitted = projected(found, "jit")
    assert len(plain.elements[0]) > 64
    for name in ("topics", "elements", "wrapped"):
        assert [list(map(int, column)) for column in getattr(plain, name)] == [
            list(map(int, column)) for column in getattr(jitted, name)
        ]
    assert list(plain.status) == [int(status) for status in jitted.status]


def test_cut_messages_keep_what_was_read() -> None:
    """Law: whatever is missing at the end, the partitions before it are those of the whole message."""
    for vector in sample("messages"):
        if vector["api"] not in slots.WITH_PARTITIONS:
            continue
        program = program_index(vector["api_key"], vector["version"], int(vector["kind"] == "response"), True)
        body = body_of(vector)
        whole = list(zip(*project(body, [0], [len(body)], [program], engine="plain").elements, strict=True))
        for size in range(0, len(body), max(1, len(body) // 20)):
            cut = list(zip(*project(body[:size], [0], [size], [program], engine="plain").elements, strict=True))
            assert len(cut) <= len(whole)
            assert cut[:-1] == whole[: len(cut)][:-1]
