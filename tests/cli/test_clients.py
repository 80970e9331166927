"""Laws of `kcap clients`: what design promises of its JSON; text that fits."""

import pytest

from tests.cli.reporting import fits, follows_the_contract, json_of


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    follows_the_contract("clients", json_of(capsys, "clients", "java-transactions.pcap"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fits(capsys, monkeypatch, width, "clients", "java-transactions.pcap")


def test_what_a_client_is(capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, "clients", "java-transactions.pcap")
    found = next(row for row in told["rows"] if row["client_id"] == "shop-tx")
    assert found["software_name"] == "apache-kafka-java"
    assert "orders-tx-1" in found["transactional_ids"]
    assert found["idempotent"] is True
    assert sum(row["requests"] for row in told["rows"]) > 0
