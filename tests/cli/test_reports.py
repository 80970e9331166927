"""The commands of the reports: what the JSON promises, text that fits, the formats, and what each report says."""

import json
import shlex
from pathlib import Path

import pytest

from kcap.cli.main import main
from kcap.cli.reports import HELP, SUFFIXES
from kcap.reports.definition import report_of
from tests.cli.reporting import COLUMNS, fits, follows_the_contract, json_of
from tests.cli.running import PCAPS, kcap

CAPTURE = PCAPS / "aiokafka.pcap"
CAPTURES = {
    "latency": "aiokafka.pcap", "stats": "broker-paused.pcap", "slow": "quota-3.9.pcap", "throttle": "quota-3.9.pcap",
    "errors": "raw-frames.pcap", "topics": "kafka-0.8-clients.pcap", "clients": "java-transactions.pcap",
}  # fmt: skip
"""Report -> a capture with something to report."""


# -- all of them ------------------------------------------------------------------------------------------------------
def test_each_report_is_named_as_its_command() -> None:
    assert HELP.keys() == COLUMNS.keys() == CAPTURES.keys()
    assert [report_of(name).name for name in HELP] == list(HELP)


@pytest.mark.parametrize("report", CAPTURES)
def test_the_contract(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract(report, json_of(capsys, report, CAPTURES[report]))


@pytest.mark.parametrize("report", CAPTURES)
@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(report: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, report, CAPTURES[report])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_name_of_the_output_says_its_format(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    assert main(["errors", str(CAPTURE), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    begins = {
        "json": '{"report"',
        "csv": "section,error,",
        "markdown": "# errors",
        "html": "<!DOCTYPE html>",
        "table": "Most often\n",
    }
    assert text.startswith(begins[SUFFIXES[suffix]])
    assert "JoinGroup" in text


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_bad_usage_is_reported_before_anything_is_read(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["latency", str(CAPTURE), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_standard_input_is_read_as_often_as_a_report_needs() -> None:
    for report in ("latency", "errors", "stats"):
        done = kcap(report, "-", "--format", "json", stdin=CAPTURE.read_bytes())
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rows"]


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(tmp_path / "none.pcap")]) == 3
    assert "none.pcap" in capsys.readouterr().err


def test_one_bad_file_among_good_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(CAPTURE), str(PCAPS / "README.md")]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("no problem was found\n\nBad: ")
    assert "README.md" in err


# -- latency ----------------------------------------------------------------------------------------------------------
def test_a_chart_beside_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, begins in (("chart.svg", "<svg"), ("chart.html", "<!DOCTYPE html>")):
        chart = tmp_path / name
        assert main(["latency", str(CAPTURE), "--plot", str(chart)]) == 0
        assert chart.read_text(encoding="utf-8").startswith(begins)
        assert "JoinGroup" in capsys.readouterr().out


def test_long_polls_are_subtracted_and_no_exchange_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    without, with_ = (
        json_of(capsys, "latency", "long-polls.pcap", "-Y", "api == Fetch", *more)["rows"][0]
        for more in ([], ["--with-long-polls"])
    )
    assert without["count"] == with_["count"]
    assert without["sum_ns"] == with_["sum_ns"] - with_["long_poll_ns_sum"]
    assert without["p99_ns"] < without["with_polls_p99_ns"] == with_["p99_ns"]
    assert without["with_polls_max_ns"] == with_["max_ns"]


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "html"])
def test_every_format_has_p99_and_max_with_and_without_long_polls(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kcap.output.grid import duration

    monkeypatch.setenv("COLUMNS", "80")
    (row,) = json_of(capsys, "latency", "long-polls.pcap", "-Y", "api == Fetch")["rows"]
    assert main(["latency", str(PCAPS / "long-polls.pcap"), "-Y", "api == Fetch", "--format", form]) == 0
    out = capsys.readouterr().out
    for name in ("p99_ns", "max_ns", "with_polls_p99_ns", "with_polls_max_ns"):
        assert (str(row[name]) if form == "csv" else duration(row[name])) in out


# -- stats ------------------------------------------------------------------------------------------------------------
def test_health_comes_first_and_the_slowest_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(CAPTURE)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("no problem was found\n\nWith care: ")
    shown = next(shlex.split(line.split("kcap show ")[1]) for line in out.splitlines() if "kcap show" in line)
    assert main(["show", *shown]) == 0


def test_health_is_that_of_health(capsys: pytest.CaptureFixture[str]) -> None:
    made = json_of(capsys, "stats", "broker-paused.pcap")
    wanted = json_of(capsys, "health", "broker-paused.pcap")
    assert made["health"]["sentence"] == wanted["sentence"]
    assert [point["sentence"] for point in made["health"]["points"]] == [point["sentence"] for point in wanted["rows"]]


# -- slow -------------------------------------------------------------------------------------------------------------
def test_every_row_has_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    made = json_of(capsys, "slow", "quota-3.9.pcap", "--top", "3")
    assert [row["cause"] for row in made["rows"]] == ["muted"] * 3
    assert main(["slow", str(PCAPS / "quota-3.9.pcap")]) == 0
    assert "on a connection that was muted after a throttled response by" in " ".join(capsys.readouterr().out.split())


def test_slow_has_no_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slow", str(CAPTURE), "--by", "api"]) == 2
    assert "--by" in capsys.readouterr().err


# -- throttle ---------------------------------------------------------------------------------------------------------
def test_whether_clients_complied_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["throttle", str(PCAPS / "quota-3.9.pcap")]) == 0
    assert "complied with 5 of 5 throttles" in " ".join(capsys.readouterr().out.split())


def test_no_response_was_throttled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["throttle", str(CAPTURE)]) == 0
    assert "No response was throttled." in capsys.readouterr().out


# -- errors -----------------------------------------------------------------------------------------------------------
def test_partition_errors(capsys: pytest.CaptureFixture[str]) -> None:
    made = json_of(capsys, "errors", "broker-paused.pcap", "--by", "topic,partition,error")
    assert all({"topic", "partition", "error", "count"} <= row.keys() for row in made["rows"])


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "html"])
def test_every_format_has_the_requests_without_a_response(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    unanswered = json_of(capsys, "errors", "broker-paused.pcap")["unanswered"]
    assert main(["errors", str(PCAPS / "broker-paused.pcap"), "--format", form]) == 0
    out = capsys.readouterr().out
    assert unanswered
    assert all(row["example"] in out for row in unanswered)


# -- topics and clients -----------------------------------------------------------------------------------------------
def test_producers_consumers_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", str(PCAPS / "kafka-0.8-clients.pcap")]) == 0
    out = capsys.readouterr().out
    assert "orders-10" in out
    assert "busiest partitions" in out
    assert "lag of groups" in out


def test_a_client_in_detail(capsys: pytest.CaptureFixture[str]) -> None:
    made = json_of(capsys, "clients", "java-transactions.pcap")
    found = next(row for row in made["rows"] if row["client_id"] == "shop-tx")
    assert found["software_name"] == "apache-kafka-java"
    assert "orders-tx-1" in found["transactional_ids"]
    assert found["idempotent"] is True
    assert sum(row["requests"] for row in made["rows"]) > 0
