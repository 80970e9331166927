"""A message's tree: children tile, leaves equal the JSON, damage is a node."""

import random
from typing import Any

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


def test_trees_are_lazy() -> None:
    """The root's children are not made before they are asked for."""
    tree = decode(sample("messages")[0]).tree()
    assert tree.expand is not None
    body = tree.find("body")
    assert tree.expand is None
    assert body is not None
    assert body.expand is not None
