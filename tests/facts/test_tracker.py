"""Laws of what connections tell of themselves, and of what is known of servers and topics by then."""

import tracemalloc
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import kcap
from kcap import limits
from kcap.analyzer import Analyzer
from kcap.facts import brokers
from kcap.facts.api_versions import Offer
from kcap.facts.tracker import MetadataTracker
from kcap.model import CaptureFile, SegmentBatch
from kcap.table.schema import choose
from kcap.weird import WeirdKind
from tests.support import messages as m
from tests.support.tables import ExchangeTable
from tests.support.wire import metadata as old_metadata
from tests.support.wire import metadata_answer as old_metadata_answer

LOCAL = ["exchange", "api", "software_name", "software_version", "sasl_mechanism", "principal"]


def local(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in LOCAL) for row in m.rows_of(path, LOCAL)]


def test_software_counts_from_the_exchange_that_told_it(tmp_path: Path) -> None:
    story = m.began().ask(old_metadata(1), old_metadata_answer(1))
    story.ask(m.api_versions(2, "lib", "2.1"), m.api_versions_answer(2, {3: (0, 12)}))
    story.ask(old_metadata(3), old_metadata_answer(3)).close()
    assert local(m.saved(tmp_path / "a.pcap", story)) == [
        (1, "Metadata", None, None, None, None),
        (2, "ApiVersions", "lib", "2.1", None, None),
        (3, "Metadata", "lib", "2.1", None, None),
    ]


def test_a_refused_request_tells_the_software_all_the_same(tmp_path: Path) -> None:
    story = m.began().ask(m.api_versions(1, asked=4), m.refused_answer(1)).close()
    assert local(m.saved(tmp_path / "a.pcap", story))[0][2:4] == ("lib", "1.0")


@pytest.mark.parametrize("count", [2, limits.FACT_STEPS_MAX, limits.FACT_STEPS_MAX + 1])
def test_several_exchanges_of_a_connection_count_from_each_on(tmp_path: Path, count: int) -> None:
    """Law: a few are read with those of other connections, more one by one, and rows are the same."""
    story, want = m.began(), []
    for at in range(count):
        number = 2 * at + 1
        name = None if at == 1 else f"lib{at}"
        if name is None:
            story.ask(m.api_versions(number, asked=0), m.refused_answer(number))
        else:
            story.ask(m.api_versions(number, name, "1.0"), m.api_versions_answer(number, {3: (0, 12)}))
        story.ask(old_metadata(number + 1), old_metadata_answer(number + 1))
        want += [name or "lib0"] * 2
    path, changed = m.saved(tmp_path / "a.pcap", story.close()), list[int]()
    change = MetadataTracker._change

    def counted(self: MetadataTracker, uid: str, new: Any, steps: Any, at: int) -> None:
        changed.append(at)
        change(self, uid, new, steps, at)

    with patch.object(MetadataTracker, "_change", counted):
        assert [row[2] for row in local(path)] == want
    assert len(changed) == (count if count > limits.FACT_STEPS_MAX else 0)


@pytest.mark.parametrize(
    ("mechanism", "tokens", "errors", "principals"),
    [
        ("PLAIN", [b"\0alice\0secret"], [0], ["alice"]),
        ("PLAIN", [b"\0alice\0secret"], [58], [None]),
        ("SCRAM-SHA-256", [b"n,,n=bob,r=x", b"c=biws,r=x,p=proof"], [0, 0], ["bob", "bob"]),
        ("SCRAM-SHA-512", [b"n,,n=bob,r=x", b"c=biws,r=x,p=proof"], [0, 58], ["bob", None]),
        ("GSSAPI", [b"`\x82ticket"], [0], [None]),
    ],
)
def test_who_logs_in(
    tmp_path: Path, mechanism: str, tokens: list[bytes], errors: list[int], principals: list[str | None]
) -> None:
    story = m.began().ask(m.handshake(1, mechanism), m.handshake_answer(1))
    for at, (token, error) in enumerate(zip(tokens, errors, strict=True), 2):
        story.ask(m.authenticate(at, token), m.authenticate_answer(at, error))
    story.ask(old_metadata(9), old_metadata_answer(9)).close()
    found = local(m.saved(tmp_path / "a.pcap", story))
    assert [row[4] for row in found] == [mechanism] * len(found)
    assert [row[5] for row in found] == [None, *principals, principals[-1]]


