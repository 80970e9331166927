"""The facts of shards, merged, are those of a reader of everything."""

import pickle
from pathlib import Path

import kcap
from kcap.capture_pass import CapturePass
from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.facts.merge import Facts, FactsRecorder, merged, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.table.schema import choose
from kcap.table.side_tables import broker_rows, topic_rows
from tests.support.messages import api_versions, api_versions_answer, began, saved
from tests.support.shared import Shared
from tests.support.tables import ExchangeTable

COLUMNS = choose("exchanges", ["broker_id", "topics", "version_verdict"])


def learned(shared: Shared) -> Facts:
    facts = []
    for reader in shared.readers():
        tracker = MetadataTracker()
        witness, table = FactsRecorder(tracker), ExchangeTable(COLUMNS, reader.capture_files, tracker)
        for batch in reader.batches():
            if len(batch):
                table.turn(batch)
                witness.observed(batch)
        facts.append(pickle.loads(pickle.dumps(witness.close())))
    return merged(facts)


def offers_in(tracker: MetadataTracker) -> dict[Server, list[tuple[int, bytes]]]:
    """Each server's offers, with the times from which they count."""
    offers = tracker.offers
    return {server: [(run.since, run.offer.packed) for run in offers.runs(server)] for server in offers.servers()}


def test_facts_of_shares_are_those_of_the_whole(pcaps: Path) -> None:
    """Law: topic names, brokers and offers are those of one reading, with the same tellers, in any order of the shares."""
    for name in ("cluster-startup.pcap", "java-transactions.pcap", "old-java-new-broker.pcap"):
        facts = learned(Shared([pcaps / name], 20_000, 6))
        tracker = tracker_of(facts)
        capture = kcap.open(pcaps / name)
        for table, rows in (("topic_names", topic_rows(tracker)), ("brokers", broker_rows(tracker, facts.servers))):
            assert sorted(map(repr, rows)) == sorted(map(repr, capture.table(table).to_arrow().to_pylist())), (name, table)
        whole = MetadataTracker()
        reading, made = CapturePass([str(pcaps / name)]), None
        for batch in reading.batches():
            made = made or ExchangeTable(COLUMNS, reading.capture_files, whole)
            if len(batch):
                made.turn(batch)
        assert offers_in(tracker) == offers_in(whole) != {}
        assert {server: tracker.brokers.identify(server) for server in facts.servers} == {
            server: whole.brokers.identify(server) for server in facts.servers
        }


def test_the_order_of_telling_decides() -> None:
    """An id keeps the first name it was given, a server the last answer."""
    early, late = Facts(), Facts()
    early.names["id"], late.names["id"] = ((1, "C", 1), "old"), ((2, "A", 1), "new")
    server, offers = ("10.0.0.1", 9092), [Offer({0: (0, 1)}), Offer({0: (0, 2)})]
    early.offers[server], late.offers[server] = [(1, offers[0]), (3, offers[0])], [(2, offers[1])]
    for parts in ([early, late], [late, early]):
        tracker = tracker_of(merged(parts))
        assert tracker.topics.names["id"] == "old"
        assert [tracker.offers.at(server, at) for at in range(5)] == [offers[at] for at in (0, 0, 1, 0, 0)]


def test_a_server_that_goes_back_to_its_first_answer(tmp_path: Path) -> None:
    """Law: each answer counts from its time on, also where one share saw two equal ones and another a different one between."""
    stories, offers = [], [{3: (0, 9)}, {3: (0, 12)}, {3: (0, 9)}]
    for at, ranges in enumerate(offers):
        story = began(40_000 + 11 * at, time_ns=(1 + at) * 10**9)
        stories.append(story.ask(api_versions(1), api_versions_answer(1, ranges)))
    path = saved(tmp_path / "back.pcap", *stories)
    for shares in range(1, 8):
        (runs,) = offers_in(tracker_of(learned(Shared([path], 4096, shares)))).values()
        assert [packed for _, packed in runs] == [Offer(ranges).packed for ranges in offers]
