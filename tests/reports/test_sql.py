"""SQL over captures: which tables are read."""

from pathlib import Path

import pyarrow as pa
import pytest

import kcap
from kcap import limits
from kcap.cli.main import main
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.reports.definition import ReportRequest, report_of
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.sql import answered, in_pieces, tables_named
from kcap.session import Capture


def test_only_tables_that_are_named() -> None:
    assert tables_named("select * from Exchanges e join PARTITIONS p using (connection)") == ["exchanges", "partitions"]
    assert tables_named("select 1") == []
    assert tables_named(" ".join(TABLES)) == list(TABLES)


def test_answers_have_a_schema(pcaps: Path) -> None:
    with answered("select api, time from exchanges limit 3", kcap.open(pcaps / "pipelined.pcap")) as (schema, batches):
        assert schema.names == ["api", "time"]
        assert sum(batch.num_rows for batch in batches) == 3


def test_queries_only_ask(pcaps: Path) -> None:
    with (
        pytest.raises(UsageError, match="begins with"),
        answered("create table x (a int)", kcap.open(pcaps / "pipelined.pcap")),
    ):
        pass


def test_all_tables_are_shown_and_suggested(pcaps: Path) -> None:
    capture = Capture([str(pcaps / "too-large.pcap")])
    with answered("show tables", capture) as (_, batches):
        assert {row["name"] for batch in batches for row in batch.to_pylist()} == set(TABLES)
    with answered("describe connections", capture) as (_, batches):
        names = [row["column_name"] for batch in batches for row in batch.to_pylist()]
    assert names == [column.name for column in TABLES["connections"]]
    with pytest.raises(UsageError, match='Did you mean "exchanges"'), answered("select * from exchange", capture):
        pass


@pytest.mark.parametrize("parts", ["api", "client,api", "day,outcome,error", "capture"])
def test_folders_of_parts_are_read_as_the_whole(parts: str, pcaps: Path, tmp_path: Path) -> None:
    """Law: a report over what --partition-by wrote is that over the capture."""
    capture, folder = str(pcaps / "too-large.pcap"), str(tmp_path / "parts")
    assert main(["rows", capture, "--partition-by", parts, "-o", folder]) == 0
    query = "select api, outcome, error, capture, count(*) as n from exchanges group by all order by all"
    found = []
    for path in (capture, folder):
        with answered(query, Capture([path])) as (_, batches):
            found.append([row for batch in batches for row in batch.to_pylist()])
    assert found[0] == found[1]
    rows = [run(report_of("errors"), ReportInput([path]), ReportRequest())["rows"] for path in (capture, folder)]
    assert rows[0] == rows[1]


def test_answers_with_long_names_come_in_small_pieces() -> None:
    """Writers hold several texts of all rows that they are given at once."""
    batch = pa.record_batch({"name": [str(at) * 8000 for at in range(1000)], "at": range(1000)})
    some = list(in_pieces([batch, batch.slice(0, 3), batch.slice(0, 0)]))
    assert pa.Table.from_batches(some).equals(pa.Table.from_batches([batch, batch.slice(0, 3)]))
    assert max(piece.nbytes for piece in some) < 2 * limits.SQL_BYTES_AT_ONCE
    assert len(some) > 4
