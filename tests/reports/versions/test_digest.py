"""Laws of what is read first: nothing is lost by putting together what is alike, and twenty thousand clients stay readable."""

import pytest

from kcap.cli import report_formats
from kcap.cli.versions_page import document
from kcap.cli.versions_text import report as text_of
from kcap.reports.text import Style
from kcap.reports.versions import digest
from kcap.reports.versions.report import report
from tests.reports.talking import of, profile, whole


def many(count: int) -> dict[str, object]:
    """A report of clients with ids of their own, a third of which break."""
    profiles = []
    for number in range(count):
        version = 3 if number % 3 == 0 else 12
        one = profile([(3, 11), (1, version)], uid=f"C{number:05}", client=f"pod-{number}")
        profiles.append(one)
    return report(whole(*profiles), ["big.pcap"], "4.4")


def test_counts_add_up() -> None:
    made = many(600)
    rows, more = digest.clients(made)
    assert sum(row["clients"] for row in rows) + more == 600
    assert sum(row["connections"] for row in rows) == 600
    assert len(rows) < 10
    every, none = digest.clients(made, every=True)
    assert (len(every), none) == (600, 0)
    assert rows[0]["works_with_target"] == "no"


def test_an_address_of_several_clients_counts_once() -> None:
    made = many(600)
    put = [*digest.clients(made)[0], *digest.against(made)[0]]
    assert max(row["clients"] for row in put) > 1
    assert {row["addresses"] for row in put} == {1}


def test_a_large_report_is_short() -> None:
    made = many(5000)
    assert len(text_of(made, Style(80, False, True))) < 200
    assert len(report_formats.html(document(made))) < 1_000_000
    assert "5,000 clients" in text_of(made, Style(80, False, True))[0]
    first = "5,000 clients: with Kafka 4.4"
    assert first in report_formats.markdown(document(made))
    assert first in report_formats.html(document(made))
    assert "pod-4999" in "\n".join(text_of(made, Style(200, False, True), every=True))


@pytest.mark.parametrize("name", ["raw-frames.pcap", "old-java-new-broker.pcap", "java-transactions.pcap", "fallback-0.9.pcap"])
def test_works_and_what_becomes_of_a_client_agree(name: str) -> None:
    for row in report(of(name), [name], "4.4")["clients"]:
        text = digest.outcome(row)
        if not row["is_broker"]:
            assert text.startswith("breaks:") == (row["works_with_target"] == "no"), (row["client_id"], text)
            assert row["works_with_target"] != "yes" or "open" not in text
