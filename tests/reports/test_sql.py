"""SQL over captures: which tables are read."""

from pathlib import Path

import pytest

import kcap
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.reports.sql import answered, tables_named


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
