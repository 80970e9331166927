"""Batch headers as a kernel reads them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.records import header_facts as facts
from kcap.records.header_facts import header_facts
from kcap.records.header_kernels import read_headers
from kcap.records.record_sets import decode_records
from tests.records.batches import batch, message, record

PIECES = (
    batch(record(0), base=(1 << 63) - 1), batch(record(0) + record(1), 2, base=40), batch(record(0), 1, 3, 0x08),
    batch(record(0), attributes=0x20), batch(record(0), attributes=0x40), batch(b"", -5), message(b"v", 0), message(b"w", 1),
    batch(record(0))[:-2], b"", bytes(70), b"\xff" * 70,
)  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=4), min_size=1, max_size=6), st.integers(0, 70), st.integers(0, 4))
def test_facts_are_those_of_the_batches(fields: list[list[bytes]], cut: int, room: int) -> None:
    """Law: of every field that is not left to the other path, cut anywhere; too little room changes only what is listed."""
    starts = np.cumsum([0, *(len(b"".join(pieces)) for pieces in fields)])
    data = np.frombuffer(b"".join(map(b"".join, fields)), np.uint8)
    ends = np.maximum(starts[1:] - cut, starts[:-1])
    starts = starts[:-1]
    found = np.full((facts.FACTS, len(fields)), facts.NONE)
    found[: facts.COUNTS] = 0
    listed = np.zeros((room, 5), np.int64)
    count = read_headers(data, starts, ends, found, listed)
    spans = []
    for field, (low, high) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        batches = decode_records(data[low:high].data).batches
        wanted = header_facts(batches)
        assert found[facts.OLD, field] >= wanted[facts.OLD]
        if not found[facts.OLD, field]:
            assert found[:, field].tolist() == wanted
            spans += [[field, low + each.start, low + each.end, each.crc, each.codec_id] for each in batches]
    assert count == len(spans)
    assert listed[:count].tolist() == spans[:room]


def test_an_absent_field_has_nothing() -> None:
    found = np.zeros((facts.FACTS, 1), np.int64)
    assert read_headers(np.zeros(9, np.uint8), np.array([-1]), np.array([-1]), found, np.zeros((1, 5), np.int64)) == 0
    assert not found.any()
