"""Laws of verdicts: by the broker's own answer, the connection's before its server's, and nothing without one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap import limits
from kcap.arrays import vectors
from kcap.arrays.vectors import Vector
from kcap.facts.api_versions import Offer
from kcap.facts.version_verdicts import (
    ABOVE,
    BELOW,
    NONE,
    OK,
    UNNEGOTIATED,
    VERDICTS,
    VERSIONS,
    Offered,
    UsedVersions,
    by_offer,
    final_verdict,
)
from kcap.schema.registry import api_key
from kcap.table.schema import choose
from tests.support import messages as m
from tests.support.tables import ExchangeTable
from tests.support.wire import metadata, metadata_answer, request

COLUMNS = ["api", "api_version", "version_verdict"]
RANGES = {3: (1, 12), 12: (0, 4), 18: (0, 4)}


def verdicts(path: Path) -> list[str | None]:
    return [row["version_verdict"] for row in m.rows_of(path, COLUMNS)]


def test_by_the_answer_that_the_connection_was_given(tmp_path: Path) -> None:
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES)).ask(metadata(2), metadata_answer(2))
    for at, version in enumerate((0, 12, 13, 99), 3):
        story.client(request(3, version, at))
    story.client(request(0, 3, 8)).client(request(4, 1, 9))
    found = verdicts(m.saved(tmp_path / "a.pcap", story.close()))
    assert found[:6] == ["ok", "not_highest", "below_broker_min", "ok", "above_broker_max", "above_broker_max"]
    assert found[6:] == ["above_broker_max", "below_broker_min"], "not offered: too new, or gone (LeaderAndIsr)"


def test_a_connection_that_did_not_ask(tmp_path: Path) -> None:
    """Its server's answer to another connection shows what is out of range; what is in range was luck."""
    other = m.began(40_001).ask(m.api_versions(1), m.api_versions_answer(1, RANGES)).close()
    story = (
        m.began(time_ns=10**12).ask(metadata(1), metadata_answer(1)).client(request(3, 0, 2)).client(request(3, 13, 3)).close()
    )
    silent = m.began(40_002, 10**12).ask(metadata(1), metadata_answer(1)).close()
    assert verdicts(m.saved(tmp_path / "a.pcap", silent)) == ["unnegotiated"]
    found = verdicts(m.saved(tmp_path / "b.pcap", other, story))
    assert found == ["ok", "unnegotiated", "below_broker_min", "above_broker_max"]


def test_a_connection_whose_beginning_was_not_captured(tmp_path: Path) -> None:
    """It may have asked: only its server's answer can tell, and where there is none nothing does."""
    story = m.began()
    del story.segments[:]
    story.ask(metadata(5), metadata_answer(5)).ask(metadata(6), metadata_answer(6)).close()
    assert verdicts(m.saved(tmp_path / "a.pcap", story)) == [None, None]
    other = m.began(40_001, 10**12).ask(m.api_versions(1), m.api_versions_answer(1, RANGES)).close()
    assert verdicts(m.saved(tmp_path / "b.pcap", story, other)) == ["ok"] * 3


def test_an_answer_that_was_not_captured_whole_offers_nothing(tmp_path: Path) -> None:
    """What is missing would look as if it were not offered; that no request was sent would be untrue."""
    for side in ("cut", "lost"):
        story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
        at = len(story.segments) - 1
        if side == "lost":
            story.segments = story.segments[:at]
        story.ask(metadata(2), metadata_answer(2)).client(request(4, 1, 3)).close()
        path = m.saved(tmp_path / f"{side}.pcap", story, cut={at: 40} if side == "cut" else {})
        rows = m.rows_of(path, [*COLUMNS, "software_name"])
        assert {row["version_verdict"] for row in rows} == {None}, side
        assert {row["software_name"] for row in rows} == {"lib"}


def test_what_only_brokers_send_is_no_example(tmp_path: Path) -> None:
    ranges = {24: (0, 5), 18: (0, 4)}
    story = (
        m.began().ask(m.api_versions(1), m.api_versions_answer(1, ranges)).client(request(24, 3, 2)).client(request(24, 5, 3))
    )
    assert verdicts(m.saved(tmp_path / "a.pcap", story.close())) == ["ok"] * 3


def test_a_refused_api_versions_was_asked_too_high(tmp_path: Path) -> None:
    story = m.began().ask(m.api_versions(1, asked=4), m.refused_answer(1))
    story.ask(m.api_versions(2), m.api_versions_answer(2, RANGES))
    assert verdicts(m.saved(tmp_path / "a.pcap", story.close())) == ["above_broker_max", "ok"]


def test_not_highest_only_where_the_same_software_did_better_and_the_broker_offers_it(tmp_path: Path) -> None:
    stories = []
    for at, (software, high, used) in enumerate([("a", 12, 1), ("a", 12, 9), ("b", 12, 1), ("a", 8, 1), ("a", 12, 9)]):
        story = m.began(40_000 + at, 10**9 + at * 10**9)
        story.up = story.up[:4] + bytes([10, 0, 0, 50 + at]) + story.up[8:]
        story.segments.clear()
        story.open()
        story.ask(m.api_versions(1, software), m.api_versions_answer(1, RANGES | {3: (0, high)}))
        story.client(request(3, used, 2)).close()
        stories.append(story)
    rows = m.rows_of(m.saved(tmp_path / "a.pcap", *stories), [*COLUMNS, "server_ip"])
    found = {row["server_ip"]: row["version_verdict"] for row in rows if row["api"] == "Metadata"}
    assert list(found.values()) == ["not_highest", "ok", "ok", "ok", "ok"], "the first one is known by what came later"


