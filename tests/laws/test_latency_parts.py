"""Each part of a latency, worked out by hand for a small capture that is made here.

All stories have a round trip of 2 ms between the tap and the broker. Times are in milliseconds from the story's first packet.
"""

import struct
from pathlib import Path
from typing import Any

import pytest

from kcap.net.tcp import ACK, PSH, SYN
from tests.support.messages import rows_of, saved
from tests.support.wire import MS, Tap, metadata, metadata_answer, request, response

RTT = 2
PARTS = ("latency_ns", "rtt_ns", "queue_ns", "service_ns", "long_poll_ns", "throttle_ns", "muted_ns", "transfer_ns")
FETCH, PRODUCE = 1, 0


class Story(Tap):
    """A connection whose packets come at given times."""

    def at(self, ms: float) -> "Story":
        """The time of the next packet."""
        self.time_ns = self.start_ns + round(ms * MS)
        return self

    def begin(self) -> "Story":
        """The handshake, which shows the round trip."""
        self.start_ns = self.time_ns
        self.add(0, SYN, seq=self.client_isn)
        self.at(RTT).add(1, SYN | ACK, seq=self.server_isn)
        self.at(RTT).add(0, ACK)
        return self


def fetch(correlation: int, max_wait: int, min_bytes: int) -> bytes:
    """A Fetch v4 request for nothing in particular."""
    return request(FETCH, 4, correlation, struct.pack(">iiiibi", -1, max_wait, min_bytes, 1 << 20, 0, 0))


def fetched(correlation: int, throttle: int = 0) -> bytes:
    """A Fetch v4 response without records."""
    return response(correlation, struct.pack(">ii", throttle, 0))


def produce(correlation: int, version: int) -> bytes:
    """A Produce request, version 3 to 6, without a partition."""
    return request(PRODUCE, version, correlation, struct.pack(">hhii", -1, 1, 1000, 0))


def produced(correlation: int, throttle: int = 0) -> bytes:
    """Its response."""
    return response(correlation, struct.pack(">ii", 0, throttle))


def parts(path: Path, *stories: Tap) -> list[dict[str, Any]]:
    """The parts of each exchange in milliseconds, in order of time."""
    rows = rows_of(saved(path, *stories))
    rows.sort(key=lambda row: row["request_first_ns"])
    return [{name: None if row[name] is None else row[name] / MS for name in PARTS} | {"flags": row["flags"]} for row in rows]


def reported(row: dict[str, Any]) -> tuple[float | None, ...]:
    return tuple(row[name] for name in PARTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "story.pcap"


def test_head_of_line(path: Path) -> None:
    """Three requests at once: the second waits for the first answer, the third for the second and then for its own."""
    story = Story().begin()
    for number, ms in ((1, 10), (2, 11), (3, 12)):
        story.at(ms).client(metadata(number))
    for number, ms in ((1, 110), (2, 111), (3, 150)):
        story.at(ms).server(metadata_answer(number))
    first, second, third = parts(path, story)
    assert reported(first)[:4] == (100, RTT, 0, 98)
    assert reported(second)[:4] == (100, RTT, 110 - 11 - RTT, 100 - RTT - 97)
    assert reported(third)[:4] == (138, RTT, 111 - 12 - RTT, 138 - RTT - 97)


def test_a_long_poll(path: Path) -> None:
    """500 ms were asked for, and nothing came; the other 3 ms were the broker's own. One that needs no byte does not wait."""
    story = Story().begin()
    story.at(10).client(fetch(1, 500, 1)).at(515).server(fetched(1))
    story.at(600).client(fetch(2, 500, 0)).at(640).server(fetched(2))
    waited, prompt = parts(path, story)
    assert reported(waited) == (505, RTT, 0, 503, 500, 0, 0, 0)
    assert reported(prompt) == (40, RTT, 0, 38, 0, 0, 0, 0)


def test_a_throttle_inside_the_latency(path: Path) -> None:
    """Before KIP-219 the broker keeps the answer back for the time that it tells."""
    story = Story().begin().at(10).client(produce(1, 5)).at(322).server(produced(1, 300))
    (late,) = parts(path, story)
    assert reported(late) == (312, RTT, 0, 310, 0, 300, 0, 0)


def test_a_mute_behind_an_answer(path: Path) -> None:
    """Since KIP-219 the answer comes at once, and the next request is not read until the time is over."""
    story = Story().begin().at(10).client(produce(1, 6)).at(20).server(produced(1, 200))
    story.at(60).client(produce(2, 6)).at(225).server(produced(2))
    story.at(300).client(produce(3, 6)).at(310).server(produced(3))
    first, second, third = parts(path, story)
    assert reported(first) == (10, RTT, 0, 8, 0, 0, 0, 0)
    arrived, until = 60 + RTT, 20 + 200
    assert reported(second) == (165, RTT, 0, 163, 0, 0, until - arrived, 0)
    assert reported(third) == (10, RTT, 0, 8, 0, 0, 0, 0)


def test_a_request_that_was_sent_again(path: Path) -> None:
    """The latency runs from the first copy that was seen; its round trip is no sample (Karn)."""
    story = Story().begin().at(10).client(metadata(1))
    again = story.segments[-1]
    story.at(210).add(0, PSH | ACK, again.payload, again.seq)
    story.at(211).server(metadata_answer(1))
    (row,) = parts(path, story)
    assert reported(row)[:4] == (201, RTT, 0, 199)
    assert row["flags"] == ["retransmitted"]


def test_an_answer_in_pieces(path: Path) -> None:
    """The latency ends with the first byte; what comes behind is the transfer, which delays the next answer's queue."""
    story = Story().begin().at(10).client(metadata(1)).at(11).client(metadata(2))
    answer = metadata_answer(1, 9)
    for ms, low in ((30, 0), (40, 60), (55, 120)):
        story.at(ms).server(answer[low : low + 60 if low < 120 else None])
    story.at(56).server(metadata_answer(2))
    first, second = parts(path, story)
    assert reported(first)[:4] == (20, RTT, 0, 18)
    assert first["transfer_ns"] == 25
    assert reported(second)[:4] == (45, RTT, 55 - 11 - RTT, 45 - RTT - 42)
