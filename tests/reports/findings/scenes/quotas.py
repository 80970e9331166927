"""Scenes of clients that are throttled."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, MS, Row, exchange, observed

QUOTA: Row = {"api_key": 0, "api_version": 9, "throttle_ns": 0}


def throttled(connection: str, count: int, next_after: float, **more: object) -> list[Row]:
    """Responses that throttle for a second, 4 s apart, each followed by a request after so many seconds."""
    rows = []
    for at in range(count):
        rows.append(exchange(connection, 2 * at + 1, "Produce", 4.0 * at, 0, throttle_time_ms=1000, **QUOTA))
        rows.append(exchange(connection, 2 * at + 2, "Produce", 4.0 * at + next_after, 0, throttle_time_ms=0, **QUOTA))
    return [row | more for row in rows]


def complies() -> Observed:
    """One client waits for the end of each of four throttles on two connections, another one for that of two of three. A third
    has throttles in responses that brokers before KIP-219 sent late."""
    before = [row | {"api_version": 5} for row in throttled("C4", 2, 0.5, client_id="c")]
    return observed([*throttled("C1", 3, 1.5), *throttled("C2", 1, 1.0), *throttled("C3", 2, 1.0, client_id="b"),
                     *throttled("C5", 1, 0.5, client_id="b"), *before])  # fmt: skip


def goes_on() -> Observed:
    """One client sends before four throttles are over, on two connections; another one before two."""
    return observed([*throttled("C1", 3, 0.2), *throttled("C2", 1, 0.999), *throttled("C3", 2, 0.2, client_id="b")])


def leaves() -> Observed:
    """A client closes four of six connections before the throttle is over, and sends on others meanwhile."""
    rows, links = [], []
    for at in range(6):
        rows.append(exchange(f"C{at}", 1, "Produce", at * 4, 0, throttle_time_ms=1000, **QUOTA))
        rows.append(exchange(f"D{at}", 1, "Produce", at * 4 + 0.5, 0, throttle_time_ms=0, **QUOTA))
        closed = rows[-2]["response_last_ns"] + (400 if at < 4 else 1000) * MS
        links += [CONNECTION | {"connection": f"C{at}", "closed_ns": closed}, CONNECTION | {"connection": f"D{at}"}]
    return observed(rows, connections=links)


def too_small() -> Observed:
    """Six responses throttle for 0.6 s of each second; those of another client for 0.5 s, but four of them."""
    rows = [exchange("C1", at + 1, "Produce", 1.0 * at, 0, throttle_time_ms=600, **QUOTA) for at in range(5)]
    rows.append(exchange("C1", 6, "Produce", 5.0, 0, throttle_time_ms=3000, **QUOTA))
    other = [exchange("C2", at + 1, "Produce", at, 0, throttle_time_ms=900, client_id="b", **QUOTA) for at in range(4)]
    return observed([*rows, *other])


SCENES = [
    Scene(
        "throttled-obedient",
        complies,
        """
        info 0.95: client app was throttled 4 times, 4.0 s in all; it complied with 4 of 4 throttles. Seen 4 times from 0 s to 8
        s, 4 s lost. Who: client_id app. Filter: client_id == "app" and throttle_time_ms > 0. Evidence: throttled 4, throttle_ms
        4000, complied 4, muting 4.
        info 0.95: client b was throttled 3 times, 3.0 s in all; it complied with 2 of 3 throttles. Seen 3 times from 0 s to 4
        s, 3 s lost. Who: client_id b. Filter: client_id == "b" and throttle_time_ms > 0. Evidence: throttled 3, throttle_ms
        3000, complied 2, muting 3.
        info 0.95: client c was throttled 2 times, 2.0 s in all. Seen 2 times from 0 s to 4 s, 2 s lost. Who: client_id c.
        Filter: client_id == "c" and throttle_time_ms > 0. Evidence: throttled 2, throttle_ms 2000, complied 0, muting 0.
        """,
    ),
    Scene(
        "throttled-disobedient",
        goes_on,
        """
        medium 0.9: client app sent 3 requests on throttled connections before the throttle was over; it complied with 1 of 4
        throttles. Seen 3 times from 0 s to 8 s, 4 s lost. Who: client_id app. Filter: client_id == "app" and muted_ns > 0ms.
        Evidence: violations 3, complied 1, throttles 4.
        """,
        kind="goes on",
        least={"throttles": 4},
    ),
    Scene(
        "throttled-disobedient",
        leaves,
        """
        medium 0.8: client app closed 4 of 6 throttled connections before the throttle was over, and sent 6 requests on others
        meanwhile. Seen 4 times from 0 s to 20 s, 3.6 s lost. Who: client_id app. Filter: client_id == "app" and
        throttle_time_ms > 0. Evidence: left 4, elsewhere 6, throttles 6.
        """,
        kind="leaves",
        least={"throttles": 4},
    ),
    Scene(
        "quota-too-small",
        too_small,
        """
        info 0.8: client app was throttled 75% of the time on 1 connection: its quota is too small for its load. Seen 6 times
        from 0 s to 5 s, 6 s lost. Who: client_id app. Filter: client_id == "app" and throttle_time_ms > 0. Evidence: throttled
        6, throttle_ms 6000, share 0.75.
        """,
        least={"share": 0.75, "throttled": 6},
    ),
]
