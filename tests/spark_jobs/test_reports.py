"""Reports on Spark say what those of the command line say."""

from pathlib import Path
from typing import Any

import ibis
import pytest

from kcap.errors import UsageError
from kcap.reports.definition import ReportRequest
from spark_jobs.capture import open_capture
from spark_jobs.reports import SparkEngine, counting, run_report, run_reports
from spark_jobs.versions import versions
from tests.fuzz.hostile import CLASSES
from tests.spark_jobs.jobs import on_spark, reported

REPORTS = ("latency", "throttle", "errors", "topics", "clients", "slow")


def test_a_count_with_a_condition_that_is_null_everywhere_is_0() -> None:
    table = ibis.table({"name": "string", "waited": "int32"}, name="t")
    counted = table.group_by("name").aggregate(n=table.count(), late=table.count(where=table.waited > 0))
    text = str(ibis.to_sql(counting(counted.filter(counted.late == 0)), dialect="pyspark"))
    assert "COALESCE(SUM(CAST(`t0`.`waited` > 0 AS BIGINT)), 0) AS `late`" in text
    assert "COUNT(*) AS `n`" in text


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_names_of_a_view_are_shortened_once(spark: Any) -> None:
    """Law: a statement over a view reads what was persisted, and computes no name again; behind `close` nothing is kept."""
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before, engine = kept().size(), SparkEngine(spark)
    view = engine.view(spark.createDataFrame([("n" * 5000,)], "client_id string"))
    assert spark.table(view.get_name())._jdf.queryExecution().optimizedPlan().nodeName() == "InMemoryRelation"
    (row,) = engine.rows(view)
    assert row["client_id"].startswith("nnn")
    assert "5,000 characters" in row["client_id"]
    assert kept().size() == before + 1
    engine.close()
    assert kept().size() == before


@on_spark
def test_reports_are_those_of_the_command_line(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """Law: each report on Spark says what `kcap REPORT --format json` says, with a filter and a grouping too."""
    paths = [str(pcaps / "quota-3.9.pcap"), str(pcaps / "broker-paused.pcap")]
    capture = open_capture(spark, paths, 30_000, 3)
    assert dict(run_reports(capture, REPORTS, ReportRequest())) == {
        name: reported([name, *paths], tmp_path) for name in REPORTS
    }
    only = "api == Produce or error != NONE"
    grouped = run_report(capture, "latency", ReportRequest(("client_id", "topic")), only)
    assert grouped == reported(["latency", *paths, "--by", "client_id,topic", "-Y", only], tmp_path)
    together = dict(run_reports(capture, REPORTS, ReportRequest(), only))
    assert together == {name: reported([name, *paths, "-Y", only], tmp_path) for name in REPORTS}
    assert versions(capture) == reported(["versions", *paths], tmp_path)
    with pytest.raises(UsageError):
        run_report(capture, "slow", ReportRequest(("api",)))


@on_spark
def test_long_names_are_shortened_as_on_the_command_line(spark: Any, tmp_path: Path) -> None:
    """Law: names of reports are bounded the same way; a filter tests them whole."""
    path = tmp_path / "long.pcap"
    path.write_bytes(CLASSES["long_names"][0](20))
    capture = open_capture(spark, [str(path)], 1 << 20, 2)
    for name in ("clients", "errors"):
        assert run_report(capture, name, ReportRequest()) == reported([name, str(path)], tmp_path), name
    (row,) = run_report(capture, "clients", ReportRequest(), 'client_id matches "^7n*$"')["rows"]
    assert row["requests"] == 1
