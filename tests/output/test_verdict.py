"""The sentence that a page of rows begins with says what its rows say."""

from pathlib import Path

import pyarrow as pa

import kcap
from kcap.output.verdict import Verdict


def said(table: pa.Table, *names: str) -> str:
    """The sentence of some columns of a table, which comes in batches of seven rows."""
    table = table.select(names) if names else table
    verdict = Verdict(table.schema)
    for batch in table.to_batches(7):
        verdict.take(batch)
    return verdict.sentence()


def test_exchanges_their_errors_and_the_longest_latency(pcaps: Path) -> None:
    table = kcap.open(pcaps / "quota-3.9.pcap").exchanges().to_arrow()
    rows = table.to_pylist()
    errors = sum(row["error"] not in (None, "NONE") for row in rows)
    silent = sum(row["outcome"] == "unanswered" for row in rows)
    longest = max((row for row in rows if row["latency_ns"]), key=lambda row: row["latency_ns"])
    sentence = said(table)
    assert sentence.startswith(f"{len(rows):,} exchanges: {errors} with errors")
    assert f", {silent} unanswered; the longest latency, long polls included, is " in sentence
    assert sentence.endswith(f" ({longest['api']} of {longest['client_id']}).")


def test_columns_that_the_page_does_not_have_are_not_in_the_sentence(pcaps: Path) -> None:
    table = kcap.open(pcaps / "quota-3.9.pcap").exchanges().to_arrow()
    assert said(table, "api") == f"{len(table):,} exchanges."
    assert said(table, "outcome") == f"{len(table):,} exchanges: 0 unanswered."
    assert said(table.slice(0, 1), "api") == "1 exchange."
    assert said(table.slice(0, 0)) == "0 exchanges."


def test_connections_by_what_they_are_and_how_they_ended() -> None:
    schema = pa.schema(
        [("phase", pa.string()), ("ended", pa.string()), ("client_missing", pa.int64()), ("server_missing", pa.int64())]
    ).with_metadata({"kcap.table": "connections"})
    rows = [("kafka", "rst", 0, 0), ("kafka", "open", 0, 5), ("tls", "fin", None, 0)]
    table = pa.Table.from_pylist([dict(zip(schema.names, row)) for row in rows], schema)
    assert said(table) == (
        "3 connections: 2 kafka, 1 tls; 1 reset, 1 open at the end of the capture; 1 with bytes that were not captured."
    )
    assert said(table, "ended") == "3 connections: 1 reset, 1 open at the end of the capture."


def test_other_tables_have_their_number_of_rows() -> None:
    assert said(pa.table({"n": [1, 2]})) == "2 rows."
