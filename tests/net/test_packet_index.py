"""Packets by number: wherever they are looked for, those with data are found, and no others."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.net.packet_index import PacketIndex
from kcap.net.segment_columns import columns_of
from tests.support.wire import Tap, batch, metadata, metadata_answer

TAP = Tap().open()
for number in range(6):
    TAP.client(metadata(number)).server(metadata_answer(number), size=20)
NUMBERS = st.integers(1, len(TAP.segments) + 3)


@given(st.lists(NUMBERS), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3), st.booleans(), st.integers(1, 9))
def test_what_was_asked_for_is_found(singles: list[int], ranges: list[tuple[int, int]], columns: bool, size: int) -> None:
    noted = PacketIndex(singles, ranges)
    for first in range(0, len(TAP.segments), size):
        segments = batch(TAP.segments[first : first + size], first + 1)
        noted.take(columns_of(segments) if columns else segments)
    wanted = {
        (segment.flow, at)
        for at, segment in enumerate(TAP.segments, 1)
        if segment.payload and (at in singles or any(low <= at <= high for low, high in ranges))
    }
    assert {(flow, at) for (_, flow), found in noted.found.items() for at, _ in found} == wanted
