"""Reports are written once: Spark tells what DuckDB tells."""

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import kcap
from kcap.reports.run import run
from kcap.reports.shape import Asked, Tables
from kcap.reports.source import Given

REPORTS = ("latency", "stats", "throttle", "errors", "slow", "clients", "topics")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs a Java on PATH"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, pcaps: Path) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    capture = kcap.open(pcaps / "quota-3.9.pcap", pcaps / "broker-paused.pcap")
    parquet.write_table(capture.exchanges().to_arrow(), folder / "exchanges.parquet")
    parquet.write_table(capture.partitions().to_arrow(), folder / "partitions.parquet")
    return folder


@pytest.fixture(scope="module")
def spark() -> Any:
    sql = pytest.importorskip("pyspark.sql")
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = sql.SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    }.items():  # fmt: skip
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("name", REPORTS)
def test_spark_tells_what_duckdb_tells(name: str, spark: Any, saved: Path) -> None:
    """Law: the same expressions give the same report on both engines."""
    import ibis

    connection = ibis.pyspark.connect(spark)
    for table in ("exchanges", "partitions"):
        spark.read.parquet(str(saved / f"{table}.parquet")).createOrReplaceTempView(table)
    report = import_module(f"kcap.reports.{name}").REPORT
    exchanges = connection.table("exchanges")
    tables = Tables(exchanges, exchanges, connection.table("partitions"))
    expressions = report.build(tables, Asked())
    rows = {part: connection.to_pyarrow(expression).to_pylist() for part, expression in expressions.items()}
    wanted = run(report, Given([str(saved)]), Asked())
    assert report.finish(rows, Asked()) == {key: wanted[key] for key in wanted if key not in ("report", "captures")}