def test_raw_tokens_tell_too(tmp_path: Path) -> None:
    story = m.began().ask(m.handshake(1, "PLAIN", version=0), m.handshake_answer(1))
    story.ask(m.raw(b"\0alice\0secret"), m.raw(b"")).ask(old_metadata(2), old_metadata_answer(2)).close()
    found = local(m.saved(tmp_path / "a.pcap", story))
    assert [(row[1], row[5]) for row in found] == [("SaslHandshake", None), ("SaslToken", "alice"), ("Metadata", "alice")]


def test_an_unanswered_login_is_none(tmp_path: Path) -> None:
    story = m.began().ask(m.handshake(1, "PLAIN"), m.handshake_answer(1)).client(m.authenticate(2, b"\0alice\0secret")).close()
    assert [row[5] for row in local(m.saved(tmp_path / "a.pcap", story))] == [None, None]


def test_a_second_login_counts_from_there(tmp_path: Path) -> None:
    """Re-authentication (KIP-368) in one batch of rows: three states of one connection."""
    story = m.began()
    for at, name in enumerate((b"alice", b"bob", b"carol")):
        story.ask(m.handshake(3 * at, "PLAIN"), m.handshake_answer(3 * at))
        story.ask(m.authenticate(3 * at + 1, b"\0" + name + b"\0x"), m.authenticate_answer(3 * at + 1))
        story.ask(old_metadata(3 * at + 2), old_metadata_answer(3 * at + 2))
    found = [row[5] for row in local(m.saved(tmp_path / "a.pcap", story.close()))]
    assert found == [None, "alice", "alice", "alice", "bob", "bob", "bob", "carol", "carol"]


def test_principals_of_a_real_capture(pcaps: Path) -> None:
    """User alice logged in by every mechanism; never a password or a proof."""
    rows = m.rows_of(pcaps / "sasl-raw-tokens.pcap")
    assert {row["principal"] for row in rows} == {None, "alice"}
    logged_in = [row for row in rows if row["principal"]]
    assert {row["sasl_mechanism"] for row in logged_in} == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
    for row in rows:
        if row["error"] in ("SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"):
            assert row["principal"] is None


def test_brokers_and_names_are_those_of_the_truth(pcaps: Path) -> None:
    rows = m.rows_of(pcaps / "java-transactions.pcap")
    assert {(row["server_ip"], row["broker_id"]) for row in rows} == {
        ("127.1.0.11", 1), ("127.1.0.12", 2), ("127.1.0.13", 3),
    }  # fmt: skip
    assert {row["cluster_id"] for row in rows} == {"kcapModernClusterAAAAA"}
    assert {(row["software_name"], row["software_version"]) for row in rows} == {("apache-kafka-java", "4.4.0")}
    fetched = {name for row in rows if row["api"] in ("Fetch", "Produce") for name in row["topics"] or ()}
    assert fetched == {"orders.txin", "orders.txout"}


COLUMNS = ("packet", "time_ns", "position", "flow", "seq", "ack", "flags", "window", "payload", "captured", "length")


def stages(path: Path, size: int) -> list[list[dict[str, Any]]]:
    """Rows by what is known so far, taken whenever so many segments were read."""
    reading, analyzer, made = kcap.open(path).read(), Analyzer(), []
    names = [*LOCAL, "connection", "muted_ns", "throttle_ns", "long_poll_ns", "version_verdict", "topics", "broker_id"]
    table = ExchangeTable(choose("exchanges", names), reading.capture_files)

    def take() -> None:
        batch = analyzer.take()
        if len(batch):
            made.append(table.turn(batch).to_pylist())

    for packets in reading.files.batches():
        segments = reading.parser.parse(packets)
        for at in range(0, len(segments), size):
            few = {name: list(getattr(segments, name)[at : at + size]) for name in COLUMNS}
            analyzer.feed(SegmentBatch(segments.file, segments.buffer, **few))
            take()
    analyzer.finish()
    take()
    return made


