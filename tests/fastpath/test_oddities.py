"""What kernels met is reported as the reference path reports it."""

from dataclasses import replace
from operator import attrgetter
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.net.tcp import SYN
from kcap.weird import WeirdKind
from tests.fastpath.both import agree
from tests.fastpath.test_close_kernels import ENDS, turn
from tests.fastpath.test_engine import steady
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


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from((*ENDS, "cut", *8 * ["late"]))), max_size=20),
    st.integers(1, 60), st.sampled_from((8, 64)), st.integers(1, 12),
)  # fmt: skip
def test_late_responses_among_others(turns: list[tuple[int, int, str]], size: int, step: int, most: int) -> None:
    """Several connections have late responses, and some give reason to report something else; the order is that of packets,
    since what is reported first is kept where there is no room for all.
    """
    taps = [Tap(5000 * place, 7000 * place, port=40_000 + place).open() for place in range(3)]
    now_ns = 1_000_000_000
    for tap in taps:
        for number in range(99, 108):
            tap.client(metadata(number))
        tap.server(metadata_answer(99))
        turn(tap, 0, "fin", 0)
        now_ns = max(now_ns, tap.time_ns)
    oldest = [100, 100, 100]
    for number, (place, side, what) in enumerate(turns, 200):
        tap = taps[place]
        tap.time_ns = max(now_ns, tap.time_ns)
        if what in ("late", "cut"):
            tap.server(metadata_answer(oldest[place], 40))
            oldest[place] += 1
            tap.segments[-1] = replace(tap.segments[-1], cut=200 if what == "cut" else 0)
        else:
            turn(tap, side, what, number)
        now_ns = tap.time_ns
    with patch.object(limits, "WEIRDS_MAX", most):
        agree(sorted((one for tap in taps for one in tap.segments), key=attrgetter("time_ns")), size, step)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 2), st.booleans(),
    st.sampled_from(("fin", "server", "rst", "server rst", "open")), st.integers(1, 40), st.integers(1, 9),
)  # fmt: skip
def test_a_response_without_its_end_stays_in_the_fast_path(
    pieces: list[int], waiting: int, late: bool, end: str, size: int, step: int
) -> None:
    """A connection ends within a response, which is late where the client's FIN came before: no object is ever made."""
    tap, answer, at_byte = steady(4), metadata_answer(103, 40), 8
    for number in range(103, 104 + waiting):
        tap.client(metadata(number))
    if late:
        turn(tap, 0, "fin", 0)
    tap.send(1, answer[:at_byte])
    for piece in pieces:
        tap.send(1, answer[at_byte : at_byte + piece])
        at_byte += piece
    assert at_byte < len(answer)
    if end != "open":
        turn(tap, int(late or "server" in end), {"server": "fin", "server rst": "rst"}.get(end, end), 0)
    other = Tap(port=50_000, time_ns=tap.time_ns + limits.CONNECTION_LINGER_NS)
    other.add(0, SYN)
    assert agree([*tap.segments, *other.segments], size, step).own == 2
