"""Fragments in any order and number give their datagram, within bounds."""

from itertools import pairwise
from random import Random
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from kcap.limits import FRAGMENT_DATAGRAMS_MAX, FRAGMENT_WAIT_NS
from tests.capture.handmade import batch_of, ethernet, ipv4, ipv6, tcp
from tests.net.engines import both

WHOLE = tcp(bytes(range(200)), options=bytes(12))


def fragments4(data: bytes, cuts: list[int], ident=7) -> list[bytes]:
    edges = [0, *(cut * 8 for cut in cuts), len(data)]
    return [
        ethernet(ipv4(data[low:high], fragment=low // 8 | (0x2000 if high < len(data) else 0), ident=ident))
        for low, high in pairwise(edges)
    ]


def fragments6(data: bytes, cuts: list[int], before=b"") -> list[bytes]:
    edges = [0, *(cut * 8 for cut in cuts), len(data)]
    out = []
    for low, high in pairwise(edges):
        header = pack(">BBHI", 6, 0, low | (high < len(data)), 99)
        out.append(ethernet(ipv6(before + header + data[low:high], protocol=0 if before else 44), 0x86DD))
    return out


@given(st.sets(st.integers(1, 28), max_size=6), st.randoms(use_true_random=False), st.sampled_from([fragments4, fragments6]))
def test_fragments_in_any_order_and_twice_give_the_datagram_once(cuts, rng, split):
    parts = split(WHOLE, sorted(cuts))
    rng.shuffle(parts)
    last = parts[-1]
    doubled = [part for part in parts[:-1] for _ in range(rng.randint(1, 2))]
    got, weirds = both(batch_of(*doubled, last), finish=True)
    assert [row[8:] for row in got] == [(200, bytes(range(200)))]
    assert got[0][0] == len(doubled) + 1
    assert not weirds.seen


def test_copies_after_the_datagram_are_no_loss():
    parts = fragments4(WHOLE, [4, 8])
    got, weirds = both(batch_of(*parts, parts[2], parts[0]), finish=True)
    assert len(got) == 1
    assert not weirds.seen


def test_datagrams_in_flight_are_told_apart():
    a, b = fragments4(WHOLE, [5], 1), fragments4(tcp(b"other" * 20), [5], 2)
    got, _ = both(batch_of(a[0], b[0], b[1], a[1]))
    assert [row[9] for row in got] == [b"other" * 20, bytes(range(200))]
    assert [row[0] for row in got] == [3, 4]


def test_where_fragments_overlap_the_one_that_starts_first_wins():
    parts = [*fragments4(WHOLE, [10]), ethernet(ipv4(b"?" * 32, fragment=0x2000 | 8))]
    got, _ = both(batch_of(parts[0], parts[2], parts[1]))
    assert got[0][9] == bytes(range(48)) + b"?" * 16 + bytes(range(64, 200))


def test_a_cut_fragment_ends_what_is_known():
    first, second, third = fragments4(WHOLE, [10, 20])
    got, _ = both(batch_of(first, second[: 14 + 20 + 8], third, wire=14 + 20 + 80))
    assert got[0][8:] == (200, bytes(range(80 - 32 + 8)))


def test_a_missing_fragment_is_told_at_the_end_or_after_the_wait():
    parts = fragments4(WHOLE, [4])
    got, weirds = both(batch_of(parts[1]), finish=True)
    assert not got
    assert weirds.kinds == ["fragments_incomplete"]
    later = batch_of(parts[0], parts[1], step_ns=FRAGMENT_WAIT_NS + 1)
    got, weirds = both(later, finish=True)
    assert not got
    assert weirds.kinds == ["fragments_incomplete"] * 2
    assert [packet for _, _, _, packet, _ in weirds.seen] == [1, 2]


def test_more_datagrams_than_are_kept_lose_the_oldest():
    parts = [fragments4(WHOLE, [4], ident)[0] for ident in range(FRAGMENT_DATAGRAMS_MAX + 3)]
    Random(1).shuffle(parts)
    _, weirds = both(batch_of(*parts))
    assert weirds.kinds == ["fragments_limit"] * 3
    assert [packet for _, _, _, packet, _ in weirds.seen] == [1, 2, 3]


def test_a_datagram_that_grows_without_end_is_given_up():
    parts = [ethernet(ipv4(bytes(1400), fragment=0x2000 | place)) for place in range(1, 120)]
    _, weirds = both(batch_of(*parts), finish=True)
    assert "fragments_limit" in weirds.kinds


def test_pieces_in_the_worst_order_are_looked_at_once() -> None:
    """Operations counted: the cursor of what is there without a hole moves once over each piece."""
    from kcap.net.fragments import Datagram, FragmentPlace

    datagram = Datagram(FragmentPlace(0, 1, 0, 0))
    datagram.length = 8 * 2000
    for at in range(1999, 0, -1):
        datagram.add(8 * at, bytes(8), 8)
        assert (datagram.reached, len(datagram.apart)) == (0, 2000 - at)
        assert datagram.join() is None
    datagram.add(0, bytes(8), 8)
    assert (datagram.reached, datagram.apart) == (16_000, [])
    assert datagram.join() == (bytes(16_000), 16_000)
