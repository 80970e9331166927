"""`kcap sql`: DuckDB over the tables."""

import csv
import io
from pathlib import Path

import pytest

import kcap as package
from tests.cli.running import kcap


def rows(*arguments: object) -> list[dict[str, str]]:
    done = kcap("sql", *arguments, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


def test_a_query_over_captures_and_over_saved_rows(pcaps: Path, tmp_path: Path) -> None:
    """The same answer, and the one that pandas gives."""
    capture, saved = pcaps / "java-transactions.pcap", tmp_path / "rows.parquet"
    query = "select api, count(*) as n, max(latency_ns) as slowest from exchanges group by api order by n desc, api"
    assert kcap("rows", capture, "-o", str(saved)).returncode == 0
    found = rows(query, capture)
    assert found == rows(query, saved)
    frame = package.open(capture).exchanges().to_pandas()
    assert {row["api"]: int(row["n"]) for row in found} == frame.groupby("api").size().to_dict()
    assert {row["api"]: int(row["slowest"]) for row in found if row["slowest"]} == {
        name: int(value)
        for name, value in frame.groupby("api")["latency_ns"].max().items()
        if value == value  # noqa: PLR0124
    }


def test_the_query_may_stand_behind_the_files(pcaps: Path) -> None:
    """`kcap sql FILE QUERY` took queries from standard input, and said nothing where that was empty."""
    captures, query = (pcaps / "pipelined.pcap", pcaps / "java-transactions.pcap"), "select count(*) as n from exchanges"
    assert rows(query, *captures) == rows(*captures, query)


def test_several_tables(pcaps: Path) -> None:
    """A join of exchanges with their partitions and connections; a filter says which exchanges count."""
    query = """select e.api, p.topic, sum(p.records) as records from partitions p join exchanges e using (connection, exchange)
        join connections c using (connection) where c.phase = 'kafka' and p.records > 0 group by all order by all"""
    every = rows(query, pcaps / "java-transactions.pcap")
    assert {row["api"] for row in every} == {"Fetch", "Produce"}
    some = rows(query, pcaps / "java-transactions.pcap", "-Y", "api == Produce")
    assert some == [row for row in every if row["api"] == "Produce"]


@pytest.mark.parametrize("query", ["select nothing from exchanges", "drop table exchanges", "select 1; select", ""])
def test_what_does_not_run(pcaps: Path, query: str) -> None:
    done = kcap("sql", query, pcaps / "pipelined.pcap")
    assert done.returncode == 2
    assert done.stderr.startswith(b"kcap: ")
    assert b"Traceback" not in done.stderr
