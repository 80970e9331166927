"""What the commands of all reports share."""

import json
from pathlib import Path

import pytest

from kcap.cli.main import main
from kcap.cli.reports import SUFFIXES, report_of
from tests.cli.running import PCAPS, kcap

CAPTURE = PCAPS / "aiokafka.pcap"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_name_of_the_output_says_its_form(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    assert main(["latency", str(CAPTURE), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    begins = {"json": '{"report"', "csv": "api,count,", "markdown": "# latency", "html": "<!DOCTYPE html>", "table": "api  "}
    assert text.startswith(begins[SUFFIXES[suffix]])
    assert "JoinGroup" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "x.xlsx"], "write .csv or .parquet"),
        (["-o", "x.parquet"], "known are .json"),
        (["-o", "x.csv.gz"], "known are .json"),
        (["-o", "x.csv", "--format", "json"], "says csv"),
        (["--by", "apo"], "no column"),
        (["-Y", "api =="], "^"),
        (["--plot", "chart.gif"], ".svg"),
        (["-Y", "nosuch == 1"], "nosuch"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_before_anything_is_read(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["latency", str(CAPTURE), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_a_pipe() -> None:
    """Standard input is read as often as it takes."""
    for report in ("latency", "errors", "stats"):
        done = kcap(report, "-", "--format", "json", stdin=CAPTURE.read_bytes())
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rows"]


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(tmp_path / "none.pcap")]) == 3
    assert "none.pcap" in capsys.readouterr().err


def test_one_bad_file_among_good_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(CAPTURE), str(PCAPS / "README.md")]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("Bad: ")
    assert "README.md" in err


def test_each_report_is_named_as_its_command() -> None:
    for name in ("latency", "slow", "stats", "throttle", "errors", "topics", "clients"):
        assert report_of(name).name == name
