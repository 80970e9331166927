"""Laws of offers: the order in which they become known changes nothing, and a row has its server's offer of its own time."""

import pickle
import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Options
from kcap.facts.api_versions import Offer
from kcap.facts.merge import FactsRecorder, merged, tracker_of
from kcap.facts.offer_history import OfferHistory
from kcap.facts.tracker import MetadataTracker
from kcap.session import Capture
from kcap.table.table_builders import TableRequest
from spark_jobs.table_rows import Together, finished
from tests.support import messages as m
from tests.support.shared import Shared
from tests.support.wire import metadata, metadata_answer, request

SERVER = "10.0.0.1", 9092
OFFERS = [Offer({3: (0, 9), 18: (0, 4)}), Offer({3: (4, 12), 12: (0, 4), 18: (0, 4)}), Offer({3: (0, 2), 18: (0, 4)})]
SECOND = 10**9
COLUMNS = ["connection", "exchange", "version_verdict", "api_version", "api_key", "request_first_ns", "software_name"]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=30, unique_by=lambda one: one[0]))
def test_the_last_offer_before_a_request_counts(offers: list[tuple[int, int]]) -> None:
    history = OfferHistory()
    for time_ns, at in sorted(offers):
        assert history.add(SERVER, time_ns, OFFERS[at])
    times = sorted(offers)
    rows = np.arange(-1, 62)
    numbers, offered = history.of_rows(np.zeros(len(rows), np.int64), [SERVER], lambda: rows)
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        want = OFFERS[times[max(bisect_right([time for time, _ in times], row) - 1, 0)][1]]
        assert history.at(SERVER, row) is want
        assert offered[number] == (SERVER, want)
    assert history.latest(SERVER) is OFFERS[times[-1][1]]
    common = history.common(SERVER)
    assert common is not None
    assert common.ranges[3][1] == min(OFFERS[at].ranges[3][1] for _, at in offers)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=12), st.randoms())
def test_offers_that_come_late_find_their_place(offers: list[tuple[int, int]], chance: random.Random) -> None:
    """At most repetitions in the middle of a run, which are not kept one by one, are missing where a late offer splits it."""
    history, late = OfferHistory(), offers.copy()
    chance.shuffle(late)
    for time_ns, at in late:
        history.add(SERVER, time_ns, OFFERS[at])
    runs = history.runs(SERVER)
    order = [(run.since, run.offer.packed) for run in runs]
    assert order == sorted(order)
    assert all(one.until <= two.since and one.offer is not two.offer for one, two in pairwise(runs))
    assert {(run.since, run.offer) for run in runs} <= {(time_ns, OFFERS[at]) for time_ns, at in offers}
    first, last = (pick(offers, key=lambda one: (one[0], OFFERS[one[1]].packed)) for pick in (min, max))
    assert history.latest(SERVER) is OFFERS[last[1]]
    assert history.at(SERVER, -1) is OFFERS[first[1]]


