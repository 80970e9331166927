"""Batches of magic 2."""

import pytest

from kcap.limits import INFLATED_BYTES_MAX
from kcap.records.magic2 import inflated_limit
from kcap.records.record_sets import decode_records
from tests.records.batches import batch, record, varint


def test_a_batch_and_its_records() -> None:
    """Header fields, keys, values, headers; null and empty are told apart."""
    payload = record(0, None, None) + record(3, b"k", b"", {"a": None, "b": b"\0"})
    (found,) = decode_records(batch(payload, 2, base=100)).batches
    assert (found.magic, found.codec, found.count, found.base_offset, found.last_offset) == (2, "none", 2, 100, 101)
    assert found.crc_ok
    first, second = found.records
    assert (first.offset, first.timestamp, first.key, first.value, first.headers) == (100, 1000, None, None, ())
    assert (second.offset, second.key, second.value, second.headers) == (103, b"k", b"", (("a", None), ("b", b"\0")))


@pytest.mark.parametrize(("bit", "name"), [(0x10, "is_transactional"), (0x20, "is_control")])
def test_attributes(bit: int, name: str) -> None:
    """Each bit is one fact."""
    (found,) = decode_records(batch(record(), attributes=bit)).batches
    assert getattr(found, name)


def test_times() -> None:
    """Append time overrides each record's; a delete horizon is stored in the base timestamp."""
    (appended,) = decode_records(batch(record(), attributes=0x08)).batches
    assert (appended.timestamp_type, appended.records[0].timestamp) == ("LogAppendTime", 2000)
    (horizon,) = decode_records(batch(record(), attributes=0x40)).batches
    assert horizon.delete_horizon_ms == horizon.base_timestamp == 1000


def test_a_wrong_checksum_is_told() -> None:
    """The batch and its records are still there."""
    blob = bytearray(batch(record(0, b"k", b"value")))
    blob[-2] ^= 1
    (found,) = decode_records(blob).batches
    assert not found.crc_ok
    assert len(found.records) == 1


NOISE = (
    varint(-5),
    varint(100) + b"x",
    varint(3) + b"\0\0\0",
    varint(6) + b"\0\0\0\1\1\1",
    record() + b"tail",
    varint(9) + b"\0" * 4 + b"\xff" * 9,
)


@pytest.mark.parametrize("payload", NOISE)
def test_damage(payload: bytes) -> None:
    """Impossible sizes and counts are a fault of the batch, not an exception."""
    (found,) = decode_records(batch(payload)).batches
    assert found.fault


def test_limits_grow_with_the_batch() -> None:
    """Small batches have a floor, large ones a ratio."""
    assert inflated_limit(10) == INFLATED_BYTES_MAX
    assert inflated_limit(10 << 20) > INFLATED_BYTES_MAX
