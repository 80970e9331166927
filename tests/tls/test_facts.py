"""What is known of a TLS connection becomes columns of `connections`."""

from kcap.columns import CONNECTIONS
from kcap.tls.facts import TlsFacts, tls_values


def test_every_column_about_tls_has_its_value() -> None:
    columns = {column.name for column in CONNECTIONS if column.name.startswith("tls_")}
    assert columns == {name for name in tls_values(TlsFacts()) if name.startswith("tls_")}


def test_alerts_are_said_with_their_meaning_and_for_reports_without() -> None:
    values = tls_values(TlsFacts(alerts=["client: unknown_ca", "server: alert 200"]))
    assert values["alerts"] == "client: unknown_ca; server: alert 200"
    assert values["tls_alerts"] == [
        "client: unknown_ca (the issuer of the peer's certificate is not known or not trusted)", "server: alert 200",
    ]  # fmt: skip
    assert (tls_values(TlsFacts())["alerts"], tls_values(TlsFacts())["tls_alerts"]) == (None, [])