def test_real_captures(pcaps: Path) -> None:
    """Negotiations described in pcaps/README.md."""
    franz = m.rows_of(pcaps / "go-franz.pcap")
    refused = [row for row in franz if row["error"] == "UNSUPPORTED_VERSION"]
    assert refused
    assert {row["version_verdict"] for row in refused} == {"above_broker_max"}
    fallback = m.rows_of(pcaps / "fallback-0.9.pcap")
    assert {row["version_verdict"] for row in fallback if row["client_id"] and "midstream" not in row["flags"]} == {
        "unnegotiated"
    }
    produce = [row for row in fallback if row["api"] == "Produce"]
    assert {(row["api_version"], row["removed_in"]) for row in produce} == {(1, "4.0")}
    raw = m.rows_of(pcaps / "raw-frames.pcap")
    found = {(row["api_key"], row["api_version"]): row["version_verdict"] for row in raw}
    assert found[18, 99] == found[3, 77] == found[999, 0] == "above_broker_max"
    assert found[1, 0] == found[4, 0] == "below_broker_min"
    assert found[0, 0] != "below_broker_min", "Kafka 4 names Produce 0 and refuses it (KAFKA-18659)"
    old = [row for row in m.rows_of(pcaps / "kafka-0.8-clients.pcap") if "midstream" not in row["flags"]]
    assert {row["version_verdict"] for row in old} == {"unnegotiated"}


@given(
    st.integers(-1, 200),
    st.integers(-1, 60),
    st.dictionaries(st.integers(0, 92), st.tuples(st.integers(0, 9), st.integers(9, 15))),
)
def test_columns_and_single_rows_agree(key: int, version: int, ranges: dict[int, tuple[int, int]]) -> None:
    offer = Offer(ranges)
    offered = Offered()
    places = offered.rows([offer, None])
    valid = np.array([key >= 0])
    keys, versions = Vector(np.array([key]), valid), Vector(np.array([version]), valid)
    offered_one, offered_none = (int(by_offer(keys, versions, places[[at]], offered)[0]) for at in (0, 1))
    assert offered_none == NONE
    if key >= 0:
        assert offered_one == final_verdict(NONE, offer, offer, key, version, used=UsedVersions(), software=None)
        silent = final_verdict(UNNEGOTIATED, offer, offer, key, version, used=UsedVersions(), software=None)
        assert silent == (UNNEGOTIATED if offered_one == OK else offered_one)
        assert offered_one in (OK, ABOVE, BELOW)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, VERSIONS - 1)), max_size=20), st.integers(0, 40))
def test_the_highest_version_used(uses: list[tuple[int, int, int]], high: int) -> None:
    used = UsedVersions()
    numbers = {at: used.number((f"lib{at}", "1")) for at in (1, 2, 3)}
    for software, key, version in uses:
        used.take(*(np.array([value]) for value in (numbers[software], key, version)))
    for software in (1, 2, 3):
        for key in range(5):
            want = max((v for s, k, v in uses if (s, k) == (software, key) and v <= high), default=-1)
            found = used.up_to(*(np.array([value]) for value in (numbers[software], key, high)))
            assert found.tolist() == [want] == [used.highest((f"lib{software}", "1"), key, high)]


def test_it_knows_when_it_knows_better() -> None:
    used = UsedVersions()
    one = np.array([used.number(("lib", "1"))])
    key, low, high = np.array([3]), np.array([1]), np.array([12])
    used.take(one, key, low)
    used.note(one, key, low, high)
    assert not used.knows_better()
    used.take(one, key, np.array([13]))
    assert not used.knows_better(), "that broker does not offer it"
    used.take(one, key, np.array([9]))
    assert used.knows_better()
    used.settle()
    assert not used.knows_better()


def test_too_many_libraries_are_not_told_apart() -> None:
    used = UsedVersions()
    for at in range(limits.SOFTWARE_KEPT):
        assert used.number((str(at), "1")) == at + 1
    assert not used.full
    assert used.number(("one more", "1")) == 0
    assert used.full


@pytest.mark.parametrize("name", ["Produce", "Fetch"])
def test_keys_fit(name: str) -> None:
    assert api_key(name) is not None


@pytest.mark.parametrize("name", ["go-franz.pcap", "librdkafka-zstd.pcap", "java-transactions.pcap"])
@pytest.mark.parametrize("marked", [0, 1 << 18])
def test_kinds_are_classified_as_rows_are(pcaps: Path, name: str, marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of connections that asked for the broker's ranges."""
    monkeypatch.setattr(vectors, "MARKED_MAX", marked)
    reading = kcap.open(pcaps / name).read()
    names = ["connection", "api_key", "api_version", "version_verdict", "error", "software_name", "software_version"]
    table, checked = ExchangeTable(choose("exchanges", names), reading.capture_files), 0
    rows = [row for batch in reading.batches() if len(batch) for row in table.turn(batch).to_pylist()]
    tracker = table.tracker
    for row in rows:
        offer = tracker.known(row["connection"]).offer
        if offer is None or row["api_key"] == 18:
            continue
        checked += 1
        verdict = final_verdict(NONE, offer, offer, row["api_key"], row["api_version"], used=tracker.used, software=None)
        assert row["version_verdict"] in (VERDICTS[verdict], "not_highest" if VERDICTS[verdict] == "ok" else "")
    assert checked > 50