def test_changes_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OFFERS_KEPT", 3)
    history = OfferHistory()
    assert [history.add(SERVER, at, OFFERS[at % 2]) for at in range(5)] == [True, True, True, True, False]
    assert history.at(SERVER, 9) is OFFERS[1]


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One address that offers Metadata up to 9, from second 20 on 4 to 12, from 30 on up to 9 again; clients that ask for the
    offer, clients that do not, and one that was there before the capture began; all of them request versions 1 to 12."""
    stories: list[Any] = []
    for at, offer in ((10, OFFERS[0]), (14, OFFERS[0]), (20, OFFERS[1]), (25, OFFERS[1]), (30, OFFERS[0]), (37, OFFERS[0])):
        story = m.began(41_000 + at, at * SECOND)
        story.ask(m.api_versions(1), m.api_versions_answer(1, offer.ranges))
        for number, version in enumerate((8, 9, 12) if offer is OFFERS[1] else (8, 9), 2):
            story.client(request(3, version, number))
        stories.append(story.close())
    for at in range(4, 44, 3):
        story = m.began(42_000 + at, at * SECOND)
        for number, version in enumerate((1, 3, 4, 10, 12), 1):
            story.time_ns += round(0.3 * SECOND)
            story.ask(metadata(number), metadata_answer(number)) if version == 1 else story.client(request(3, version, number))
        stories.append(story.close())
    before = m.Story(port=43_000, client_isn=43_000, time_ns=2 * SECOND)
    for number in range(1, 41):
        before.time_ns += SECOND
        before.ask(metadata(number), metadata_answer(number))
    return m.saved(tmp_path_factory.mktemp("offers") / "upgraded.pcap", *stories, before)


Verdict = tuple[str, int]


def verdicts(batches: Sequence[pa.RecordBatch]) -> dict[Verdict, Any]:
    rows = (row for batch in batches for row in batch.to_pylist())
    return {(row["connection"], row["exchange"]): row["version_verdict"] for row in rows}


def one_reading(path: Path, jobs: int = 1) -> dict[Verdict, Any]:
    return verdicts(list(Capture([str(path)], Options(jobs=jobs)).exchanges(COLUMNS).record_batches()))


def in_shards(path: Path, split: int, shards: int) -> dict[Verdict, Any]:
    work, facts, made = Together.of([TableRequest.of("exchanges", COLUMNS)]), [], []
    for reader in Shared([path], split, shards).readers():
        tracker = MetadataTracker(partial=True)
        recorder = FactsRecorder(tracker)
        made += [batch for _, batch in work.share(reader, tracker, recorder)]
        facts.append(pickle.loads(pickle.dumps(recorder.close())))
    return verdicts(list(finished(work.makers["exchanges"], tracker_of(merged(facts)))(made)))


def test_a_row_has_the_offer_of_its_time(upgraded: Path) -> None:
    """Law: the server's offer when the request was sent, its first one before that, for connections that did not ask."""
    rows = Capture([str(upgraded)]).exchanges(COLUMNS).to_arrow().to_pylist()
    found = {
        (row["request_first_ns"] // SECOND, row["api_version"]): row["version_verdict"]
        for row in rows
        if not row["software_name"]
    }
    assert len(found) > 80
    for (second, version), verdict in found.items():
        first, last = (4, 12) if 20 <= second < 30 else (0, 9)
        want = "above_broker_max" if version > last else "below_broker_min" if version < first else "unnegotiated"
        assert verdict == want or (version == 1 and verdict == "ok" and want == "unnegotiated"), (second, version)
    assert {row["version_verdict"] for row in rows if row["software_name"]} == {"ok", "not_highest"}


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 7, 20, 1 << 13])
def test_batches_and_engines_change_no_verdict(
    monkeypatch: pytest.MonkeyPatch, upgraded: Path, rows: int, fast_path: bool
) -> None:
    want = one_reading(upgraded)
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", rows)
    monkeypatch.setattr(limits, "FEED_PACKETS", 5)
    monkeypatch.setattr(limits, "FEED_PACKETS_MIN", 5)
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0 if fast_path else 1 << 60)
    assert one_reading(upgraded) == want
    if rows in (7, 1 << 13):
        assert one_reading(upgraded, jobs=2) == want


@pytest.mark.parametrize(("split", "shards"), [(1 << 20, 1), (2_000, 2), (5_000, 5), (1_000, 13)])
def test_shards_change_no_verdict(upgraded: Path, split: int, shards: int) -> None:
    assert in_shards(upgraded, split, shards) == one_reading(upgraded)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), max_size=5),
    st.lists(st.integers(0, 9), min_size=1, max_size=5).map(sorted),
    st.integers(0, 1),
)
def test_equal_offers_together_are_those_one_by_one(before: list[tuple[int, int]], times: list[int], which: int) -> None:
    """Law: where they continue what there is, and nothing is taken where they do not."""
    one_by_one, together = OfferHistory(), OfferHistory()
    for history in (one_by_one, together):
        for time_ns, at in before:
            history.add(SERVER, time_ns, OFFERS[at])
    unchanged = pickle.dumps(together.runs(SERVER))
    if not together.continues(SERVER, np.array(times), OFFERS[which]):
        assert before
        assert pickle.dumps(together.runs(SERVER)) == unchanged
        return
    for time_ns in times:
        one_by_one.add(SERVER, time_ns, OFFERS[which])
    assert one_by_one.runs(SERVER) == together.runs(SERVER)