@pytest.mark.parametrize("name", ["sasl-raw-tokens.pcap", "quota-3.9.pcap", "go-franz.pcap"])
def test_the_size_of_batches_changes_nothing(pcaps: Path, name: str) -> None:
    """Of the connection's own facts, also where an answer comes in a later batch than its request."""
    small, large = stages(pcaps / name, 1), stages(pcaps / name, 8192)
    assert len(small) > 10 * len(large)
    later = {"version_verdict", "topics", "broker_id"}  # what servers tell, other connections may know by the batch's end
    flat = [
        sorted(
            ({name: row[name] for name in row if name not in later} for batch in batches for row in batch),
            key=lambda row: (row["connection"], row["exchange"]),
        )
        for batches in (small, large)
    ]
    assert flat[0] == flat[1]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_requests_whose_answers_were_lost_tell_from_when_later_ones_were_answered(size: int, tmp_path: Path) -> None:
    """Law: however many packets are looked at together, rows know what the requests before them said."""
    story = m.began()
    for correlation, question in ((1, m.api_versions(1, "lib", "2.1")), (2, m.handshake(2, "PLAIN"))):
        story.ask(question, m.api_versions_answer(correlation, {3: (0, 12)}) if correlation == 1 else m.handshake_answer(2))
        del story.segments[-1]
    for correlation in range(3, 200):
        story.ask(old_metadata(correlation), old_metadata_answer(correlation))
    rows = [row for batch in stages(m.saved(tmp_path / "a.pcap", story.close()), size) for row in batch]
    assert {(row["software_name"], row["sasl_mechanism"]) for row in rows if row["api"] == "Metadata"} == {("lib", "PLAIN")}
    assert len(rows) == 199


def test_equal_answers_are_one_offer(tmp_path: Path) -> None:
    """So that what a batch has to look at stays small."""
    stories = [
        m.began(port, 10**9 + port).ask(m.api_versions(1), m.api_versions_answer(1, {3: (0, 12)})).close()
        for port in range(40_000, 40_020)
    ]
    reading = kcap.open(m.saved(tmp_path / "a.pcap", *stories)).read()
    table = ExchangeTable(choose("exchanges", ["version_verdict"]), reading.capture_files)
    uids: list[str] = []
    for batch in reading.batches():
        table.turn(batch)
        uids += [one.uid for one in batch.identities]
    known = [table.tracker.known(uid) for uid in uids]
    assert len(known) == 20
    assert len({id(facts) for facts in known}) == 1
    assert isinstance(known[0].offer, Offer)


def test_answers_that_all_differ_take_less_memory_than_their_bytes() -> None:
    """Above OFFERS_KEPT different ones an offer is none, and that is reported."""
    said: list[tuple[WeirdKind, str]] = []
    tracker = MetadataTracker(lambda kind, detail, *_place: said.append((kind, detail)))
    bodies = [m.api_versions_answer(1, dict.fromkeys(range(120), (at, at + 1)))[8:] for at in range(200)]
    tracemalloc.start()
    known = [tracker._api_versions(3, b"", body) for body in bodies]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < sum(map(len, bodies)) + (1 << 20)
    assert all(facts.offer is not None for facts in known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "OFFERS_KEPT", 200)
        assert tracker._api_versions(3, b"", m.api_versions_answer(1, {3: (0, 99)})[8:]).offer is None
        assert tracker._api_versions(4, b"", bodies[0]).offer is known[0].offer
    assert said == [(WeirdKind.FACTS_LIMIT, "offers")]


def test_host_names_of_a_file_are_taken_once() -> None:
    """A file with a hundred thousand names is not read again with each batch; where there are too many, that is reported."""
    said: list[tuple[WeirdKind, str]] = []
    tracker = MetadataTracker(lambda kind, detail, *_place: said.append((kind, detail)))
    file = CaptureFile("a", "a", names={"10.0.0.1": "kafka-1"})
    taken: list[dict[str, str]] = []
    taking = tracker.brokers.resolve_names
    with patch.object(tracker.brokers, "resolve_names", lambda names: taken.append(names) or taking(names)):
        for more in ({}, {}, {"10.0.0.2": "kafka-2"}, {}):
            file.names |= more
            tracker._take_host_names([file])
    assert taken == [{"10.0.0.1": "kafka-1"}, {"10.0.0.2": "kafka-2"}]
    assert not said
    with patch.object(brokers, "HOST_NAMES_KEPT", 2):
        file.names["10.0.0.3"] = "kafka-3"
        tracker._take_host_names([file])
    assert said == [(WeirdKind.FACTS_LIMIT, "host names")]
