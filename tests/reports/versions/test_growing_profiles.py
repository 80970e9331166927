"""Laws of profiles that grow: how their rows are spread over batches changes nothing, and takes no memory."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.api_versions import Offer
from kcap.facts.version_verdicts import OK
from kcap.reports.versions.growing_profiles import (
    CODECS,
    COUNT,
    EXAMPLE,
    FIRST,
    LAST,
    GrowingProfiles,
    call_numbers,
    call_of,
    pieces,
    ranks,
    together,
)
from kcap.reports.versions.profile import Use
from kcap.reports.versions.profile_store import ProfileStore
from kcap.reports.versions.profiles import gather
from kcap.session import Capture
from tests.reports.talking import PCAPS, UIDS, of, profile, used


def test_rows_of_a_version_are_added_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that goes on takes no more memory with each batch, and its figures are those of all its rows."""
    monkeypatch.setattr(limits, "PROFILE_ROWS", 8)
    shelf, sizes = ProfileStore(), []
    shelf[UIDS[1]] = profile([(3, 1)], uid=UIDS[1])
    for _ in range(100):
        used(shelf, UIDS[1])
        shelf.settle()
        sizes.append(shelf.growing.size)
    assert max(sizes) <= 8
    assert shelf[UIDS[1]].uses[None, 1, 4] == Use(100, 5, 5, 9, verdicts=Counter({OK: 100}))


@pytest.mark.parametrize("name", ["java-transactions.pcap", "raw-frames.pcap", "sasl-raw-tokens.pcap", "fallback-0.9.pcap"])
def test_batches_and_what_is_open_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles that grow over many batches, are stored and opened again, are those of one batch."""
    whole = of(name).profiles
    for bound, value in {"ROWS_PER_BATCH": 3, "PROFILES_OPEN": 2, "PROFILE_ROWS": 1}.items():
        monkeypatch.setattr(limits, bound, value)
    parts = gather(Capture([str(PCAPS / name)]).read(keep_connections=True)).profiles
    assert list(parts) == list(whole)
    for uid, one in parts.items():
        want = whole[uid]
        want.offer, one.offer = (found.offer and Offer(found.offer.ranges).packed for found in (want, one))
        assert [probe.step for probe in one.probes] == [probe.step for probe in want.probes]
        want.probes = one.probes
        assert one == want
    assert [one.clients for one in parts.stored()] == [one.clients for one in whole.stored()]
    assert len({one.template for one in parts.stored()}) == len({one.template for one in whole.stored()})


def test_a_connection_that_is_dropped_takes_its_rows_along() -> None:
    shelf = ProfileStore()
    for uid in UIDS[:2]:
        shelf[uid] = profile([(3, 1)], uid=uid)
    before = shelf.growing.size
    shelf[UIDS[0]] = profile([(3, 1)], uid=UIDS[0])
    assert shelf.growing.size == before
    del shelf[UIDS[1]]
    assert shelf.growing.size == before // 2
    assert not list(GrowingProfiles().fold([]))


small = st.integers(0, 5)


@given(st.lists(st.tuples(small, small, small, small, small), max_size=30))
def test_rows_with_one_code_are_one(parts: list[tuple[int, int, int, int, int]]) -> None:
    """Counts are added, the first and the last time stay, and so do all bits; the order is that of the first rows."""
    rows = np.zeros((CODECS + 1, len(parts)), np.int64)
    for column, values in zip((COUNT, FIRST, LAST, EXAMPLE, CODECS), np.array(parts, np.int64).reshape(-1, 5).T):
        rows[column] = values
    codes = rows[EXAMPLE] % 3
    made = together(rows, codes)
    assert (made[EXAMPLE] % 3).tolist() == list(dict.fromkeys(codes.tolist())) or len(set(codes.tolist())) == len(codes)
    for place, code in enumerate(dict.fromkeys(codes.tolist())):
        mine = rows[:, codes == code]
        assert made[COUNT, place] == mine[COUNT].sum()
        assert (made[FIRST, place], made[LAST, place]) == (mine[FIRST].min(), mine[LAST].max())
        assert made[CODECS, place] == np.bitwise_or.reduce(mine[CODECS])


@given(st.integers(-1, 1 << 14), st.integers(-(1 << 15), (1 << 15) - 1))
def test_a_call_has_one_number(key: int, version: int) -> None:
    assert call_of(call_numbers(key, version)) == (key, version)
    assert call_numbers(key, version) < call_numbers(key + 1, -(1 << 15))


@given(st.lists(st.tuples(small, st.integers(1, 4))))
def test_ranks_count_equal_numbers_that_stand_together(runs: list[tuple[int, int]]) -> None:
    numbers = [number for number, count in runs for _ in range(count)]
    want = [place for _, some in groupby(numbers) for place, _ in enumerate(some)]
    assert ranks(np.array(numbers, np.int64)).tolist() == want


def test_pieces_end_where_they_are_told() -> None:
    made = pieces(np.arange(4), np.array([0, 3, 4]))
    assert [np.frombuffer(one, np.int64).tolist() for one in made] == [[], [0, 1, 2], [3]]
