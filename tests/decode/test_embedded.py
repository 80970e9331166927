"""Bytes fields that hold messages."""

import kcap
from kcap.decode.embedded import BLOBS, blob_plan
from kcap.schema.facts import message
from tests.decode.samples import sample
from tests.decode.test_slots import all_fields
from tests.decode.trees import check

SUBSCRIPTION = bytes.fromhex("000100000001000174ffffffff00000000")


def join_group(metadata: bytes) -> bytes:
    """A JoinGroup v0 request of one protocol."""
    head = bytes.fromhex("000b0000000000010000000167000027100000") + b"\0\x08consumer"
    return head + bytes.fromhex("00000001") + b"\0\x05range" + len(metadata).to_bytes(4, "big") + metadata


def test_the_fields_and_schemas_exist() -> None:
    """Each entry names a bytes field of that message and a schema."""
    bytes_fields = {(name, field.name) for name, _, field in all_fields() if field.type == "bytes"}
    assert set(BLOBS) <= bytes_fields
    assert all(message(schema) for schema in BLOBS.values())


def test_every_blob_of_the_vectors_is_read() -> None:
    """What Kafka wrote for a schema is read by it."""
    for vector in sample("data"):
        places = [place for place, schema in BLOBS.items() if schema == vector["name"]]
        for place in places:
            plan = blob_plan(*place, bytes.fromhex(vector["hex"]))
            assert plan is not None
            assert (plan.message, plan.version) == (vector["name"], vector["version"])


def test_a_subscription_shows_in_the_tree() -> None:
    """Its fields are nodes of the same buffer; the JSON stays Kafka's."""
    decoded = kcap.decode_request(join_group(SUBSCRIPTION))
    assert decoded.undecoded is None
    tree = decoded.tree()
    check(tree)
    topic = tree.find("body", "Protocols", "[0]", "Metadata", "Topics", "[0]")
    assert topic is not None
    assert topic.value == "t"
    metadata = tree.find("body", "Protocols", "[0]", "Metadata")
    assert metadata is not None
    assert metadata.words.endswith("ConsumerProtocolSubscription v1")
    json = decoded.to_json()
    assert json is not None
    assert isinstance(json["protocols"][0]["metadata"], str)


def test_other_bytes_stay_bytes() -> None:
    """An unknown version, a byte too many or too few, another field."""
    for data in (b"", b"\0", b"\0\x63rest", SUBSCRIPTION + b"x", SUBSCRIPTION[:-1]):
        assert blob_plan("JoinGroupRequest", "Metadata", data) is None
        node = kcap.decode_request(join_group(data)).tree().find("body", "Protocols", "[0]", "Metadata")
        assert node is not None
        assert node.children == ()
    assert blob_plan("FetchResponse", "Records", SUBSCRIPTION) is None
