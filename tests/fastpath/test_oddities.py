"""What kernels met is reported as the reference path reports it."""

from kcap.weird import WeirdKind
from tests.fastpath.both import agree
from tests.fastpath.test_resync_kernels import both


def test_each_boundary_that_was_lost_is_reported_once_with_its_place() -> None:
    """Law: the counts and first sightings are those of the reference path."""
    found = agree(both(74, [4, 5, 4, 2]), 12, 4)
    counts = dict.fromkeys((WeirdKind.BOUNDARY_LOST, WeirdKind.RESYNCED, WeirdKind.UNANSWERED), 0)
    for weird, count in found.weirds:
        counts[weird.kind] += count
        assert weird.packet > 0
    assert counts[WeirdKind.BOUNDARY_LOST] == counts[WeirdKind.RESYNCED] == 6
    assert counts[WeirdKind.UNANSWERED] >= 6
