"""The jobs check, groups, transactions and diff as they are started."""

import json
from pathlib import Path
from typing import Any

import pytest

from kcap.errors import UsageError
from spark_jobs.job import carried_out
from tests.spark_jobs.jobs import job_input, on_spark, run_of


@on_spark
def test_findings_are_shown_and_written_and_may_fail_a_job(
    spark: Any, pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(pcaps / "problems" / "transaction-timed-out.pcap"), tmp_path / "findings.json"
    words: dict[str, Any] = {"rules": "long-transaction", "skip": "", "fail_on": None}
    given = job_input(path, output=str(out))
    assert carried_out(spark, run_of("check"), given, words) == 0
    made = json.loads(out.read_text())
    assert {row["id"] for row in made["rows"]} == {"long-transaction"}
    assert made["rows"][0]["sentence"] in " ".join(capsys.readouterr().out.split())
    assert carried_out(spark, run_of("check"), given, words | {"fail_on": "info"}) == 1
    assert carried_out(spark, run_of("check"), given, words | {"fail_on": "critical"}) == 0


@on_spark
def test_groups_transactions_and_differences(spark: Any, pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(pcaps / "java-transactions.pcap")
    for name in ("groups", "transactions"):
        assert carried_out(spark, run_of(name), job_input(path), {"ids": ()}) == 0
    assert "shop-tx" in capsys.readouterr().out
    assert carried_out(spark, run_of("diff"), job_input(path), {"before": (path,)}) == 0
    assert capsys.readouterr().out
    with pytest.raises(UsageError, match="--before"):
        carried_out(spark, run_of("diff"), job_input(path), {"before": ()})
    with pytest.raises(UsageError, match="takes no filter"):
        carried_out(spark, run_of("groups"), job_input(path, only="api == Fetch"), {"ids": ()})
