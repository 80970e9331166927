"""What shares told, put together, is what one who saw everything knows."""

import pickle
from pathlib import Path

import kcap
from kcap.session import Reading
from kcap.table.exchanges import ExchangeTable
from kcap.table.facts import broker_rows, topic_rows
from kcap.table.learned import Learner
from kcap.table.merging import Facts, Witness, learner_of, merged
from kcap.table.schema import choose
from tests.support.shared import Shared

COLUMNS = choose("exchanges", ["broker_id", "topics", "version_verdict"])


def learned(shared: Shared) -> Facts:
    facts = []
    for portion in shared.portions():
        learner = Learner()
        witness, table = Witness(learner), ExchangeTable(COLUMNS, portion.capture_files, learner)
        for batch in portion.batches():
            if len(batch):
                table.turn(batch)
                witness.saw(batch)
        facts.append(pickle.loads(pickle.dumps(witness.close())))
    return merged(facts)


def test_facts_of_shares_are_those_of_the_whole(pcaps: Path) -> None:
    """Law: topic names, brokers and offers are those of one reading, with the same tellers, in any order of the shares."""
    for name in ("cluster-startup.pcap", "java-transactions.pcap", "old-java-new-broker.pcap"):
        facts = learned(Shared([pcaps / name], 20_000, 6))
        learner = learner_of(facts)
        capture = kcap.open(pcaps / name)
        for table, rows in (("topic_names", topic_rows(learner)), ("brokers", broker_rows(learner, facts.servers))):
            assert sorted(map(repr, rows)) == sorted(map(repr, capture.table(table).to_arrow().to_pylist())), (name, table)
        whole = Learner()
        reading, made = Reading([str(pcaps / name)]), None
        for batch in reading.batches():
            made = made or ExchangeTable(COLUMNS, reading.capture_files, whole)
            if len(batch):
                made.turn(batch)
        assert learner.offers.keys() == whole.offers.keys()
        assert all(learner.offers[server].ranges == whole.offers[server].ranges for server in whole.offers)
        assert {server: learner.brokers.identify(server) for server in facts.servers} == {
            server: whole.brokers.identify(server) for server in facts.servers
        }


def test_the_order_of_telling_decides() -> None:
    """An id keeps the first name it was told, a server the last answer."""
    early, late = Facts(), Facts()
    early.names["id"], late.names["id"] = ((1, "C", 1), "old"), ((2, "A", 1), "new")
    for parts in ([early, late], [late, early]):
        assert learner_of(merged(parts)).topics.names["id"] == "old"
