"""Laws of `kcap stats`: what design promises of its JSON; text that fits."""

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("stats", json_of(capsys, "stats", "broker-paused.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "stats", "broker-paused.pcap")


def test_health_comes_first_and_the_worst_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(PCAPS / "aiokafka.pcap")
    assert main(["stats", path]) == 0
    out = capsys.readouterr().out
    assert out.startswith("With care: ")
    shown = next(line.split("kcap show ")[1].split() for line in out.splitlines() if "kcap show" in line)
    assert main(["show", *shown]) == 0


def test_health_is_that_of_health(capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, "stats", "broker-paused.pcap")
    wanted = json_of(capsys, "health", "broker-paused.pcap")
    assert told["health"]["sentence"] == wanted["sentence"]
    assert [point["sentence"] for point in told["health"]["points"]] == [point["sentence"] for point in wanted["rows"]]
