"""Laws of the way from segments to exchanges, searched by hypothesis over hand-made conversations."""

import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap import limits
from kcap.analyzer import Analyzer
from kcap.net.tcp import MASK
from tests.support.wire import (
    Seen,
    Segment,
    Tap,
    analyze,
    batch,
    metadata,
    metadata_answer,
    produce,
    produce_answer,
    shuffled,
)

FACTS = ("exchange", "api_key", "api_version", "correlation_id", "client_id", "outcome", "request_bytes", "response_bytes")
TIMES = ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns")


@st.composite
def message_pairs(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    """Pairs of a request and its answer (empty for acks=0)."""
    out = []
    for correlation in range(draw(st.integers(1, 12))):
        kind = draw(st.integers(0, 3))
        if kind == 0:
            out.append((metadata(correlation), metadata_answer(correlation, draw(st.integers(0, 200)))))
        elif kind == 1:
            out.append((produce(correlation, 0, bytes(draw(st.integers(0, 3000)))), b""))
        else:
            out.append((produce(correlation, 1, bytes(draw(st.integers(0, 3000)))), produce_answer(correlation)))
    return out


def conversation(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, isn: int = 1000) -> Tap:
    """The conversation on the wire: `depth` requests in flight, segments of `sizes` bytes."""
    tap = Tap(client_isn=isn, server_isn=(isn * 7 + 5) & MASK).open()
    waiting: list[bytes] = []
    for question, answer in messages:
        tap.client(question, sizes)
        waiting.append(answer)
        if len(waiting) >= depth:
            tap.server(b"".join(waiting), sizes)
            waiting.clear()
    tap.server(b"".join(waiting), sizes)
    return tap


def ledger_holds(seen: Seen) -> None:
    """Bytes in = framed + skipped + opaque + pending, for both sides."""
    for c in seen.connections:
        for side in ("client", "server"):
            parts = [c[f"{side}_{part}"] for part in ("framed", "skipped", "opaque", "pending")]
            assert c[f"{side}_captured"] == sum(parts), (side, c)  # type: ignore[arg-type]


@given(message_pairs(), st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 5), st.integers(0, MASK))
def test_chunking_and_numbers_change_nothing(
    messages: list[tuple[bytes, bytes]], sizes: int, others: int, depth: int, isn: int
) -> None:
    """Any segment size and initial sequence number gives the same exchanges."""
    whole = analyze(conversation(messages, sizes, depth).close().segments)
    other = analyze(conversation(messages, others, depth, isn).close().segments)
    assert whole.brief(*FACTS) == other.brief(*FACTS)
    assert [r["outcome"] for r in whole.rows].count("orphan") == 0
    assert len(whole.rows) == len(messages)
    ledger_holds(whole)
    ledger_holds(other)


@given(message_pairs(), st.integers(20, 3000), st.integers(1, 5), st.integers(1, 12), st.integers(0, 1000))
def test_reordering_changes_no_fact(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, reach: int, seed: int) -> None:
    """Segments displaced within the window give the same exchanges."""
    tap = conversation(messages, sizes, depth)
    straight = analyze(tap.segments)
    moved = analyze(shuffled(tap.segments, reach, seed))
    assert sorted(straight.brief(*FACTS[1:])) == sorted(moved.brief(*FACTS[1:]))
    ledger_holds(moved)


@given(message_pairs(), st.integers(1, 3000), st.integers(1, 5), st.data())
def test_duplicates_change_no_fact(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, data: st.DataObject) -> None:
    """Segments seen twice, at once or later, give the same exchanges at the same times."""
    segments = conversation(messages, sizes, depth).segments
    straight = analyze(segments)
    out: list[Segment] = []
    for s in segments:
        out.append(s)
        if data.draw(st.booleans()):
            out.append(data.draw(st.sampled_from(out[-6:])))
    seen = analyze([Segment(straight_time(out, i), *fields(s)) for i, s in enumerate(out)])
    assert straight.brief(*FACTS) == seen.brief(*FACTS)
    ledger_holds(seen)


def straight_time(segments: list[Segment], index: int) -> int:
    """A time that rises with the place."""
    return segments[0].time_ns + index * 1_000_000


def fields(s: Segment) -> tuple[bytes, int, int, int, bytes, int, int]:
    """A segment without its time."""
    return s.flow, s.seq, s.ack, s.flags, s.payload, s.cut, s.window


@given(message_pairs(), st.integers(1, 3000), st.integers(1, 5), st.integers(1, 60))
def test_batches_change_nothing(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, size: int) -> None:
    """Rows do not depend on the size of the batches fed to the analyzer."""
    segments = conversation(messages, sizes, depth).close().segments
    one, many = analyze(segments), analyze(segments, sizes=size)
    names = (*FACTS, *TIMES, "flags", "rtt_min_ns", "previous_ns", "in_flight")
    assert one.brief(*names) == many.brief(*names)
    assert one.connections == many.connections


