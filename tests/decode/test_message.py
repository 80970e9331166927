"""Whole messages: headers, negotiation, blobs, and the promise that bytes never raise."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.errors import UsageError
from tests.decode.samples import decode, sample, vectors
from tests.decode.trees import check


def test_negotiation() -> None:
    """The refusal of an ApiVersions request is read at version 0 whatever the request's version; unknown versions keep their
    header.
    """
    for vector in vectors("negotiation"):
        asked = vector["request"]
        request = kcap.decode_request(bytes.fromhex(asked["frame"]))
        assert request.header.client_id == asked["client_id"]
        assert request.header.correlation_id == asked["correlation_id"]
        assert request.to_json() == (asked["body"] if vector["known_to_schema"] else None)
        assert (request.undecoded is None) == vector["known_to_schema"]
        if vector["response"]:
            frame = bytes.fromhex(vector["response"]["frame"])
            answer = kcap.decode_response(frame, api_key=asked["api_key"], api_version=asked["version"])
            assert answer.to_json() == vector["response"]["body"]
            assert answer.version == 0


def test_data() -> None:
    """What travels inside bytes fields and records, by its own prefix."""
    for vector in vectors("data"):
        version = vector["version"] if vector["prefix"] == "none" else None
        message = kcap.decode_data(vector["name"], bytes.fromhex(vector["hex"]), version=version)
        assert message.to_json() == vector["body"]
        assert message.undecoded is None
        assert message.unknown_tags == [(t["tag"], bytes.fromhex(t["data"])) for t in vector.get("unknown_tags") or []]


def test_control_bodies_tell_their_own_version() -> None:
    """A KRaft control value has no prefix: its first field is the version."""
    vector = next(v for v in sample("data") if v["name"] == "LeaderChangeMessage" and v["version"] == 1)
    assert kcap.decode_data("LeaderChangeMessage", bytes.fromhex(vector["hex"])).to_json() == vector["body"]


def test_a_name_nobody_has_is_the_callers_fault() -> None:
    """The only thing that decoding raises for is its caller's own mistake."""
    with pytest.raises(UsageError):
        kcap.decode_data("NoSuchSchema", b"")


def test_unknown_apis_are_not_guessed_at() -> None:
    """Header and raw body, never a value."""
    message = kcap.decode_request(bytes.fromhex("03e8000000000001ffff") + b"body")
    assert message.header.api_key == 1000
    assert message.to_json() is None
    assert "1000" in (message.undecoded or "")
    assert kcap.decode_response(b"\0\0\0\7abc").undecoded
    assert kcap.decode_response(b"\0\0\0\7abc").header.correlation_id == 7


def test_bytes_behind_a_message_are_named() -> None:
    """A body that is longer than its schema says so."""
    vector = next(v for v in sample("messages") if v["kind"] == "response")
    message = decode(vector, bytes.fromhex(vector["frame"]) + b"xyz")
    assert message.to_json() == vector["body"]
    assert message.undecoded == "3 bytes behind the message"


@given(frame=st.binary(max_size=200), key=st.integers(-1, 95), version=st.integers(-1, 20))
def test_any_bytes(frame: bytes, key: int, version: int) -> None:
    """Law: nothing raises on bytes."""
    header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    for message in (kcap.decode_request(header + frame), kcap.decode_response(frame, key, version), kcap.decode_request(frame)):
        message.to_json()
        assert message.undecoded is None or message.undecoded
        assert message.unknown_tags is not None
        message.tree()


@given(
    data=st.data(), name=st.sampled_from(["OffsetCommitKey", "PartitionRecord", "LeaderChangeMessage", "GroupMetadataValue"])
)
def test_any_blob(data: st.DataObject, name: str) -> None:
    """The same for blobs."""
    message = kcap.decode_data(name, data.draw(st.binary(max_size=60)))
    message.to_json()
    assert message.undecoded is None or message.undecoded


def test_an_envelope_shows_the_request_inside() -> None:
    """KIP-590: a broker hands a client's request on to the controller, header and all."""
    inner = b"\0\3\0\1\0\0\0\1\0\4test\0\0\0\1\0\5test1"
    body = bytes([len(inner) + 1]) + inner + b"\0" + b"\5\x7f\0\0\1" + b"\0"
    root = kcap.decode_request(pack(">hhih", 58, 0, 9, -1) + b"\0" + body).tree()
    check(root)
    found = root.find("body", "RequestData", "request", "MetadataRequest", "body", "Topics", "[0]", "Name")
    assert found is not None
    assert found.value == "test1"
    assert root.buffers[found.buffer][found.start : found.end] == b"\0\5test1"
    assert root.buffers.entries[found.buffer].how == "envelope"


def test_a_length_prefix_is_left_out() -> None:
    frame = bytes.fromhex("0012 0000 00000007 0003 61646d")
    prefixed = len(frame).to_bytes(4, "big") + frame
    assert kcap.decode_request(prefixed).header == kcap.decode_request(frame).header
    assert kcap.decode_request(memoryview(prefixed)).undecoded is None
    answer = bytes.fromhex("00000007 0000 00000000")
    assert (
        kcap.decode_response(len(answer).to_bytes(4, "big") + answer, 18, 0).to_json()
        == kcap.decode_response(answer, 18, 0).to_json()
    )
    assert kcap.decode_request(prefixed[:-1]).undecoded is not None
