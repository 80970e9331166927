"""The closure: nulls, lists, bodies."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kcap.filter.ast import Network
from kcap.filter.parse import parse
from kcap.filter.row_predicate import RowSelector, condition, micros, within

ROW: dict[str, Any] = {
    "api": "Fetch",
    "api_key": 1,
    "client_id": None,
    "latency_ns": 60_000_000,
    "topics": ["orders", None],
    "flags": [],
    "tls": False,
    "client_ip": "10.0.0.1",
    "server_ip": "10.0.0.2",
    "time": datetime(2026, 11, 21, 6, tzinfo=UTC),
    "error_code": 0,
}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("client_id == x", False),
        ("client_id != x", False),
        ("!(client_id == x)", True),
        ("client_id", False),
        ("!client_id", True),
        ('client_id contains ""', False),
        ("topics", True),
        ("flags", False),
        ("topics == orders", True),
        ("topics != orders", False),
        ("all topics == orders", True),
        ("count(topics) == 1", True),
        ("count(flags) == 0", True),
        ("tls", False),
        ("tls == false", True),
        ("ip.addr == 10.0.0.2", True),
        ("ip.addr != 10.0.0.2", False),
        ("any ip.addr != 10.0.0.2", True),
        ("latency > 50ms", True),
        ('time == "2026-11-21 06:00"', True),
        ("", True),
        ("error_code == NONE", True),
        ('topics matches "ORD"', True),
    ],
)
def test_one_row(text: str, passes: bool) -> None:
    """An absent value equals nothing and differs from nothing; `not` turns the answer around."""
    assert condition(parse(text))(ROW) is passes


BODY = {"topics": [{"topic": "a", "partitions": [{"fetchOffset": 5}, {"fetchOffset": 500}]}, {"topic": "b", "partitions": []}]}


def test_fields_of_bodies() -> None:
    """All entries of all arrays on the way are values of a deep field."""

    def body(_: int, side: str) -> Mapping[str, Any] | None:
        return BODY if side == "request" else None

    def passes(text: str) -> bool:
        return condition(parse(text))(ROW, body)

    assert passes("request.topics.partitions.fetch_offset > 100")
    assert not passes("all request.topics.partitions.fetch_offset > 100")
    assert passes("count(request.topics.partitions.fetch_offset) == 2")
    assert passes("request.topics.topic == b")
    assert not passes("response.error_code == 0"), "there is no response"
    assert not passes("request.transactional_id"), "another API's"


def test_bodies_are_decoded_last_and_only_where_needed() -> None:
    """Cheap conditions stand before those that look into bodies, wherever they were typed."""
    asked: list[int] = []

    def body(row: int, side: str) -> Mapping[str, Any] | None:
        asked.append(row)
        return BODY

    columns = {"api": ["Fetch", "Produce", "Fetch"], "api_key": [1, 0, 1], "latency_ns": [1, 1, 99]}
    tree = parse("request.topics.partitions.fetch_offset > 100 and latency > 50ns")
    assert tree is not None
    assert RowSelector(columns, body).rows(tree, range(3)) == [2]
    assert asked == [2]


def test_networks() -> None:
    assert within("10.1.2.3", Network(4, 10 << 24, (11 << 24) - 1))
    assert not within("::1", Network(4, 0, (1 << 32) - 1))


def test_times_are_microseconds() -> None:
    assert micros(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)) == 1_000_005
    assert micros("x") == "x"
