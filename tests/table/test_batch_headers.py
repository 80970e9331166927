"""Facts from the headers of batches: those of the batches one by one."""

import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.arrays.arrow import of_type
from kcap.records.record_sets import decode_records
from kcap.table import batch_headers
from kcap.table.batch_headers import COLUMNS, BatchFacts
from kcap.table.partitions import KINDS
from tests.records.batches import batch as magic2
from tests.records.batches import message, record


def facts(buffer: Any, starts: Sequence[int], ends: Sequence[int]) -> dict[str, list[Any]]:
    made = BatchFacts(buffer, np.array(starts, np.int64), np.array(ends, np.int64))
    kinds = {name: KINDS.get(name, KINDS["records"]) for name in COLUMNS}
    return {name: of_type(made.column(name, kind), kind).to_pylist() for name, kind in kinds.items()}


def test_sums_and_first_batch() -> None:
    one, two = magic2(record(0, b"a") + record(1, b"b"), 2, base=40), magic2(record(0, b"c"), base=42)
    blob = b"xx" + one + two
    found = facts(bytearray(blob), [2, -1], [len(blob), -1])
    assert (found["batches"][0], found["records"][0], found["bytes"][0]) == (2, 3, len(one + two))
    assert (found["codec"][0], found["magic"][0], found["mixed_codec"][0], found["crc_ok"][0]) == ("none", 2, False, True)
    assert found["next_offset"][0] == 43
    assert all(found[name][1] is None for name in COLUMNS), "a message without records"


def test_damage_and_cuts() -> None:
    """A flipped byte shows in the checksum; a batch without its end does not count."""
    blob = bytearray(magic2(record(0, b"a"), base=1))
    cut = facts(bytes(blob) + bytes(blob)[:-1], [0], [2 * len(blob) - 1])
    assert (cut["batches"], cut["crc_ok"]) == ([1], [True])
    blob[-1] ^= 1
    assert facts(blob, [0], [len(blob)])["crc_ok"] == [False]
    assert facts(b"", [0], [0])["batches"] == [0]


def test_old_messages_have_no_times() -> None:
    """Magic 0 has neither timestamps nor producers."""
    blob = message(b"v", 0)
    found = facts(blob, [0], [len(blob)])
    assert (found["records"], found["magic"]) == ([1], [0])
    assert found["timestamp_type"] == found["first_timestamp_ms"] == found["max_timestamp_ms"] == found["producer_id"] == [None]


PIECES = (
    magic2(record(0, b"a"), base=7), magic2(record(0, b"a") + record(1, b"b"), 2, base=40), message(b"v", 0), message(b"w", 1),
    magic2(record(0, b"c"), base=3)[:-2], b"", bytes(30), b"\xff" * 70,
)  # fmt: skip


@pytest.mark.parametrize("few", [0, 16])
@given(fields=st.lists(st.lists(st.sampled_from(PIECES), max_size=4), max_size=40), cut=st.integers(0, 40))
def test_columns_are_those_of_the_batches(few: int, fields: list[list[bytes]], cut: int) -> None:
    """Law: whatever follows whatever, and however many fields there are."""
    buffer, starts, ends = bytearray(), [], []
    for pieces in fields:
        starts.append(len(buffer))
        buffer += b"".join(pieces)
        ends.append(max(starts[-1], len(buffer) - cut))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_headers, "FEW_NS", few * batch_headers.FIELD_NS)
        found = facts(buffer, starts, ends)
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        batches = decode_records(bytes(buffer[start:end])).batches
        assert found["batches"][at] == len(batches)
        assert found["records"][at] == sum(max(0, batch.count) for batch in batches)
        controls = [max(0, batch.count) for batch in batches if batch.is_control]
        assert found["control_records"][at] == (sum(controls) if batches else None)
        if not batches:
            assert found["codec"][at] is found["crc_ok"][at] is found["next_offset"][at] is None
            continue
        first = batches[0]
        assert (found["codec"][at], found["magic"][at]) == (first.codec, first.magic)
        assert found["crc_ok"][at] == all(batch.crc_ok for batch in batches)
        assert found["next_offset"][at] == batches[-1].last_offset + 1
        latest = max(batch.max_timestamp for batch in batches)
        assert found["max_timestamp_ms"][at] == (None if latest == -1 else latest)
        assert found["timestamp_type"][at] == (None if first.timestamp_type == "NoTimestampType" else first.timestamp_type)
        assert found["producer_id"][at] == (None if first.producer_id == -1 else first.producer_id)


def test_wrapped_messages_are_not_kept() -> None:
    """A field may have thousands of wrappers with hundreds of thousands of messages each; only how many they are is needed."""
    blob = message(gzip.compress(message(b"v", offset=4) * 3), codec=1) * 2
    found = BatchFacts(blob, np.array([0]), np.array([len(blob)]))
    batches = found._read[0]
    assert [batch.count for batch in batches] == [3, 3]
    assert all(batch._contents is None for batch in batches)
    assert [len(batch.records) for batch in batches] == [3, 3]
