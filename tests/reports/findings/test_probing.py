"""Tries of TLS at a listener that does not speak it."""

from kcap.reports.findings.probing import between_hellos, probes
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, observed


def hellos(*times: float, **more: object) -> list[Row]:
    return [
        CONNECTION | {"connection": f"H{at}-{more.get('client_ip')}", "phase": "tls", "client_id": None, "server_captured": 0,
                      "first_ns": START + int(time * SECOND)} | more
        for at, time in enumerate(times)
    ]  # fmt: skip


def test_times_between_the_tries_of_a_host_at_a_server() -> None:
    links = [*hellos(9, 0, 3), *hellos(1, 2, client_ip="10.0.0.8"), *hellos(4, server_captured=7, client_ip="10.0.0.7")]
    gaps = between_hellos(observed([], connections=links))
    assert gaps["10.0.0.9", "10.0.0.1", 9092] == {
        "client_ip": "10.0.0.9", "server_ip": "10.0.0.1", "server_port": 9092, "n": 3, "least": 3 * SECOND, "most": 6 * SECOND,
    }  # fmt: skip
    assert gaps["10.0.0.8", "10.0.0.1", 9092]["least"] == SECOND
    assert len(gaps) == 2, "the server sent something to the third"


def test_one_try_and_quick_ones_are_no_probes() -> None:
    for times, expected in (((0,), False), ((0, 3), True), ((0, 1.9), False), ((0, 5, 11, 16), True), ((0, 3, 9, 12), False)):
        assert probes(observed([], connections=hellos(*times)), CONNECTION) is expected, times
