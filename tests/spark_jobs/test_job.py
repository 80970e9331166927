"""The frame of all jobs: options, refusals before a session starts, failures in one line."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kcap.errors import CaptureError, UsageError
from spark_jobs import job
from spark_jobs.job import cause, main, size_of
from tests.spark_jobs.jobs import JOBS, ROOT, command_of


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


def test_jobs_stand_alone(tmp_path: Path) -> None:
    """`spark-submit spark_jobs/X.py` puts the folder of the script first: its modules hide none of the standard library."""
    names = {path.stem for path in (ROOT / "spark_jobs").glob("*.py")}
    assert not names & set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CaptureError("a.pcap: no capture"), 3, "kcap: a.pcap: no capture\n"),
        (UsageError("no such column"), 2, "kcap: no such column\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (ValueError("one\ntwo"), 1, "kcap: Spark failed: ValueError: one\n"),
        (click.exceptions.Exit(4), 4, ""),
    ],
)
def test_each_failure_has_its_exit_code_and_its_line(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("failing")
    def failing() -> None:
        raise error

    assert main(failing, []) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_is_stopped_whatever_becomes_of_the_job(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the master that is given; the job gets the options that every job takes, and its own."""
    stopped: list[bool] = []
    begun: list[Any] = []
    spark = SimpleNamespace(stop=lambda: stopped.append(True))
    monkeypatch.setattr(job, "session", lambda name, **conf: begun.append((name, conf)) or spark)

    def carried_out(given: Any, run: Any, taken: job.JobInput, options: dict[str, Any]) -> int:
        assert given is spark
        begun.append((taken.paths, taken.only, taken.split_bytes, taken.by, options))
        if fails:
            raise CaptureError("a.pcap: it was longer when it was read first")
        return 7

    monkeypatch.setattr(job, "carried_out", carried_out)
    words = ["a.pcap", "--input", "b.pcap", "--master", "local[3]", "-Y", "api == Fetch", "--split-bytes", "64k"]
    words += ["--by", "api, topic"]
    assert main(command_of("latency"), words) == (3 if fails else 7)
    assert stopped == [True]
    (name, conf), given = begun
    assert (name, conf["spark.master"]) == ("kcap latency", "local[3]")
    assert given[:4] == (["b.pcap", "a.pcap"], "api == Fetch", 65_536, ("api", "topic"))
