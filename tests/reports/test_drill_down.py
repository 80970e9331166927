"""The way down: whatever a name holds, the filter reads it and lets the right exchanges pass."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.filter.parse import parse
from kcap.filter.row_predicate import condition
from kcap.reports import drill_down
from kcap.reports.definition import key_of
from kcap.reports.names import shortened
from kcap.reports.text import instant

NAMES = st.text(max_size=12)
TIMES = st.integers(10**18, 2 * 10**18)


def passes(text: str, row: dict[str, Any]) -> bool:
    return condition(parse(text))(row)


@given(name=NAMES, other=NAMES)
def test_any_name_is_found_and_no_other(name: str, other: str) -> None:
    text = drill_down.equals("client_id", name)
    assert passes(text, {"client_id": name})
    assert passes(text, {"client_id": other}) == (name == other)
    assert not passes(text, {"client_id": None})


@given(name=st.text(min_size=limits.REPORT_NAME_BYTES + 1, max_size=600))
def test_a_shortened_name_leads_to_the_exchanges_with_the_whole_name(name: str) -> None:
    for shown in (name, shortened(name)):
        text = drill_down.equals("client_id", shown)
        assert passes(text, {"client_id": name})
        assert passes(text, {"client_id": shortened(name)})
        assert not passes(text, {"client_id": name[:100]})
    assert passes(drill_down.topic(shortened(name)), {"topics": ["a", name], "topic_ids": [None, None]})


def test_nothing_is_found_as_nothing() -> None:
    assert passes(drill_down.equals("client_id", None), {"client_id": None})
    assert not passes(drill_down.equals("client_id", None), {"client_id": "x"})
    assert passes(drill_down.equals("tls", True), {"tls": True})
    assert passes(drill_down.equals("tls", False), {"tls": False})
    assert passes(drill_down.equals("api", "Fetch"), {"api": "Fetch"})
    assert passes(drill_down.equals("error", "OF_A_LATER_RELEASE"), {"error": "OF_A_LATER_RELEASE"})
    assert passes(drill_down.equals("api_version", 0), {"api_version": 0})
    assert passes(drill_down.equals("client_ip", "10.0.0.1"), {"client_ip": "10.0.0.1"})


@given(name=NAMES)
def test_topics_go_by_name_or_by_id(name: str) -> None:
    assert passes(drill_down.topic(name), {"topics": ["a", name], "topic_ids": [None, None]})
    assert passes(drill_down.topic("xtzWWN4bTjitpL3kfd9s5g"), {"topics": [None], "topic_ids": ["xtzWWN4bTjitpL3kfd9s5g"]})
    assert passes(drill_down.topic(None), {"topics": [], "topic_ids": []})


def test_conditions_keep_together() -> None:
    """Law: an alternative inside of `every` holds as one."""
    text = drill_down.every("error_code != 0", drill_down.topic("xtzWWN4bTjitpL3kfd9s5g"), None, "")
    row = {"error_code": 0, "topics": [None], "topic_ids": ["xtzWWN4bTjitpL3kfd9s5g"]}
    assert not passes(text, row)
    assert passes(text, row | {"error_code": 3})


@given(at=TIMES, step=st.integers(1, 10**9))
def test_times(at: int, step: int) -> None:
    """Law: the end is no part of a time; microseconds decide, which is what `time` has."""
    start, end = at // 1000 * 1000, (at // 1000 + step) * 1000
    text = drill_down.between(start, end)
    assert passes(text, {"time": start // 1000})
    assert not passes(text, {"time": end // 1000})
    assert not passes(text, {"time": start // 1000 - 1})
    assert passes(text, {"time": end // 1000 - 1})


@given(at=TIMES)
def test_times_of_reports_are_read_back(at: int) -> None:
    assert drill_down.nanoseconds(instant(at)) == at
    step = 10**9
    key = key_of("time:1s")
    text = drill_down.part(key, instant(at // step * step, step))
    assert passes(text, {"time": at // 1000})


@given(low=st.integers(1, 10**10), high=st.integers(1, 10**10), value=st.integers(0, 10**10))
def test_classes_of_latencies(low: int, high: int, value: int) -> None:
    assert passes(drill_down.within(low, high), {"latency_ns": value + 5, "long_poll_ns": 5}) == (low <= value < high)
    assert passes(drill_down.within(None, high, "latency_ns"), {"latency_ns": value}) == (value < high)


def test_groups() -> None:
    keys = [key_of("api"), key_of("topic"), key_of("partition", frozenset({"partition"}))]
    assert drill_down.group(keys, {"api": "Fetch", "topic": "t", "partition": 3}) == 'api == Fetch && topics == "t"'
    assert drill_down.part(key_of("time:1s"), None) == "!time"


def test_names_of_exchanges() -> None:
    assert drill_down.exchange("Cabc.12") == ("Cabc", 12)
    assert [drill_down.exchange(text) for text in (None, "", "Cabc", "Cabc.x")] == [None] * 4
