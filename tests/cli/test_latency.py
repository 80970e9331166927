"""Laws of `kcap latency`: what design promises of its JSON; text that fits."""

from pathlib import Path

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("latency", json_of(capsys, "latency", "aiokafka.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "latency", "aiokafka.pcap")


def test_a_chart_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "chart.svg"
    assert main(["latency", str(PCAPS / "aiokafka.pcap"), "--plot", str(chart)]) == 0
    assert chart.read_text(encoding="utf-8").startswith("<svg")
    assert "JoinGroup" in capsys.readouterr().out


def test_long_polls_stand_apart_unless_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for more in ([], ["--with-long-polls"]):
        told = json_of(capsys, "latency", "long-polls.pcap", "-Y", "api == Fetch", *more)
        counts.append(told["rows"][0]["count"] + told["left_out"].get("long_poll", 0))
        assert bool(told["left_out"].get("long_poll")) is not bool(more)
    assert counts[0] == counts[1]
