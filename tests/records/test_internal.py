"""Records that Kafka writes for itself, opened in the tree."""

from typing import Any

import pytest

from kcap.decode.nodes import Buffers, Node
from kcap.decode.tree import Inside
from kcap.records.batch_nodes import record_set_nodes
from kcap.records.internal import COORDINATORS, LOGS
from tests.decode.samples import sample, vectors
from tests.decode.trees import check, walk
from tests.records.batches import batch, record

TOPICS = {family: topic for topic, family in {**COORDINATORS, **LOGS}.items() if topic.startswith("__")}
METADATA_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def tree(blob: bytes, topic: str = "") -> Node:
    place = Inside(Buffers(blob), 0, 0, len(blob), topic)
    return Node("records", None, "", place.buffers, 0, 0, len(blob), lambda: record_set_nodes(place))


def opened(node: Node | None) -> str | None:
    """The name of the message that a key or value holds."""
    return node.children[1].name if node is not None and node.children else None


def pairs() -> list[tuple[str, bytes, bytes, str, str]]:
    """(topic, key, value, what the key is, what the value is) for every record type of the vectors."""
    found = vectors("data")
    keys = {(v["family"], v["record_type"]): v for v in found if v["role"] == "key"}
    made = []
    for value in found:
        topic = TOPICS.get(value["family"])
        if value["role"] != "value" or topic is None:
            continue
        key = keys.get((value["family"], value["record_type"]))
        data = bytes.fromhex(key["hex"]) if key else b"k"
        made.append((topic, data, bytes.fromhex(value["hex"]), key["name"] if key else "", value["name"]))
    return made


def test_every_record_type_is_opened() -> None:
    """Law: what Kafka's own classes wrote into an internal topic has its message in the tree, byte for byte."""
    seen = set()
    for topic, key, value, key_name, value_name in pairs():
        root = tree(batch(record(0, key, value)), topic)
        check(root)
        inside = root.find("batch 0", "record 0")
        assert inside is not None
        wanted = None if topic in LOGS or not key_name else key_name
        if topic in LOGS or key_name:
            assert (opened(inside.find("key")), opened(inside.find("value"))) == (wanted, value_name)
            seen.add(value_name)
    assert len(seen) > 40


def test_other_topics_keep_their_bytes() -> None:
    """A record that looks like one of Kafka's own is no such thing in anybody's topic."""
    topic, key, value, _, _ = next(pair for pair in pairs() if pair[3])
    assert opened(tree(batch(record(0, key, value)), "orders").find("batch 0", "record 0", "value")) is None
    cut = tree(batch(record(0, key, value[:-1])), topic)
    assert opened(cut.find("batch 0", "record 0", "value")) is None
    check(cut)


def test_the_log_of_kraft_goes_by_its_id() -> None:
    """Fetches of version 13 and later name a topic by id."""
    topic, _, value, _, name = next(pair for pair in pairs() if pair[0] == "__cluster_metadata")
    assert topic
    assert opened(tree(batch(record(0, None, value)), METADATA_ID).find("batch 0", "record 0", "value")) == name


@pytest.mark.parametrize(("number", "name"), [(0, "ABORT"), (1, "COMMIT"), (77, "UNKNOWN")])
def test_control_records_say_what_they_do(number: int, name: str) -> None:
    """The key of a control record is a version and a type; a marker's value has the coordinator's epoch."""
    key, value = bytes([0, 0, 0, number]), b"\0\0\0\0\0\7"
    root = tree(batch(record(0, key, value), attributes=0x30))
    check(root)
    kind = root.find("batch 0", "record 0", "key", "type")
    assert kind is not None
    assert kind.words == f"{number} {name}"
    body = root.find("batch 0", "record 0", "value", "EndTxnMarker", "body", "CoordinatorEpoch")
    assert (body is None) == (name == "UNKNOWN")
    assert body is None or body.value == 7


def test_fetches_of_the_log_are_opened() -> None:
    """The topic of a partition reaches its records, by name and by id."""
    found: list[Any] = [v for v in sample("messages") if v["api"] == "Fetch"]
    assert all(list(walk(tree(bytes.fromhex(v["frame"])))) for v in found)
