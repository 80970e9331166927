"""Expressions of Ibis on Spark."""

import ibis

from spark_jobs.reports import counting


def test_a_count_with_a_condition_that_is_null_everywhere_is_0() -> None:
    table = ibis.table({"name": "string", "waited": "int32"}, name="t")
    counted = table.group_by("name").aggregate(n=table.count(), late=table.count(where=table.waited > 0))
    text = str(ibis.to_sql(counting(counted.filter(counted.late == 0)), dialect="pyspark"))
    assert "COALESCE(SUM(CAST(`t0`.`waited` > 0 AS BIGINT)), 0) AS `late`" in text
    assert "COUNT(*) AS `n`" in text
