"""Expressions of Ibis on Spark."""

from typing import Any

import ibis
import pytest

from spark_jobs.reports import SparkEngine, counting


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
