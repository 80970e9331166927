"""Laws of the tables of what was learned: a fact has one row, and the exchange that told it tells it."""

from pathlib import Path

import kcap
from kcap.facts.topic_names import TopicNames
from tests.support import messages as m


def test_topic_names_are_what_the_messages_tell(pcaps: Path) -> None:
    """Learned from the columns of bodies; the same as by reading every message."""
    for name in ("java-transactions.pcap", "librdkafka-zstd.pcap", "go-franz.pcap"):
        capture, names = kcap.open(pcaps / name), TopicNames()
        for exchange in capture:
            for message in (exchange.request, exchange.response):
                if message is not None:
                    names.learn(message.name, message.to_json())
        found = capture.topic_names().to_arrow().to_pylist()
        assert len(found) > 1
        assert {row["topic_id"]: row["topic"] for row in found}.items() <= names.names.items()
        log = {"__cluster_metadata"}
        told = {uuid for uuid, topic in names.names.items() if topic not in log}
        assert told <= {row["topic_id"] for row in found}


def test_who_told_a_name(tmp_path: Path) -> None:
    story = m.began().ask(m.metadata(1), m.metadata_answer(1, [(1, "10.0.0.2", 9092)], topics={m.ORDERS: "orders"}))
    story.ask(m.metadata(2), m.metadata_answer(2, [(1, "10.0.0.2", 9092)], topics={m.ORDERS: "orders"})).close()
    capture = kcap.open(m.saved(tmp_path / "a.pcap", story))
    uid = capture.exchanges(["connection"]).to_arrow().column(0)[0].as_py()
    assert capture.topic_names().to_arrow().to_pylist() == [
        {"topic_id": "AAECAwQFBgcICQoLDA0ODw", "topic": "orders", "cluster_id": "C", "connection": uid, "exchange": 1}
    ]
    assert capture.brokers().to_arrow().to_pylist() == [
        {
            "cluster_id": "C", "broker_id": 1, "host": "10.0.0.2", "port": 9092, "rack": None, "server_ip": "10.0.0.2",
            "server_port": 9092, "connection": uid, "exchange": 1,
        }
    ]  # fmt: skip


def test_brokers_of_a_real_cluster(pcaps: Path) -> None:
    rows = kcap.open(pcaps / "java-transactions.pcap").brokers(["broker_id", "host", "port", "server_ip", "cluster_id"])
    assert {tuple(row.values()) for row in rows.to_arrow().to_pylist()} == {
        (n, f"127.1.0.1{n}", 9092, f"127.1.0.1{n}", "kcapModernClusterAAAAA") for n in (1, 2, 3)
    }
    started = kcap.open(pcaps / "cluster-startup.pcap").brokers().to_arrow().to_pylist()
    assert {(row["broker_id"], row["port"]) for row in started} >= {(n, port) for n in (1, 2, 3) for port in (9092, 9093)}
    assert {row["cluster_id"] for row in started} == {"kcapModernClusterAAAAA"}


def test_host_names_that_a_capture_file_resolves(tmp_path: Path) -> None:
    """A pcapng name resolution block: two brokers of one port are told apart by their names."""
    from struct import pack

    nodes = [(1, "kafka-1", 9092), (2, "kafka-2", 9092)]
    path = m.saved(tmp_path / "a.pcapng", m.began().ask(m.metadata(1), m.metadata_answer(1, nodes)).close())
    columns = ["broker_id"]
    assert m.rows_of(path, columns) == [{"broker_id": None}]
    record = bytes([10, 0, 0, 2]) + b"kafka-2\0"
    body = pack("<HH", 1, len(record)) + record + bytes(-len(record) % 4) + bytes(4)
    path.write_bytes(path.read_bytes() + pack("<II", 4, len(body) + 12) + body + pack("<I", len(body) + 12))
    assert m.rows_of(path, columns) == [{"broker_id": 2}]
