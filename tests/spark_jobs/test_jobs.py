"""The jobs, as people start them: tables, results, exit codes."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import parquet

import kcap
from kcap.analyzer import Options
from kcap.cli.main import main as command_line
from kcap.errors import UsageError
from kcap.reports.definition import ReportRequest
from kcap.reports.findings.report import check
from kcap.reports.groups.report import report as group_report
from spark_jobs import ingest
from spark_jobs.capture import open_capture
from spark_jobs.files import form_of
from spark_jobs.findings import observed
from spark_jobs.job import JobInput, carried_out, cause, main, size_of
from spark_jobs.report_job import bytes_of
from spark_jobs.reports import Saved, run_report, run_reports
from spark_jobs.versions import versions
from tests.fuzz.hostile import CLASSES

ROOT = Path(__file__).resolve().parent.parent.parent
JOBS = (
    "ingest", "latency", "throttle", "versions", "errors", "topics", "digest", "check", "groups", "transactions", "diff",
)  # fmt: skip
REPORTS = ("latency", "throttle", "errors", "topics", "clients", "slow")


def on_spark(test: Any) -> Any:
    """Marks a test that starts a JVM."""
    return pytest.mark.spark(pytest.mark.slow(pytest.mark.filterwarnings("ignore")(test)))


def command_of(name: str) -> Any:
    module = import_module(f"spark_jobs.{name}")
    return getattr(module, "command", module.run)


@pytest.mark.parametrize("name", JOBS)
def test_every_job_says_what_it_takes(name: str) -> None:
    said = CliRunner().invoke(command_of(name), ["--help"])
    assert said.exit_code == 0
    for option in ("--input", "--output", "--filter", "--strict", "--split-bytes", "--partitions"):
        assert option in said.output


def test_what_was_typed_wrong_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Before a JVM starts."""
    assert main(command_of("latency"), []) == 2
    assert main(command_of("latency"), ["--split-bytes", "much"]) == 2
    assert main(command_of("versions"), ["--no-such-option"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert said[0] == "kcap: no input given; name captures, a folder or a URI with --input"
    assert all(line.startswith("kcap: ") for line in said)


@pytest.mark.parametrize("name", JOBS)
def test_an_output_that_is_an_input_is_refused_before_a_session(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_words: Any, **_settings: Any) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr("spark_jobs.job.session", never)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    data = (ROOT / "pcaps" / "aiokafka.pcap").read_bytes()
    path = tmp_path / "data" / "a"
    path.write_bytes(data)
    (tmp_path / "sym").symlink_to(path)
    os.link(path, tmp_path / "hard")
    outputs = ["data/a", "./no/../data/a", f"file://{path}", "sym", "hard", "data", "file:data"]
    for output in outputs:
        assert main(command_of(name), ["--input", "data", "--output", output]) == 2, output
        assert "input" in capsys.readouterr().err
    remote = ["s3://bucket/a.pcap", "--input", "s3a://bucket/a.pcap"]
    assert main(command_of(name), ["--output", *remote]) == 2
    assert path.read_bytes() == data
    if name not in ("ingest", "digest"):
        assert main(command_of(name), ["--input", "data/a", "--output", "data", "--format", "delta"]) == 2
        assert main(command_of(name), ["--input", "data/a", "--output", "x.xlsx"]) == 2
    with pytest.raises(AssertionError, match="session"):
        perform_only(name, ["--input", "data/a", "--output", "result"])


def perform_only(name: str, words: list[str]) -> None:
    """A job as it is called, whose failures are not made exit codes."""
    command_of(name).main(words, standalone_mode=False)


def test_ingest_replaces_no_input_in_its_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lake" / "exchanges" / "set=mine"
    folder.mkdir(parents=True)
    (folder / "a.pcap").write_bytes((ROOT / "pcaps" / "aiokafka.pcap").read_bytes())
    words = ["--input", str(folder), "--output", str(tmp_path / "lake"), "--set", "mine"]
    assert main(command_of("ingest"), words) == 2
    assert "holds the input" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "size"), [("64k", 65_536), ("128M", 128 << 20), ("1000", 1000), (None, None)])
def test_sizes(text: str | None, size: int | None) -> None:
    assert size_of(None, None, text) == size  # type: ignore[arg-type]


def test_a_failed_task_says_why() -> None:
    """Of Spark's hundred lines the one that kcap said."""
    trace = (
        "Job aborted due to stage failure\n  File x\nkcap.errors.CaptureError: a.pcap: input/output error\n\n\tat org.apache"
    )
    assert cause(Exception(trace)) == "a.pcap: input/output error"
    assert cause(ValueError("one\ntwo")) == "Spark failed: ValueError: one"


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


def reported(arguments: list[str], tmp_path: Path) -> Any:
    """What kcap's own command says, as JSON."""
    out = tmp_path / "cli.json"
    assert command_line([*arguments, "--format", "json", "-o", str(out)]) == 0
    return json.loads(out.read_text(encoding="utf-8"))


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
@pytest.mark.parametrize(
    ("name", "rule"),
    [("sequence-gap", "sequence-errors"), ("batches-split", "message-too-large"), ("transaction-left", "hanging-transaction"),
     ("broker-unavailable", "broker-unavailable")],
)  # fmt: skip
def test_rules_with_queries_of_their_own_run_on_spark(spark: Any, pcaps: Path, name: str, rule: str) -> None:
    path = str(pcaps / "problems" / f"{name}.pcap")
    with observed(open_capture(spark, [path], 30_000, 2)) as seen:
        (row,) = check(seen, (rule,))["rows"]
    assert (row["id"], row["severity"] in ("high", "medium")) == (rule, True)


@on_spark
def test_rules_on_transactions_that_are_long_run_on_spark(spark: Any, pcaps: Path) -> None:
    """One of the queries was not SQL that Spark takes, and no other capture came to it."""
    capture = open_capture(spark, [str(pcaps / "problems" / "transaction-timed-out.pcap")], 30_000, 2)
    with observed(capture) as seen:
        rows = check(seen, ("long-transaction", "zombie-fenced"))["rows"]
    assert {(row["id"], row["who"]["transactional_id"]) for row in rows} == {
        ("long-transaction", "late39"), ("long-transaction", "late41"), ("zombie-fenced", "late39"),
    }  # fmt: skip


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


@on_spark
def test_ingest_and_what_comes_after_it(spark: Any, tmp_path: Path, pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All tables in folders by date, hour and broker; the same input again changes nothing; reports read what was saved."""
    out, path = tmp_path / "lake", str(pcaps / "quota-3.9.pcap")
    plain: dict[str, Any] = {
        "output": str(out), "form": None, "only": None, "by": (), "strict": False, "split_bytes": 20_000, "partitions": 2,
        "ship": "auto", "options": Options(),
    }  # fmt: skip
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture")
    for _ in range(2):
        given = JobInput([path, str(bad)], **plain)
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
        carried_out(spark, ingest.run, JobInput([str(out)], **plain), {"records": False, "name": None})


@on_spark
def test_a_killed_worker_is_made_good(alone: dict[str, Any]) -> None:
    """A Python worker that dies in mid-job: its task runs again, and the rows are right."""
    assert alone["killed"]
    assert alone["again"] == kcap.open(alone["path"]).exchanges().to_arrow().num_rows


def test_jobs_stand_alone(tmp_path: Path) -> None:
    """`spark-submit spark_jobs/X.py` puts the folder of the script first: its modules hide none of the standard library."""
    names = {path.stem for path in (ROOT / "spark_jobs").glob("*.py")}
    assert not names & set(sys.stdlib_module_names)
