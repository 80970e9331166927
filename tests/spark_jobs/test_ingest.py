"""Ingest: all tables in folders, and what reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import kcap
from kcap.errors import UsageError
from kcap.reports.definition import ReportRequest
from kcap.reports.findings.report import check
from kcap.reports.groups.report import report as group_report
from spark_jobs import ingest
from spark_jobs.findings import observed
from spark_jobs.job import carried_out, main
from spark_jobs.reports import Saved, run_report
from spark_jobs.versions import versions
from tests.spark_jobs.jobs import ROOT, command_of, job_input, on_spark, reported


def test_ingest_replaces_no_input_in_its_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lake" / "exchanges" / "set=mine"
    folder.mkdir(parents=True)
    (folder / "a.pcap").write_bytes((ROOT / "pcaps" / "aiokafka.pcap").read_bytes())
    words = ["--input", str(folder), "--output", str(tmp_path / "lake"), "--set", "mine"]
    assert main(command_of("ingest"), words) == 2
    assert "holds the input" in capsys.readouterr().err


@on_spark
def test_ingest_and_what_comes_after_it(spark: Any, tmp_path: Path, pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All tables in folders by date, hour and broker; the same input again changes nothing; reports read what was saved."""
    out, path = tmp_path / "lake", str(pcaps / "quota-3.9.pcap")
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture")
    for _ in range(2):
        given = job_input(path, str(bad), output=str(out))
        assert carried_out(spark, ingest.run, given, {"records": True, "name": "one"}) == 3
        assert f"left out: {bad}: no capture" in capsys.readouterr().err
    facts = json.loads((out / "_sets" / "one.json").read_text())
    capture = kcap.open(path)
    for table, rows in facts["rows"].items():
        if table in ("captures", "weirds"):
            continue
        assert rows == capture.table(table).to_arrow().num_rows, table
        found = parquet.read_table(out / table)
        assert found.num_rows == rows, table
    found = parquet.read_table(out / "exchanges")
    assert {"set", "date", "hour", "broker"} <= set(found.column_names)
    assert found.schema.field("time").type.unit == "us"
    assert len(list((out / "exchanges").rglob("*.parquet"))) <= 4
    assert "control_records" in parquet.read_table(out / "partitions").column_names, "topics counts them apart"
    saved = Saved(spark, str(out))
    assert run_report(saved, "latency", ReportRequest())["rows"] == reported(["latency", path], tmp_path)["rows"]
    with observed(saved) as seen:
        for made in (check(seen), group_report(seen, [])):
            name = made.get("report", "check")
            assert made["rows"] == reported([name, str(out)], tmp_path)["rows"], name
    assert {**versions(saved), "captures": None} == {**reported(["versions", path], tmp_path), "captures": None}
    assert versions(saved) == reported(["versions", str(out)], tmp_path)
    with pytest.raises(UsageError, match="is what ingest wrote"):
        carried_out(spark, ingest.run, job_input(str(out), output=str(out)), {"records": False, "name": None})
