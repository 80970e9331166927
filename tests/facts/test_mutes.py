"""Laws of waits: parts of the service time, never more than it, and each where the wire shows it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import messages as m
from tests.support.wire import MS

COLUMNS = ["exchange", "service_ns", "throttle_time_ms", "long_poll_ns", "throttle_ns", "muted_ns"]


def waits(path: Path) -> list[dict[str, Any]]:
    rows = m.rows_of(path, COLUMNS)
    for row in rows:
        parts = [row[name] for name in ("long_poll_ns", "throttle_ns", "muted_ns")]
        if row["service_ns"] is None:
            assert parts == [None] * 3
        else:
            assert all(part is None or part >= 0 for part in parts)
            assert sum(part or 0 for part in parts) <= row["service_ns"]
            assert row["muted_ns"] is not None
    return rows


def test_before_kip_219_the_throttle_is_inside_the_latency(tmp_path: Path) -> None:
    story = m.began().ask(m.heartbeat(1, 1), m.heartbeat_answer(1, 200), 205).ask(m.heartbeat(2, 1), m.heartbeat_answer(2), 5)
    rows = waits(m.saved(tmp_path / "a.pcap", story.close()))
    assert [row["throttle_ns"] for row in rows] == [200 * MS, 0]
    assert [row["muted_ns"] for row in rows] == [0, 0]


@pytest.mark.parametrize("version", [1, 2])
def test_since_kip_219_the_broker_answers_at_once_and_mutes(tmp_path: Path, version: int) -> None:
    """An old version on a new broker too: the answer came before the throttle could have been over."""
    story = m.began().ask(m.heartbeat(1, version), m.heartbeat_answer(1, 200), 5)
    answered_ns = story.segments[-1].time_ns
    story.ask(m.heartbeat(2, version), m.heartbeat_answer(2), 210).ask(m.heartbeat(3, version), m.heartbeat_answer(3), 210)
    rows = waits(m.saved(tmp_path / "a.pcap", story.close()))
    asked_ns = answered_ns + MS
    assert [row["throttle_ns"] for row in rows] == [0, 0, 0]
    assert [row["muted_ns"] for row in rows] == [0, answered_ns + 200 * MS - asked_ns - MS, 0], "less a round trip of 1 ms"


def test_a_client_that_waits_is_not_muted(tmp_path: Path) -> None:
    story = m.began().ask(m.heartbeat(1, 2), m.heartbeat_answer(1, 200), 5)
    story.time_ns += 300 * MS
    story.ask(m.heartbeat(2, 2), m.heartbeat_answer(2), 250)
    assert [row["muted_ns"] for row in waits(m.saved(tmp_path / "a.pcap", story.close()))] == [0, 0]


def test_an_early_answer_shows_a_broker_that_does_not_mute(tmp_path: Path) -> None:
    story = m.began().ask(m.heartbeat(1, 2), m.heartbeat_answer(1, 200), 5).ask(m.heartbeat(2, 2), m.heartbeat_answer(2), 50)
    story.ask(m.heartbeat(3, 2), m.heartbeat_answer(3), 300)
    assert [row["muted_ns"] for row in waits(m.saved(tmp_path / "a.pcap", story.close()))] == [0, 0, 0]


def test_a_mute_holds_for_its_connection_alone(tmp_path: Path) -> None:
    first = m.began().ask(m.heartbeat(1, 2), m.heartbeat_answer(1, 200), 5).close()
    second = m.began(40_001).ask(m.heartbeat(1, 2), m.heartbeat_answer(1), 300).close()
    assert [row["muted_ns"] for row in waits(m.saved(tmp_path / "a.pcap", first, second))] == [0, 0]


def test_long_polls_wait_for_bytes_up_to_their_limit(tmp_path: Path) -> None:
    story = m.began().ask(m.fetch(1), m.fetch_answer(1), 301).ask(m.fetch(2), m.fetch_answer(2), 601)
    story.ask(m.fetch(3), m.fetch_answer(3, records=bytes(30)), 301).ask(m.fetch(4, least=0), m.fetch_answer(4), 301)
    story.ask(m.fetch(5, wait_ms=-1), m.fetch_answer(5), 301).client(m.fetch(6))
    rows = waits(m.saved(tmp_path / "a.pcap", story.close()))
    assert [row["long_poll_ns"] for row in rows] == [300 * MS, 500 * MS, 0, 0, 0, None]


def test_a_muted_fetch_polled_for_the_rest_of_its_time(tmp_path: Path) -> None:
    story = (
        m.began().ask(m.fetch(1), m.fetch_answer(1, records=bytes(9), throttle=200), 5).ask(m.fetch(2), m.fetch_answer(2), 400)
    )
    second = waits(m.saved(tmp_path / "a.pcap", story.close()))[1]
    assert second["muted_ns"] == 198 * MS
    assert second["long_poll_ns"] == second["service_ns"] - second["muted_ns"]


STEPS = st.lists(
    st.tuples(
        st.integers(1, 2), st.sampled_from([0, 0, 1, 5, 50, 700]), st.integers(1, 900), st.integers(0, 400), st.booleans()
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30)
@given(STEPS)
def test_parts_never_exceed_the_whole(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int, int, bool]]
) -> None:
    """Whatever throttle follows whatever: asked one by one or two at once, obeyed or not."""
    story = m.began()
    for at, (version, throttle, after, pause, twice) in enumerate(steps):
        if twice:
            story.client(m.heartbeat(1000 + at, version)).client(m.heartbeat(at, version))
            story.time_ns += after * MS
            story.server(m.heartbeat_answer(1000 + at, throttle)).server(m.heartbeat_answer(at, throttle))
        else:
            story.ask(m.heartbeat(at, version), m.heartbeat_answer(at, throttle), after)
        story.time_ns += pause * MS
    waits(m.saved(tmp_path_factory.mktemp("waits") / "a.pcap", story.close()))


def test_two_eras_of_quotas(pcaps: Path) -> None:
    """A 0.10.2 broker sits on its answers; a 3.9 broker answers and goes silent (pcaps/README.md)."""
    old, new = waits(pcaps / "quota-0.10.pcap"), waits(pcaps / "quota-3.9.pcap")
    throttled = [row for row in old if row["throttle_time_ms"]]
    assert len(throttled) > 5
    assert all(row["throttle_ns"] == row["throttle_time_ms"] * MS for row in throttled if row["service_ns"] is not None)
    assert sum(row["muted_ns"] or 0 for row in old) == 0
    assert sum(row["throttle_ns"] or 0 for row in new) == 0
    assert max(row["muted_ns"] for row in new) > 3_900 * MS, "3.9 seconds with a throttle time of 0"


def test_half_second_polls_are_polls(pcaps: Path) -> None:
    rows = waits(pcaps / "long-polls.pcap")
    polls = [row for row in rows if (row["long_poll_ns"] or 0) >= 499 * MS]
    assert len(polls) > 10
    assert max(row["long_poll_ns"] or 0 for row in rows) <= 500 * MS
