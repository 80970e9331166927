"""Laws of `kcap errors`: what design promises of its JSON; text that fits."""

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("errors", json_of(capsys, "errors", "raw-frames.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "errors", "raw-frames.pcap")


def test_partition_errors(capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, "errors", "broker-paused.pcap", "--by", "topic,partition,error")
    assert all({"topic", "partition", "error", "count"} <= row.keys() for row in told["rows"])


def test_requests_without_an_answer_stand_beside(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", str(PCAPS / "broker-paused.pcap")]) == 0
    assert "without an answer" in capsys.readouterr().out
