"""The job versions."""

from pathlib import Path
from typing import Any

import pytest

from kcap.errors import UsageError
from spark_jobs.capture import open_capture
from spark_jobs.job import carried_out
from spark_jobs.reports import Saved
from spark_jobs.versions import versions
from tests.spark_jobs.jobs import job_input, on_spark, reported, run_of, saved


@on_spark
def test_versions_are_those_of_the_command_line(
    spark: Any, pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(pcaps / "old-java-new-broker.pcap"), tmp_path / "versions.json"
    wanted = reported(["versions", path], tmp_path)
    assert versions(open_capture(spark, path, 20_000, 2)) == wanted
    given = job_input(path, output=str(out))
    assert carried_out(spark, run_of("versions"), given, {"target": "newest", "fail_on": None}) == 0
    assert "works with" in capsys.readouterr().out
    assert out.stat().st_size > 100
    assert carried_out(spark, run_of("versions"), given, {"target": "4.4", "fail_on": "removed"}) == 1
    stored = Saved(spark, saved(spark, tmp_path, path))
    assert versions(stored)["clients"] == wanted["clients"]
    with pytest.raises(UsageError, match="give it to ingest"):
        versions(stored, only="api == Fetch")
