"""Responses whose lengths the snapshot length cut: the fast path finds the next one where the reference path does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.kafka.frames import FLAG
from kcap.model import ROW
from tests.fastpath.both import agree, cut, result_of
from tests.support.wire import Segment, Tap, metadata, metadata_answer, produce, produce_answer, response

BROKER = b"\x23\x84"
"""Its port."""
FIRST = 10
"""The first correlation id of each connection."""


def piped(counts: list[int], port: int = 40_000, *, acks: int = 1, brokers: int = 0) -> Tap:
    """A connection of Produce and Metadata requests; so many of them at a time, whose responses come in one segment."""
    tap, number = Tap(port=port, time_ns=port * 1_000_000_000).open(), FIRST
    for count in counts:
        answers = b""
        for _ in range(count):
            one_way = not acks and number % 4 == 0
            pairs = (
                (produce(number, 0 if one_way else 1, bytes(number % 90)), b"" if one_way else produce_answer(number)),
                (metadata(number), metadata_answer(number, brokers)),
            )
            question, answer = pairs[number % 3 == 0]
            tap.client(question)
            answers += answer
            number += 1
        tap.server(answers, 60_000)
    return tap


def snapped(segments: list[Segment], length: int) -> list[Segment]:
    """Segments of the broker of which at most so many bytes of payload were captured."""
    return [replace(s, cut=max(len(s.payload) - length, 0)) if s.flow[-4:-2] == BROKER else s for s in segments]


def both(length: int, counts: list[int]) -> list[Segment]:
    """Two connections, one after the other."""
    return [s for port in (40_000, 40_001) for s in snapped(piped(counts, port).close().segments, length)]


@pytest.mark.parametrize("length", range(38, 110, 3))
def test_a_length_that_was_cut_costs_the_connection_nothing(length: int) -> None:
    """Law: both paths agree wherever the cut is."""
    found = agree(both(length, [4, 4, 4, 4]), 12, 4)
    lost = [row for row in found.rows if row[ROW.index("reason")] == "lost_in_capture"]
    assert length > 100 or lost


def test_such_a_connection_has_no_objects() -> None:
    found = agree(both(74, [4, 5, 4, 2]), 12, 4)
    assert found.own == 2
    assert any(int(str(row[ROW.index("response_flags") - 2])) & FLAG["resynced"] for row in found.rows)
    assert {row[ROW.index("reason")] for row in found.rows} == {None, "lost_in_capture"}


@given(
    st.lists(st.integers(1, 7), min_size=2, max_size=12), st.integers(0, 160), st.booleans(), st.integers(0, 5),
    st.integers(5, 40), st.integers(3, 12), st.data(),
)  # fmt: skip
def test_any_cut(
    counts: list[int], length: int, all_wait: bool, brokers: int, size: int, step: int, data: st.DataObject
) -> None:
    """Requests in flight, one-way requests, bytes again, connections that end while they search, restored or not."""
    segments = []
    for port in (40_000, 40_001):
        tap = piped(counts, port, acks=int(all_wait), brokers=brokers)
        made = snapped(tap.close().segments if data.draw(st.booleans()) else tap.segments, length)
        at = data.draw(st.integers(0, len(made) - 1))
        fate = data.draw(st.sampled_from(("", "", "again", "whole", "gone")))
        if fate == "again":
            made.insert(data.draw(st.integers(at, len(made) - 1)) + 1, made[at])
        elif fate == "whole":
            made[at] = replace(made[at], cut=0)
        elif fate == "gone":
            del made[at]
        segments += [replace(s, time_ns=port * 1_000_000_000 + place * 1_000_000) for place, s in enumerate(made)]
    if data.draw(st.integers(0, 3)):
        agree(segments, size, step)
        return
    batches = cut(segments, size)
    result_of(batches, fast_path=True, pickled=True).same(result_of(batches, fast_path=False))


@given(st.lists(st.sampled_from(("known", "old", "far", "noise", "small")), min_size=1, max_size=4), st.integers(60, 90))
def test_what_comes_behind_a_cut_length_is_no_more_than_it_was(turns: list[str], length: int) -> None:
    """Law: a segment that is not clearly a response ends no search in either path."""
    segments: list[Segment] = []
    for port in (40_000, 40_001):
        tap = piped([4, 4, 4], port)
        for number in range(200, 206):
            tap.client(metadata(number))
        for turn in turns:
            known, old, far = metadata_answer(202) + metadata_answer(203), metadata_answer(12) * 2, metadata_answer(202) * 2
            noise, small = bytes(range(200)), response(202, b"\0") + metadata_answer(203)
            tap.server({"known": known, "old": old, "far": far, "noise": noise, "small": small}[turn] + bytes(3))
        segments += snapped(tap.close().segments, length)
    agree(segments, 30, 5)


def test_a_long_connection_loses_the_boundary_as_often_as_it_likes() -> None:
    """Law: how many responses were lost before does not keep a search from finding the next."""
    found = agree(snapped(piped([4, 4] * 60).segments, 70), 40, 8)
    answered = [int(str(row[ROW.index("exchange")])) for row in found.rows if row[ROW.index("outcome")] == "answered"]
    assert max(answered) > 4 * 2 * 59
    assert len(answered) > 200
