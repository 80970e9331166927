"""Messages of magic 0 and 1."""

import gzip

import pytest

from kcap.records import legacy
from kcap.records.record_sets import count_wrapped, decode_records
from tests.records.batches import message


def test_the_cost_of_the_formats() -> None:
    """key and value of 3 and 5 bytes take 34 bytes in a set of magic 0, 42 in one of magic 1."""
    assert len(message(b"value", magic=0, key=b"key")) == 34
    assert len(message(b"value", magic=1, key=b"key")) == 42


def test_an_uncompressed_message_is_a_batch_of_one() -> None:
    """With its own offset, and a time only from magic 1 on."""
    old, new = decode_records(message(b"v", 0, offset=4) + message(None, 1, offset=5)).batches
    assert (old.timestamp_type, old.max_timestamp, old.records[0].timestamp) == ("NoTimestampType", -1, -1)
    assert (new.timestamp_type, new.records[0].timestamp, new.records[0].value) == ("CreateTime", 1234, None)
    assert [old.base_offset, new.base_offset] == [4, 5]
    assert old.crc_ok
    assert new.crc_ok


def test_relative_offsets() -> None:
    """Magic 1 counts back from the wrapper's offset, or from 0 where the wrapper says 0; magic 0 has absolute ones."""
    inner = b"".join(message(b"%d" % n, offset=n) for n in range(3))
    (placed,) = decode_records(message(gzip.compress(inner), codec=1, offset=12)).batches
    assert [r.offset for r in placed.records] == [10, 11, 12]
    assert (placed.base_offset, placed.last_offset, placed.count) == (10, 12, 3)
    (fresh,) = decode_records(message(gzip.compress(inner), codec=1, offset=0)).batches
    assert [r.offset for r in fresh.records] == [0, 1, 2]
    old = b"".join(message(b"%d" % n, magic=0, offset=40 + n) for n in range(2))
    (absolute,) = decode_records(message(gzip.compress(old), magic=0, codec=1, offset=41)).batches
    assert [r.offset for r in absolute.records] == [40, 41]


def test_append_time_comes_from_the_wrapper() -> None:
    """Bit 3 of the wrapper's attributes."""
    inner = message(b"v")
    (found,) = decode_records(message(gzip.compress(inner), codec=1 | 8, offset=1)).batches
    assert found.timestamp_type == "LogAppendTime"
    assert [r.timestamp for r in found.records] == [1234]


def test_a_wrapper_in_a_wrapper_is_not_opened() -> None:
    """As in Kafka: no depth for an attacker to choose."""
    twice = message(gzip.compress(message(gzip.compress(message(b"v")), codec=1)), codec=1)
    (found,) = decode_records(twice).batches
    assert found.records == []
    assert "inside" in (found.fault or "")


def test_damage() -> None:
    """Lengths that do not fit, noise in a wrapper, a wrapper without a value."""
    blob = bytearray(message(b"value"))
    blob[26] = 0x7F
    assert decode_records(blob).batches[0].fault
    assert decode_records(message(gzip.compress(b"noise"), codec=1)).batches[0].fault
    assert decode_records(message(b"noise", codec=1)).batches[0].fault
    assert decode_records(message(None, codec=1)).batches[0].count == 0


@pytest.mark.parametrize("compiled", [True, False])
def test_counting_makes_no_record(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a small frame that wraps thousands of messages is counted, and placed, without an object for any of them."""
    blob = message(gzip.compress(message(b"v", offset=3) * 4999 + message(b"v", offset=7)), codec=1, offset=100)

    def fail(*_: object) -> None:
        raise AssertionError("a record was made")

    with monkeypatch.context() as patch:
        patch.setattr(legacy, "Record", fail)
        patch.setattr("kcap.kernels.worthwhile", lambda _: compiled)
        assert count_wrapped(blob, 0, len(blob), len(blob)) == 5000
        (found,) = decode_records(blob).batches
        assert (found.base_offset, found.last_offset, found.count) == (96, 100, 5000)
    assert [record.offset for record in found.records] == [96] * 4999 + [100]


def test_records_of_a_wrapper_leave_one_by_one() -> None:
    """A table takes those that it has room for."""
    blob = message(gzip.compress(message(b"v") * 3), codec=1)
    (found,) = decode_records(blob).batches
    each = found.each(legacy.Contents())
    assert next(each).value == b"v"
    assert found._contents is None


def test_what_fails_on_a_wrapper_costs_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header of the wrapper stays, and so does the next batch."""
    monkeypatch.setattr(legacy, "inflate", lambda *_: 1 // 0)
    first, second = decode_records(message(gzip.compress(message(b"v")), codec=1, offset=5) + message(b"w")).batches
    assert (first.last_offset, first.count, first.records) == (5, 0, [])
    assert "ZeroDivisionError" in (first.fault or "")
    assert second.count == 1
