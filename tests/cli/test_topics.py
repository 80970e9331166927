"""Laws of `kcap topics`: what design promises of its JSON; text that fits."""

import pytest

from kcap.cli.main import main
from tests.cli.reporting import fits, follows_the_contract, json_of
from tests.cli.running import PCAPS


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("topics", json_of(capsys, "topics", "kafka-0.8-clients.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "topics", "kafka-0.8-clients.pcap")


def test_who_writes_and_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", str(PCAPS / "kafka-0.8-clients.pcap")]) == 0
    out = capsys.readouterr().out
    assert "orders-10" in out
    assert "busiest partitions" in out
    assert "groups behind" in out
