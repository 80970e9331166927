"""Laws of `kcap throttle`: what design promises of its JSON; text that fits."""

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("throttle", json_of(capsys, "throttle", "quota-3.9.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "throttle", "quota-3.9.pcap")


def test_who_did_not_keep_quiet_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["throttle", str(PCAPS / "quota-3.9.pcap")]) == 0
    assert "requests came before the time was over" in " ".join(capsys.readouterr().out.split())


def test_nobody_was_throttled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["throttle", str(PCAPS / "aiokafka.pcap")]) == 0
    assert "nobody was throttled" in capsys.readouterr().out
