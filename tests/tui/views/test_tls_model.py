"""TLS connections: all of them, with the facts of the table `connections`."""

import pytest

from kcap.tui.views import tls_model as model
from tests.tui.views.laws import lines_hold, sheet_holds
from tests.tui.views.stub import StubBook, drive

FAILED = "problems/tls-plaintext-confusion.pcap"
CAPTURES = ("tls13.pcapng", "tls12-resumed.pcapng", FAILED)


@pytest.mark.parametrize("name", CAPTURES)
def test_each_tls_connection_is_a_row_with_the_facts_of_the_table(name: str) -> None:
    connections = StubBook(name).table("connections")
    assert connections is not None
    of_tls = {row["connection"]: row for row in connections.to_pylist() if row["tls"]}
    sheet = model.tls(connections, None)
    assert sheet is not None
    assert {row["connection"] for row in sheet.rows} == set(of_tls)
    assert sheet.note.startswith(f"{len(of_tls)} TLS connection")
    for row in sheet.rows:
        assert all(row[column] == of_tls[row["connection"]][column] for column in model.FACTS)
        assert sheet.detail is not None
        lines_hold(sheet.detail(row, 90), 90)
    alerted = [bool(row["tls_alerts"]) for row in sheet.rows]
    assert alerted == sorted(alerted, reverse=True), "alerts stand first"
    assert sheet_holds(sheet, name) >= sum(bool(row["exchanges"]) for row in sheet.rows)


def test_alerts_are_named_without_their_meaning() -> None:
    row = {"tls_alerts": ["client: unknown_ca (the issuer is not known)", "server: bad_record_mac (x)"]}
    assert model.alerts(row) == "client: unknown_ca; server: bad_record_mac"
    assert model.alerts({"tls_alerts": None}) == ""


def test_a_filter_leaves_the_connections_that_pass() -> None:
    book = StubBook("tls13.pcapng")
    connections, exchanges = book.table("connections"), book.exchanges(["connection"])
    assert connections is not None
    one = exchanges.slice(0, 1)["connection"]
    sheet = model.tls(connections, one)
    assert sheet is not None
    assert [row["connection"] for row in sheet.rows] == one.to_pylist()
    assert model.tls(connections, one.slice(0, 0)) is None


def test_captures_without_tls_have_no_such_section() -> None:
    connections = StubBook("java-transactions.pcap").table("connections")
    assert connections is not None
    assert model.tls(connections, None) is None


def test_the_section_is_one_key_away() -> None:
    seen = drive(StubBook(FAILED), "conversations", "2", size=(140, 45))
    assert "2:TLS" in seen.text
    assert "TLS connections: " in seen.text
