"""Connections that may be both sides of a proxy, as reports say it."""

from pathlib import Path

import pytest

from kcap.columns import EXCHANGES
from kcap.filter.parse import parse
from kcap.reports import clients, latency, topics
from kcap.reports.both_sides import suspected
from kcap.reports.definition import Report, ReportRequest
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from tests.reports.made import Row, arrow, engine, exchange

PROXY = str(Path(__file__).parents[2] / "pcaps" / "problems" / "proxy-slow.pcap")


def side(connection: str, server: str, count: int, late: float, took: float, **more: object) -> list[Row]:
    """Requests of a connection, 100 ms apart."""
    return [
        exchange(connection=connection, exchange=at + 1, server_ip=server, at_ms=100 * at + late, took_ms=took,
                 correlation_id=at, request_bytes=100 + at, **more)
        for at in range(count)
    ]  # fmt: skip


def said(*rows: list[Row]) -> list[Row]:
    """What is suspected of these."""
    engine().register("exchanges", arrow([row for some in rows for row in some], EXCHANGES))
    return suspected(engine())


FRONT = side("F", "10.0.0.7", 12, 0, 50)


def test_requests_that_are_those_of_another_connection_are_named_with_what_leaves_them_out() -> None:
    (row,) = said(FRONT, side("B", "10.0.0.1", 12, 10, 20, client_ip="10.0.0.7"))
    assert (row["front"], row["back"], row["exchanges"]) == ("10.0.0.7:9092", "10.0.0.1:9092", 12)
    assert row["filter"] == '!(client_ip in {"10.0.0.7"} && server_ip == "10.0.0.1" && server_port == 9092)'
    assert parse(row["filter"]) is not None


def test_a_capture_may_begin_behind_the_first_request_or_end_before_the_last_of_one_side() -> None:
    """One that a gap hides on the proxy's side counts as the first."""
    assert len(said(FRONT, side("B", "10.0.0.1", 11, 10, 20))) == 1
    assert len(said(FRONT, side("B", "10.0.0.1", 12, 10, 20)[1:])) == 1


@pytest.mark.parametrize(
    "other",
    [
        side("B", "10.0.0.1", 12, 10, 60),
        side("B", "10.0.0.1", 9, 10, 20),
        side("B", "10.0.0.7", 12, 10, 20),
        side("B", "10.0.0.1", 12, 10, 20, client_id="other"),
        [row | {"correlation_id": 7} for row in side("B", "10.0.0.1", 12, 10, 20)],
        [row | {"request_bytes": 9} for row in side("B", "10.0.0.1", 12, 10, 20)],
    ],
    ids=["answered later", "few", "one server", "another client", "other ids", "other sizes"],
)
def test_what_is_not_the_same_is_not_suspected(other: list[Row]) -> None:
    assert said(FRONT, other) == []


@pytest.mark.parametrize("report", [clients.REPORT, latency.REPORT, topics.REPORT], ids=lambda report: report.name)
def test_reports_that_count_say_so_and_their_filter_leaves_one_side(report: Report) -> None:
    whole = run(report, ReportInput([PROXY]), ReportRequest())
    (row,) = whole["both_sides"]
    assert (row["front"], row["back"]) == ("127.60.0.9:9092", "127.60.0.1:9092")
    one = run(report, ReportInput([PROXY], only=parse(row["filter"])), ReportRequest())
    assert "both_sides" not in one
    if report is clients.REPORT:
        requests = [sum(row["requests"] for row in made["rows"]) for made in (whole, one)]
        assert requests[0] - requests[1] == row["exchanges"] == 58