@given(message_pairs(), st.integers(1, 3000), st.integers(1, 5))
def test_requests_in_flight_are_those_that_came_before_the_response(
    messages: list[tuple[bytes, bytes]], sizes: int, depth: int
) -> None:
    """The number says what the times do: whole requests that had come when the response was whole, this one included."""
    rows = analyze(conversation(messages, sizes, depth).close().segments).brief(
        "exchange", "outcome", "request_last_ns", "response_last_ns", "in_flight"
    )
    rows.sort()
    for at, (_, outcome, _, done, count) in enumerate(rows):
        behind = [row for row in rows[at:] if row[1] != "one_way" and row[2] is not None and row[2] < (done or 0)]
        assert count == (len(behind) if outcome == "answered" else None)


@given(message_pairs(), st.integers(1, 3000), st.integers(1, 5), st.integers(0, 40))
def test_a_restored_analyzer_goes_on_as_if_nothing_was(
    messages: list[tuple[bytes, bytes]], sizes: int, depth: int, at: int
) -> None:
    """Pickle and restore after any packet changes nothing."""
    segments = conversation(messages, sizes, depth).close().segments
    straight = analyze(segments)
    analyzer = Analyzer()
    analyzer.feed(batch(segments[:at]))
    analyzer = pickle.loads(pickle.dumps(analyzer))
    analyzer.feed(batch(segments[at:], at + 1))
    analyzer.finish()
    seen = Seen()
    seen.take(analyzer)
    assert straight.brief(*FACTS, *TIMES, "flags") == seen.brief(*FACTS, *TIMES, "flags")
    assert [c.values for c in analyzer.take_connections()] == straight.connections


@given(message_pairs(), st.integers(200, 1500), st.integers(1, 3), st.data())
def test_loss_invents_nothing(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, data: st.DataObject) -> None:
    """Whatever segments are missing: each row is a row of the whole capture, or an orphan of one of its answers."""
    segments = conversation(messages, sizes, depth).segments
    kept = [s for s in segments if not s.payload or data.draw(st.integers(0, 9))]
    whole = {r[0]: r for r in analyze(segments).brief("correlation_id", "api_key", "request_bytes", "response_bytes")}
    seen = analyze(kept)
    for correlation, key, question, answer in seen.brief("correlation_id", "api_key", "request_bytes", "response_bytes"):
        assert correlation in whole
        assert question in (None, whole[correlation][2])
        assert answer in (None, whole[correlation][3])
        assert key in (None, whole[correlation][1])
    ledger_holds(seen)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.binary(max_size=200), st.integers(0, 63), st.integers(-3000, 3000), st.integers(0, 200)
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_no_input_raises(noise: list[tuple[int, bytes, int, int, int]], opened: bool) -> None:
    """Any segments whatever: nothing raises, and the ledger holds."""
    tap = Tap()
    if opened:
        tap.open().client(metadata(1))
    for side, payload, flags, shift, cut in noise:
        tap.add(side, flags, payload, seq=(tap.next[side] + shift) & MASK)
        last = tap.segments[-1]
        tap.segments[-1] = Segment(last.time_ns, last.flow, last.seq, last.ack, flags, payload, min(cut, len(payload)))
    ledger_holds(analyze(tap.segments))


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=300)), max_size=25), st.booleans())
def test_no_stream_raises(pieces: list[tuple[int, bytes]], sane: bool) -> None:
    """Any bytes in order, with lengths that make them frames or not: nothing raises, and the ledger holds."""
    tap = Tap().open().client(metadata(0)).server(metadata_answer(0))
    for side, data in pieces:
        tap.send(side, struct.pack(">i", len(data)) + data if sane else data)
    seen = analyze(tap.segments)
    ledger_holds(seen)
    assert seen.rows[0]["outcome"] == "answered"


@given(message_pairs(), st.integers(60, 3000), st.integers(1, 3))
def test_every_request_ends_once(messages: list[tuple[bytes, bytes]], sizes: int, depth: int) -> None:
    """Each request is one exchange, numbered without a hole."""
    seen = analyze(conversation(messages, sizes, depth).segments)
    assert [r["exchange"] for r in sorted(seen.rows, key=lambda r: r["exchange"])] == list(range(1, len(messages) + 1))  # type: ignore[arg-type,return-value]


LARGE = 256
"""What counts as a large frame in the law below."""


def without_counts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose compressed messages of old formats passed without being counted."""
    for row in rows:
        large = max(row["request_bytes"] or 0, row["response_bytes"] or 0) > LARGE
        if large and row["magics"] and 2 not in row["magics"] and row["codecs"] != ["none"]:
            row["record_count"] = None
    return rows


@pytest.mark.parametrize("name", ["java-transactions", "aiokafka", "go-franz", "kafka-0.8-clients", "rotated"])
def test_large_frames_are_read_as_they_pass(pcaps: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Law: the row of a frame that is read as it passes is that of one that is gathered."""
    gathered = kcap.open(pcaps / f"{name}.pcap").exchanges().to_arrow().to_pylist()
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", LARGE)
    passed = kcap.open(pcaps / f"{name}.pcap").exchanges().to_arrow().to_pylist()
    assert without_counts(passed) == without_counts(gathered)
    assert any(max(row["request_bytes"] or 0, row["response_bytes"] or 0) > LARGE for row in gathered)
