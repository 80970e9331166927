"""The digest has each report under its name."""

import json
from pathlib import Path
from typing import Any

import pytest

from kcap.errors import UsageError
from spark_jobs.digest import REPORTS, only_json
from spark_jobs.job import carried_out
from tests.spark_jobs.jobs import job_input, on_spark, reported, run_of


@on_spark
def test_all_reports_on_one_page(spark: Any, pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(pcaps / "quota-3.9.pcap"), tmp_path / "digest.json"
    assert carried_out(spark, run_of("digest"), job_input(path, output=str(out)), {"top": 3}) == 0
    made = json.loads(out.read_text())
    assert made["report"] == "digest"
    assert set(made["reports"]) == {*REPORTS, "versions"}
    assert made["reports"]["latency"]["rows"] == reported(["latency", path], tmp_path)["rows"][:3]
    shown = capsys.readouterr().out
    assert all(f"== {name}\n" in shown for name in (*REPORTS, "versions"))


def test_the_result_is_json(tmp_path: Path) -> None:
    only_json(job_input("a.pcap"), {})
    only_json(job_input("a.pcap", output=str(tmp_path / "digest.json")), {})
    with pytest.raises(UsageError):
        only_json(job_input("a.pcap", output="digest.csv"), {})
