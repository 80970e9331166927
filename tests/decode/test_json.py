"""Canonical JSON equals what Kafka's own converters write."""

import math

from kcap.decode.json import base64, float_value, read_json, uuid_text
from kcap.decode.plan import plan_for, plan_of
from tests.decode.samples import body_of, decode, header_end, sample, vectors


def test_every_message_equals_kafkas() -> None:
    """Law: parsed values are equal, unknown tags are found, every byte is used."""
    for vector in vectors("messages"):
        message = decode(vector)
        assert message.to_json() == vector["body"], (vector["api"], vector["version"], vector["kind"])
        unknown = [(tag["tag"], bytes.fromhex(tag["data"])) for tag in vector.get("unknown_tags") or []]
        assert message.unknown_tags == unknown
        assert message.undecoded is None


def test_integers_stay_integers() -> None:
    """JSON equality of Python hides True == 1: types are compared too."""

    def types(value: object) -> object:
        if isinstance(value, dict):
            return {key: types(inner) for key, inner in value.items()}
        return [types(inner) for inner in value] if isinstance(value, list) else type(value)

    for vector in sample("messages"):
        assert types(decode(vector).to_json()) == types(vector["body"])


def test_damage_keeps_what_was_read() -> None:
    """Of a body cut at any byte the JSON is a part of the whole, and the reason is given."""

    def part_of(part: object, whole: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(key in whole and part_of(value, whole[key]) for key, value in part.items())
        if isinstance(part, list) and isinstance(whole, list):
            return len(part) <= len(whole) and all(part_of(a, b) for a, b in zip(part, whole, strict=False))
        return part == whole

    for vector in sample("messages")[::6]:
        if "default value" in vector.get("note", ""):
            continue
        frame = bytes.fromhex(vector["frame"])
        for cut in range(header_end(vector), len(frame), 7):
            message = decode(vector, frame[:cut])
            assert part_of(message.to_json(), vector["body"])
            assert message.undecoded


def test_records_as_in_the_request_log() -> None:
    """`records="size"` gives the broker log's form."""
    vector = next(v for v in sample("messages") if v["api"] == "Produce" and v["kind"] == "request" and v["version"] == 13)
    body = decode(vector).to_json(records="size")
    assert body is not None
    partitions = [p for topic in body["topicData"] for p in topic["partitionData"]]
    assert partitions
    assert all(p.get("records") is None for p in partitions)
    assert all(isinstance(p["recordsSizeInBytes"], int) for p in partitions if "records" not in p)


def test_a_count_beyond_the_bytes_costs_nothing() -> None:
    """An array of two billion elements in a body of eight bytes is damage."""
    plan = plan_for(19, 2, 0)
    assert plan is not None
    reading = read_json(plan, b"\x7f\xff\xff\xff\x00\x01a\x00")
    assert reading.undecoded
    assert reading.value["topics"] == [{"name": "a"}]


def test_small_forms() -> None:
    """Base64, uuids and the floats that JSON has no number for."""
    assert base64(b"\xfb\xff") == "+/8="
    assert uuid_text(b"\xfb" + bytes(15)) == "-wAAAAAAAAAAAAAAAAAAAA"
    assert [float_value(x) for x in (1.5, math.nan, math.inf, -math.inf)] == [1.5, "NaN", "Infinity", "-Infinity"]


def test_position_is_where_the_body_ends() -> None:
    """Bytes behind the message are left alone."""
    vector = next(v for v in sample("messages") if v["header_version"] == 1 and v["kind"] == "request")
    plan = plan_for(vector["api_key"], vector["version"], 0)
    assert plan is not None
    body = body_of(vector)
    assert read_json(plan, body + b"tail").position == len(body)
    assert plan_of("Nobody", 0) is None
