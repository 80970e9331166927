"""Scenes of TLS without keys: handshakes that fail, and connections that do not last."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, SECOND, START, Row, observed


def hidden(name: str, at: float, lasts_ms: int, **more: object) -> Row:
    """A TLS connection without an exchange that can be read."""
    first = START + round(at * SECOND)
    return CONNECTION | {"connection": name, "phase": "tls", "tls": True, "client_id": None, "exchanges": 0,
                         "server_port": 9093, "tls_version": None, "tls_alerts": [], "first_ns": first,
                         "last_ns": first + lasts_ms * MS, "closed_ns": first + lasts_ms * MS} | more  # fmt: skip


def nothing_in_common() -> Observed:
    """A server ends three handshakes of one host for want of a common version, and one of another host."""
    alert = {"tls_alerts": ["server: protocol_version"]}
    links = [hidden(f"A{at}", 1 + at, 5, **alert) for at in range(3)]
    return observed([], connections=[*links, hidden("B", 2, 5, client_ip="10.0.0.8", **alert)])


def short_connections() -> Observed:
    """All 24 connections of a host last for no more than 2 s, over 48 s; of another host one lasts longer, a third has few."""
    links = [hidden(f"A{at}", at * 46 / 23, 2000 - at % 2, tls_handshake_ns=MS) for at in range(24)]
    links += [hidden(f"B{at}", at, 100 if at else 5001, tls_handshake_ns=MS, client_ip="10.0.0.8") for at in range(24)]
    links += [hidden(f"C{at}", at, 100, tls_handshake_ns=MS, client_ip="10.0.0.7") for at in range(19)]
    return observed([], connections=links)


SCENES = [
    Scene("tls-nothing-in-common", nothing_in_common, """
        high 0.9: 10.0.0.1:9093 finds no TLS version that it supports in the hello of a client at 10.0.0.9: TLS alert
        protocol_version, on 3 connections. Seen 3 times from 1 s to 3.005 s, 0 s lost. Who: server 10.0.0.1:9093, client_ips
        ['10.0.0.9']. Filter: none. Evidence: connections 3, alert server: protocol_version.
        info 0.9: 10.0.0.1:9093 ended 1 TLS handshake with protocol_version whose clients did not try again, as scanners and
        probes do. Seen once from 2 s to 2.005 s, 0 s lost. Who: server 10.0.0.1:9093, client_ips ['10.0.0.8']. Filter: none.
        Evidence: connections 1, alert server: protocol_version.
        """, least={"connections": 3}),
    Scene("tls-short-connections", short_connections, """
        medium 0.6: all 24 encrypted connections of 10.0.0.9 to 10.0.0.1:9093 ended within 2.0 s, 0.5 a second. Seen 24 times
        from 0 s to 47.999 s, 0 s lost. Who: server 10.0.0.1:9093, client_ips ['10.0.0.9']. Filter: none. Evidence: connections
        24, connections_a_second 0.5, longest_ns 2000000000.
        """, least={"connections": 24, "a_second": 0.5},
          most={"life": 2.0}),
]  # fmt: skip
