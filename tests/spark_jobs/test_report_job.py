"""Reports as files and as text."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from spark_jobs.files import form_of
from spark_jobs.job import carried_out
from spark_jobs.report_job import bytes_of
from tests.spark_jobs.jobs import command_of, job_input, on_spark, reported, run_of


def test_results_for_machines() -> None:
    """JSON and CSV are the whole report, Parquet its rows; what is nested is JSON there."""
    result = {
        "report": "latency",
        "captures": ["a"],
        "rows": [{"api": "Fetch", "count": 2, "more": {"a": 1}, "histogram": [1, 2]}],
    }
    assert json.loads(bytes_of(result, "json")) == result
    assert bytes_of(result, "csv").startswith(b"section,api,count")
    import pyarrow as pa

    (row,) = parquet.read_table(pa.BufferReader(bytes_of(result, "parquet"))).to_pylist()
    assert row == {"api": "Fetch", "count": 2, "more": '{"a": 1}', "histogram": [1, 2]}
    assert [form_of(name, None) for name in ("a.json", "a.csv", "a.parquet", "a")] == ["json", "csv", "parquet", "json"]


@on_spark
@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_a_report_is_shown_and_written(
    spark: Any, pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    path, out = str(pcaps / "quota-3.9.pcap"), tmp_path / f"latency.{suffix}"
    assert carried_out(spark, run_of("latency"), job_input(path, output=str(out)), {"top": None}) == 0
    wanted = reported(["latency", path], tmp_path)
    said = capsys.readouterr()
    assert str(wanted["rows"][0]["api"]) in said.out
    assert "done after" in said.err
    if suffix == "json":
        assert json.loads(out.read_text()) == wanted
    elif suffix == "parquet":
        assert parquet.read_table(out).num_rows == len(wanted["rows"])
    else:
        assert out.read_text().startswith("section,")
    assert command_of("latency").name == "latency"
