"""Reports are written once: Spark tells what DuckDB tells."""

from importlib import import_module
from typing import Any

import pytest

from kcap.reports.definition import ReportRequest, Tables

REPORTS = ("latency", "stats", "throttle", "errors", "slow", "clients", "topics")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


def test_spark_passes_what_the_closure_passes(spark: Any) -> None:
    """Law: a filter's predicate passes the same rows on Spark as the closure does row by row, nulls and lists included."""
    import ibis
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from kcap.filter.ibis_filter import predicate
    from kcap.filter.parse import parse
    from tests.filter.samples import TERMS, filters, rows
    from tests.filter.test_ibis_filter import by_closure, table_of

    connection = ibis.pyspark.connect(spark)
    compared = []

    @seed(9)
    @settings(max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(found=rows(), texts=st.lists(filters(), min_size=12, max_size=12))
    def hold(found: list[Any], texts: list[str]) -> None:
        spark.createDataFrame(table_of(found)).createOrReplaceTempView("sampled")
        table = connection.table("sampled")
        asked = [*TERMS, *texts] if not compared else texts
        columns = {f"f{at}": predicate(parse(text), table) for at, text in enumerate(asked)}
        passed = table.select("row", **columns).to_pyarrow().sort_by("row")
        for at, text in enumerate(asked):
            got = [row for row, here in zip(passed["row"].to_pylist(), passed[f"f{at}"].to_pylist()) if here]
            assert got == by_closure(text, found), text
            compared.append(text)

    hold()
    assert len(compared) >= 24


@pytest.mark.parametrize("name", REPORTS)
def test_any_rows_give_the_same_report_on_both_engines(name: str, spark: Any) -> None:
    """Law: rows with nulls anywhere, orphans, and times that make no sense; of real captures the tests of jobs say it."""
    import ibis
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from kcap.reports.run import finished, result
    from tests.reports import made

    connection = ibis.pyspark.connect(spark)
    report = import_module(f"kcap.reports.{name}").REPORT
    seen = []

    def view(rows: list[Any], columns: Any, called: str) -> Any:
        spark.createDataFrame(made.arrow(rows, columns)).createOrReplaceTempView(called)
        return connection.table(called)

    @seed(5)
    @settings(max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(rows=made.exchanges(), data=st.data())
    def hold(rows: list[Any], data: st.DataObject) -> None:
        parts = data.draw(made.partitions(rows))
        every = view(rows, made.EXCHANGES, "generated_exchanges")
        tables = Tables(every, every, view(parts, made.PARTITIONS, "generated_partitions"))
        expressions = report.build(tables, ReportRequest())
        found = {part: connection.to_pyarrow(expression).to_pylist() for part, expression in expressions.items()}
        request = ReportRequest()
        assert finished(found, report, request) == result(made.engine(), made.tables(rows, parts), report, request)
        seen.append(len(rows))

    hold()
    assert sum(seen) > 3
