"""A message's tree: children tile, leaves equal the JSON, damage is a node."""

import random
from importlib.util import find_spec
from typing import Any

import pytest

from kcap.decode import projection
from kcap.decode import tree as tree_module
from kcap.decode.json import base64, float_value
from kcap.decode.nodes import Node
from kcap.decode.plan import json_key
from tests.decode.samples import decode, header_end, sample, vectors
from tests.decode.trees import check, undecoded, walk


def values(node: Node) -> dict[str, Any]:
    """A struct's fields in JSON's form; what is inside a tag section belongs to the struct."""
    found: dict[str, Any] = {}
    for child in node.children:
        if child.name == "tags":
            for tag in child.children[1:]:
                if not tag.name.startswith("tag "):
                    found[json_key(tag.name)] = value(tag.children[2])
        elif child.name != "present":
            found[json_key(child.name)] = value(child)
    return found


def value(node: Node) -> Any:
    """A node's JSON value."""
    inner = node.children
    if node.words == "null":
        return None
    if isinstance(node.value, bytes):
        return base64(node.value)
    if isinstance(node.value, float):
        return float_value(node.value)
    if node.value is not None:
        return node.value
    if inner and inner[0].name == "count":
        return [value(child) if child.value is not None or child.words == "null" else values(child) for child in inner[1:]]
    return values(node)


def holds(tree: Any, json: Any) -> bool:
    """Whether the JSON is in the tree; the tree also has tagged fields that were sent with their default."""
    if isinstance(json, dict):
        return isinstance(tree, dict) and all(key in tree and holds(tree[key], inner) for key, inner in json.items())
    if isinstance(json, list):
        return len(tree) == len(json) and all(holds(a, b) for a, b in zip(tree, json, strict=True))
    return bool(tree == json)


def test_trees_tile_and_equal_the_json() -> None:
    """Law: children tile their parent, and the leaves are the JSON's values; of all vectors."""
    for vector in vectors("messages"):
        tree = decode(vector).tree()
        check(tree)
        body = tree.find("body")
        assert body is not None
        assert holds(values(body), vector["body"]), (vector["api"], vector["version"])
        assert body.start == header_end(vector)


def test_the_header_is_explained() -> None:
    """Each header field is a node."""
    vector = next(v for v in sample("messages") if v["kind"] == "request" and v["header_version"] == 2 and v["client_id"])
    header = decode(vector).tree().find("header")
    assert header is not None
    names = [node.name for node in header.children]
    assert names == ["RequestApiKey", "RequestApiVersion", "CorrelationId", "ClientId", "tags"]
    assert header.children[3].value == vector["client_id"]
    assert vector["api"] in header.children[0].words


def test_damage_is_a_node() -> None:
    """Cut or changed frames: trees still tile, and an `undecoded` node is there exactly when the message says so."""
    chance = random.Random(9)
    for vector in sample("messages"):
        frame = bytes.fromhex(vector["frame"])
        flipped = bytearray(frame)
        flipped[chance.randrange(header_end(vector) - 1, len(frame))] ^= 1 << chance.randrange(8)
        for damaged in (frame[: chance.randint(header_end(vector), len(frame))], bytes(flipped), frame + b"x"):
            message = decode(vector, damaged)
            tree = message.tree()
            check(tree)
            outside = [node for node in undecoded(tree) if node.buffer == 0 and not _in_records(tree, node)]
            assert bool(outside) == (message.undecoded is not None), (message.undecoded, damaged.hex())


def _in_records(tree: Node, node: Node) -> bool:
    inside = (n for n in walk(tree) if n.name == "Records" and n.value is not None)
    return any(records.start <= node.start and node.end <= records.end and records.end > records.start for records in inside)


def test_every_header_cut_has_a_tree() -> None:
    """Also where not even the header is whole."""
    for vector in sample("messages")[::20]:
        frame = bytes.fromhex(vector["frame"])
        for cut in range(header_end(vector) + 1):
            check(decode(vector, frame[:cut]).tree())


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_the_compiled_interpreter_gives_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: where spans end does not depend on who steps over them, whole, cut or changed."""
    chance = random.Random(10)
    assert projection.load_compiled()
    calls = 0
    end_of = projection.end_of

    def counted(*place: Any) -> int | None:
        nonlocal calls
        end = end_of(*place)
        calls += end is not None
        return end

    monkeypatch.setattr(tree_module, "end_of", counted)
    for vector in sample("messages"):
        frame = bytes.fromhex(vector["frame"])
        flipped = bytearray(frame)
        flipped[chance.randrange(header_end(vector) - 1, len(frame))] ^= 1 << chance.randrange(8)
        for bytes_ in (frame, frame[: chance.randint(header_end(vector), len(frame))], bytes(flipped)):
            monkeypatch.setattr(projection, "COMPILED_FROM_BYTES", 1 << 62)
            plain = spans(decode(vector, bytes_).tree())
            monkeypatch.setattr(projection, "COMPILED_FROM_BYTES", 0)
            assert spans(decode(vector, bytes_).tree()) == plain
    assert calls > 1000


def spans(tree: Node) -> list[tuple[object, ...]]:
    """A tree as a list."""
    return [(node.name, node.words, node.buffer, node.start, node.end, len(node.children)) for node in walk(tree)]


def test_trees_are_lazy() -> None:
    """The root's children are not made before they are asked for."""
    tree = decode(sample("messages")[0]).tree()
    assert tree.expand is not None
    body = tree.find("body")
    assert tree.expand is None
    assert body is not None
    assert body.expand is not None
