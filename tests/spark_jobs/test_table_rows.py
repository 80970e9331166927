"""Tables that the tasks build together have the rows of one process."""

from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.table.schema import choose
from spark_jobs.capture import OF_EXCHANGES, open_capture, read_capture
from tests.spark_jobs.test_capture import reported

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("only", [None, 'version_verdict == "ok" && request.max_wait_ms >= 0'])
def test_tables_that_are_read_together(only: str | None, spark: Any, pcaps: Path) -> None:
    """Law: one reading gives each table as a reading of its own does, with the same filter."""
    path = str(pcaps / "node-platformatic.pcap")
    columns = {table: [column.name for column in choose(table, None)] for table in TABLES}
    tables = open_capture(spark, path, 20_000, 3).tables(columns, only)
    assert list(tables) == list(TABLES)
    for table, frame in tables.items():
        source = kcap.open(path) if only is None or table not in OF_EXCHANGES else kcap.open(path).filter(only)
        wanted = source.table(table).to_arrow()
        assert reported(frame.toArrow()) == reported(wanted), table


def test_connections_are_numbered_over_all_shares(spark: Any, pcaps: Path) -> None:
    """The column `stream` is there where it is asked for; a filter on it would have to know what other shards have."""
    path, columns = str(pcaps / "node-platformatic.pcap"), ["stream", "exchange", "api"]
    found = read_capture(spark, path, split_bytes=9000, partitions=3, columns=columns)
    assert found.columns == columns
    assert reported(found.toArrow()) == reported(kcap.open(path).exchanges(columns).to_arrow())
    with pytest.raises(UsageError, match="whole capture"):
        read_capture(spark, path, only="tcp.stream == 1")
