"""Laws of `kcap slow`: what design promises of its JSON; text that fits."""

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("slow", json_of(capsys, "slow", "quota-3.9.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "slow", "quota-3.9.pcap")


def test_every_row_has_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, "slow", "quota-3.9.pcap", "--top", "3")
    assert [row["cause"] for row in told["rows"]] == ["muted"] * 3
    assert main(["slow", str(PCAPS / "quota-3.9.pcap")]) == 0
    assert "of broker's mute after a throttle by" in capsys.readouterr().out


def test_there_is_nothing_to_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slow", str(PCAPS / "aiokafka.pcap"), "--by", "api"]) == 2
    assert "--by" in capsys.readouterr().err
