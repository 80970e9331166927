"""What kernels met is reported as the reference path reports it."""

from kcap.net.tcp import ACK, FIN
from kcap.weird import WeirdKind
from tests.fastpath.both import agree
from tests.fastpath.test_resync_kernels import both
from tests.support.wire import Tap, metadata, metadata_answer


def test_each_boundary_that_was_lost_is_reported_once_with_its_place() -> None:
    """Law: the counts and first sightings are those of the reference path."""
    found = agree(both(74, [4, 5, 4, 2]), 12, 4)
    counts = dict.fromkeys((WeirdKind.BOUNDARY_LOST, WeirdKind.RESYNCED, WeirdKind.UNANSWERED), 0)
    for weird, count in found.weirds:
        counts[weird.kind] += count
        assert weird.packet > 0
    assert counts[WeirdKind.BOUNDARY_LOST] == counts[WeirdKind.RESYNCED] == 6
    assert counts[WeirdKind.UNANSWERED] >= 6


def test_late_responses_and_unfinished_ones_are_reported_where_they_are() -> None:
    """Law: kind, place and order are those of the reference path, in walks of any size."""
    taps = []
    for number in range(6):
        tap = Tap(port=41_000 + number, time_ns=10**12 + number * 7).open()
        for at in range(1, 30):
            tap.client(metadata(at)).server(metadata_answer(at))
        tap.client(metadata(30) + metadata(31)).server(metadata_answer(31, number))
        if number % 2:
            tap.server(metadata_answer(32))
        tap.client(metadata(33))
        tap.add(0, FIN | ACK)
        tap.next[0] += 1
        tap.server(metadata_answer(33)[: -3 * (number % 3 == 1) or None])  # late, for its client has ended
        tap.add(1, FIN | ACK)
        taps.append(tap)
    segments = sorted((segment for tap in taps for segment in tap.segments), key=lambda segment: segment.time_ns)
    for step in (3, 40, 1 << 10):
        found = agree(segments, 80, step)
    kinds = {weird.kind for weird, _ in found.weirds}
    assert {WeirdKind.LATE_RESPONSE, WeirdKind.UNANSWERED, WeirdKind.FRAME_INCOMPLETE} <= kinds
    assert found.fast_rows > 100
