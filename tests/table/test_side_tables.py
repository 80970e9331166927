"""Laws of the smaller tables: a row a connection, a file, an oddity; bytes add up."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import kcap
from kcap import limits
from kcap.analyzer import Analyzer
from kcap.columns import CAPTURES, CONNECTIONS, WEIRDS
from kcap.facts.topic_names import TopicNames
from kcap.model import CaptureFile
from kcap.net.segment_columns import columns_of
from kcap.table import side_tables
from kcap.table.schema import choose
from kcap.table.side_tables import batch_of, turn_batches, weird_rows
from kcap.tls.turns import FIELDS as TURN_FIELDS
from kcap.tls.turns import Turns
from kcap.weird import Weird, WeirdKind
from tests.support import messages as m
from tests.support.wire import MS, Tap, metadata, metadata_answer


def test_connections_keep_account_of_their_bytes(pcaps: Path) -> None:
    rows = kcap.open(str(pcaps / "java-transactions.pcap")).connections().to_arrow().to_pylist()
    assert len(rows) == 17
    assert list(rows[0]) == [column.name for column in CONNECTIONS]
    for row in rows:
        assert row["capture"] == "java-transactions.pcap"
        for side in ("client", "server"):
            parts = [row[f"{side}_{name}"] for name in ("framed", "skipped", "opaque", "pending")]
            assert row[f"{side}_captured"] == sum(parts)
    assert sum(row["exchanges"] for row in rows) == 110


def test_captures_are_the_files(pcaps: Path) -> None:
    names = ["rotated.pcap", "rotated.pcap1", "rotated.pcap2"]
    rows = kcap.open(*(str(pcaps / name) for name in names)).captures().to_arrow().to_pylist()
    assert list(rows[0]) == [column.name for column in CAPTURES]
    assert [row["capture"] for row in rows] == names
    assert [row["packets"] for row in rows] == [209, 224, 61]
    assert {(row["format"], tuple(row["link_types"]), row["complete"]) for row in rows} == {("pcap", (1,), True)}


def test_weirds_have_a_place_where_one_was_told(pcaps: Path) -> None:
    rows = kcap.open(str(pcaps / "raw-frames.pcap")).weirds().to_arrow().to_pylist()
    assert list(rows[0]) == [column.name for column in WEIRDS]
    unknown = [row for row in rows if row["kind"] == "api_unknown"]
    assert unknown
    assert all(
        row["capture"] == "raw-frames.pcap" and row["packet"] and row["position"] and row["connection"] for row in unknown
    )


def test_a_weird_of_a_file_has_the_file_alone() -> None:
    files = [CaptureFile("x/a.pcap", "a.pcap")]
    sightings = [(Weird(WeirdKind.FILE_EMPTY, "no packet", 0, 0, 0), 1), (Weird(WeirdKind.GAP, "9 bytes", 0, 0, 0, "C1"), 3)]
    made = batch_of("weirds", choose("weirds", None), list(weird_rows(sightings, files))).to_pylist()
    assert made[0] == {
        "kind": "file_empty", "connection": None, "capture": "a.pcap", "packet": None, "position": None, "detail": "no packet",
        "count": 1,
    }  # fmt: skip
    assert made[1]["capture"] is None


def test_what_must_not_be_null_is_nothing_where_nothing_was_said() -> None:
    made = batch_of("connections", choose("connections", ["tls", "exchanges", "principal"]), [{}]).to_pylist()
    assert made == [{"tls": False, "exchanges": 0, "principal": None}]


def test_connections_say_what_their_exchanges_told(pcaps: Path) -> None:
    """Law: software, mechanism and name of a connection are those of its last exchange."""
    for name in ("sasl-raw-tokens", "java-transactions"):
        capture = kcap.open(pcaps / f"{name}.pcap")
        columns = ["software_name", "software_version", "sasl_mechanism", "principal"]
        last: dict[str, tuple[int, dict[str, object]]] = {}
        for row in capture.exchanges(["connection", "exchange", *columns]).to_arrow().to_pylist():
            if row["exchange"] >= last.get(row["connection"], (0, {}))[0]:
                last[row["connection"]] = row["exchange"], {column: row[column] for column in columns}
        found = {row["connection"]: row for row in capture.connections().to_arrow().to_pylist()}
        assert any(row["software_name"] or row["principal"] for row in found.values())
        for uid, (_, reported) in last.items():
            assert {column: found[uid][column] for column in columns} == reported


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
        reported = {uuid for uuid, topic in names.names.items() if topic not in log}
        assert reported <= {row["topic_id"] for row in found}


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


@pytest.mark.parametrize("columns", [None, ["community_id", "capture", "tls_version", "connection", "principal"]])
def test_connections_of_the_fast_path_have_the_rows_of_the_reference_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str] | None
) -> None:
    """Law: connections that lived and ended in arrays, and those beside them, are rows as others are, in the same order."""
    taps = []
    for number in range(60):
        tap = Tap(port=40_000 + number, time_ns=1_000 * MS + number * MS).open()
        for at in range(1, 3 + number % 4):
            tap.client(metadata(at)).server(metadata_answer(at))
        if number % 7 == 3:
            tap.client(b"\0\0\0\1")  # for the reference path
        taps.append(tap if number % 5 == 4 else tap.close())
    path, found, made = m.saved(tmp_path / "a.pcap", *taps), [], side_tables._joined_batch
    together: list[int] = []
    monkeypatch.setattr(side_tables, "_joined_batch", lambda some, *more: together.append(len(some)) or made(some, *more))
    feeds = Analyzer.feeds
    for fast in (False, True):
        if fast:  # a small file is read without columns
            monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
            monkeypatch.setattr(Analyzer, "feeds", lambda analyzer, batch: feeds(analyzer, columns_of(batch)))
        found.append(kcap.open(path).connections(columns).to_arrow())
    assert found[0].equals(found[1])
    assert found[0].num_rows == 60
    assert sum(together) > 20


def test_turns_are_those_of_their_connection(tmp_path: Path) -> None:
    """Law: in batches of any size; a request without a response has no numbers of one."""
    made = []
    for at_once in (1, 1 << 20):
        with patch.object(side_tables, "TURNS_AT_ONCE", at_once):
            batches = list(turn_batches(closed_with_turns(), choose("tls_turns", None)))
        made.append([row for batch in batches for row in batch.to_pylist()])
        assert (len(batches) > 1) == (at_once == 1)
    assert made[0] == made[1]
    assert [row["turn"] for row in made[0]] == [1, 2, 1]
    assert [row["latency_ns"] for row in made[0]] == [400, None, 50]
    (empty,) = turn_batches([], choose("tls_turns", ["turn", "connection"]))
    assert (empty.num_rows, empty.schema.names) == (0, ["turn", "connection"])


def closed_with_turns() -> list[Any]:
    """Two connections with turns and one without."""
    names = [column.name for column in choose("tls_turns", None)]
    connections = []
    for number, rows in enumerate(([(100, 500, 1), (600, 0, 0)], [(50, 100, 1)], [])):
        turns = Turns()
        for last, first, records in rows:
            known = {"request_last_ns": last, "response_first_ns": first, "response_records": records}
            turns.done.extend(known.get(name, 7) for name in TURN_FIELDS)
        values: dict[str, Any] = dict.fromkeys(names, None) | {"connection": f"C{number}", "turns": turns}
        connections.append(SimpleNamespace(values=values))
    return connections
