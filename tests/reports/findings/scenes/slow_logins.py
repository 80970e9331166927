"""Scenes of logins that a broker takes long for."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import exchange, many, observed


def slow_logins() -> Observed:
    """Four of ten login requests take 5 s; twenty Metadata take 1 ms meanwhile."""
    rows = [exchange(f"L{at}", 1, "SaslAuthenticate", 2 * at, 5 if at < 4 else 0.004) for at in range(10)]
    return observed([*rows, *many(20, 0.5, "Metadata", connection="M")])


SCENES = [
    Scene("login-slow", slow_logins, """
        medium 0.8: 4 of 10 login requests took broker 10.0.0.1:9092 5.0 s (median), and other requests 1 ms meanwhile. Seen 4
        times from 0 s to 6 s, 20 s lost. Who: server 10.0.0.1:9092, client_ids ['app']. Filter: server_ip == "10.0.0.1" and
        server_port == 9092 and api in {SaslAuthenticate, SaslHandshake} and error == NONE and latency_ns >= 1000ms. Evidence:
        logins 4, login_requests 10, longest_ns 5000000000, median_ns 5000000000, others_median_ns 1000000.
        """, least={"logins": 4, "seconds": 5, "share": 0.4, "times": 5000}),
]  # fmt: skip
