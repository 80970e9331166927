"""The tables of a capture for the rules, and its messages on demand."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kcap import limits
from kcap.errors import UsageError
from kcap.reports.findings import source
from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.inner import OF_CLUSTER, of_cluster
from kcap.reports.findings.report import check
from kcap.reports.findings.source import marked, observed
from kcap.reports.source import Engine, ReportInput
from tests.reports.findings.tables import exchange, table_of

PCAPS = Path(__file__).resolve().parents[3] / "pcaps"
CAPTURE = str(PCAPS / "problems" / "sasl-mechanism-mismatch.pcap")


def test_a_capture_is_read_once_and_gives_all_tables_and_messages() -> None:
    given = ReportInput([CAPTURE])
    with observed(given) as seen:
        (row,) = seen.errors(["UNSUPPORTED_SASL_MECHANISM"])
        assert seen.message(row, "request")["mechanism"] == "SCRAM-SHA-512"
        assert seen.message(row, "response")["mechanisms"] == ["PLAIN", "SCRAM-SHA-256"]
        assert seen.message({"connection": "no such", "exchange": 1}, "request") == {}
        assert seen.run(seen.connections.count().name("n").as_table())[0]["n"] > 0
    assert given.captures == ["sasl-mechanism-mismatch.pcap"]


def test_saved_tables_give_the_findings_that_need_no_message(tmp_path: Path) -> None:
    import kcap

    capture = kcap.open(str(PCAPS / "problems" / "authorization-denied.pcap"))
    for name in COLUMNS:
        parquet.write_table(capture.table(name).to_arrow(), tmp_path / f"{name}.parquet")
    with observed(ReportInput([str(tmp_path)])) as seen:
        saved = {row["id"] for row in check(seen)["rows"]}
    with observed(ReportInput([str(PCAPS / "problems" / "authorization-denied.pcap")])) as seen:
        assert saved == {row["id"] for row in check(seen)["rows"]} == {"authorization-denied"}
    parquet.write_table(capture.table("connections", ["connection"]).to_arrow(), tmp_path / "connections.parquet")
    with pytest.raises(UsageError, match="has no column 'began'"), observed(ReportInput([str(tmp_path)])):
        pass


def test_exchanges_of_the_cluster_are_marked_as_the_expression_finds_them(tmp_path: Path) -> None:
    """Law: the mark of a row is what `of_cluster` says of it, whether or not there is a client id."""
    names = (
        "app", None, "broker-1-fetcher-0", "broker-of-mine", "broker-2-txn-marker-sender", "x-broker-1-fetcher-0",
        "raft-client-3", "my-raft-client-", "ReplicaFetcherThread-0-2", "AddPartitionsManager-client-1", "Persister-client-3",
    )  # fmt: skip
    rows = [
        exchange(f"C{at}", number, api, 1.0, client_id=name)
        for at, name in enumerate(names)
        for number, api in enumerate(("Fetch", "Vote", "Produce", "AlterPartition"), 1)
    ]
    (batch,) = table_of("exchanges", rows).combine_chunks().to_batches()
    made = marked(batch)
    engine = Engine(str(tmp_path))
    engine.register("exchanges", pa.Table.from_batches([made]))
    table = engine.viewed("exchanges")
    found = engine.rows(table.select(OF_CLUSTER, own=of_cluster(table)))
    engine.close()
    assert [row[OF_CLUSTER] for row in found] == [row["own"] for row in found]
    assert 0 < sum(row["own"] for row in found) < len(rows)
    links = pa.RecordBatch.from_pylist([{"client_id": "a"}])
    assert marked(links) is links, "connections have no API and no mark"


def test_what_brokers_send_each_other_is_left_out_of_captures_and_of_saved_tables(tmp_path: Path) -> None:
    import kcap

    place = str(PCAPS / "old-java-new-broker.pcap")
    capture = kcap.open(place)
    for name in COLUMNS:
        parquet.write_table(capture.table(name).to_arrow(), tmp_path / f"{name}.parquet")
    counts = []
    for path in (place, str(tmp_path)):
        with observed(ReportInput([path])) as seen:
            mine = seen.of_clients()
            counts.append([seen.run(rows.exchanges.count().name("n").as_table())[0]["n"] for rows in (seen, mine)])
    assert counts[0] == counts[1]
    assert counts[0][0] > counts[0][1] > 0


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    import kcap

    parquet.write_table(kcap.open(CAPTURE).exchanges().to_arrow(), tmp_path / "exchanges.parquet")
    with (
        pytest.raises(UsageError, match="not among the saved tables: partitions, connections, brokers,"),
        observed(ReportInput([str(tmp_path)])),
    ):
        pass


def test_a_compressed_capture_has_findings_too(tmp_path: Path) -> None:
    """Messages of a compressed file are read again from its spool."""
    import gzip

    packed = tmp_path / "a.pcap.gz"
    with open(CAPTURE, "rb") as source, gzip.open(packed, "wb") as target:
        shutil.copyfileobj(source, target)
    with observed(ReportInput([str(packed)])) as seen:
        (row,) = [row for row in check(seen)["rows"] if row["id"] == "sasl-mechanism-mismatch"]
    assert "SCRAM-SHA-512" in row["sentence"]


def test_a_message_of_which_bytes_are_missing_is_none_and_stops_no_rule(tmp_path: Path) -> None:
    """Law: a capture cut to 200 bytes a packet gives findings of what is left."""
    import struct

    for name in ("request-timeout", "rebalance-loop-848", "hanging-transaction"):
        data, at = (PCAPS / "problems" / f"{name}.pcap").read_bytes(), 24
        out = [data[:at]]
        while at < len(data):
            seconds, part, captured, length = struct.unpack_from("<IIII", data, at)
            kept = min(captured, 200)
            out += [struct.pack("<IIII", seconds, part, kept, length), data[at + 16 : at + 16 + kept]]
            at += 16 + captured
        cut = tmp_path / f"{name}.pcap"
        cut.write_bytes(b"".join(out))
        with observed(ReportInput([str(cut)])) as seen:
            assert isinstance(check(seen)["rows"], list)
            rows = seen.run(seen.exchanges.filter(seen.exchanges.flags.contains("snaplen")).select("connection", "exchange"))
            assert rows
            assert all(seen.message(row, "response") == {} or seen.message(row, "request") == {} for row in rows[:50])


def test_groups_are_chosen_first_where_there_are_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of clients takes no memory by their number; the findings are the same."""
    given = ReportInput([str(PCAPS / "java-transactions.pcap")])
    with observed(given) as seen:
        assert not seen.crowded
        links = seen.links
    monkeypatch.setattr(source, "LINK_BYTES", 0)
    with observed(given) as seen:
        assert not seen.crowded, "the number of connections counts"
    monkeypatch.setattr(limits, "LINKS_KEPT", 0)
    with observed(given) as seen:
        assert seen.crowded
        assert seen.links == links
