"""Law: a connection that is over is freed by reference counting; none of its objects is left to the collector of cycles.

A flood closes connections by the million. What each leaves in a cycle costs memory until the collector comes, and its time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from kcap.analyzer import Analyzer, Options
from kcap.capture_pass import CapturePass
from kcap.kafka.conversation import Conversation
from kcap.net.connections import Ended
from kcap.net.segment_columns import columns_of
from tests.fuzz.hostile import tls_with_keys
from tests.support.wire import Segment, Tap, batch, metadata, metadata_answer

HOUR_NS = 3600 * 10**9
MODULES = "kcap.net.", "kcap.kafka.", "kcap.tls.", "kcap.analyzer"
CAPTURES = (
    "java-transactions.pcap",
    "pipelined.pcap",
    "raw-frames.pcap",
    "sasl-raw-tokens.pcap",
    "tls13.pcapng",
    "too-large.pcap",
)


@contextmanager
def no_cycles() -> Iterator[None]:
    """Nothing of a connection that comes in the block may be garbage in cycles afterwards. All that was there before is of an
    older generation and is not looked at.
    """
    gc.collect(1)
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect(0)
        left = {type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith(MODULES)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


def leave_a_cycle() -> None:
    one = Ended.__new__(Ended)
    one.connection = one  # type: ignore[assignment]


def test_a_cycle_is_found() -> None:
    """Or the laws below say nothing."""
    with pytest.raises(AssertionError, match="Ended"), no_cycles():
        leave_a_cycle()


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("name", CAPTURES)
def test_of_a_capture(pcaps: Path, name: str, fast_path: bool) -> None:
    """With rows, holes, logins, decrypted plaintext; on both paths."""
    reading = CapturePass([str(pcaps / name)], Options(fast_path=fast_path), keep_connections=True)
    reading.analyzer.expect_many()
    with no_cycles():
        closed = 0
        for _ in reading.batches():
            closed += len(reading.connections)
            reading.connections.clear()
    assert closed


@pytest.mark.parametrize("fast_path", [False, True])
def test_ended_connections_that_linger_hold_no_keys(tmp_path: Path, fast_path: bool) -> None:
    """Floods of TLS connections end within a moment, so that all of them wait for late packets."""
    count, path = 50, tmp_path / "flood.pcapng"
    path.write_bytes(tls_with_keys(count))
    reading = CapturePass([str(path)], Options(fast_path=fast_path))
    reading.analyzer.expect_many()
    held: list[tuple[int, int]] = []
    ends = reading.analyzer.ends

    def look() -> Iterator[None]:
        for ended in reading.analyzer.table.closing:
            assert isinstance(ended, Ended)
            assert ended.connection is not None
            conversation = ended.connection.conversation
            assert isinstance(conversation, Conversation)
            assert conversation.tls is not None
            session = conversation.tls.session
            held.append((len(session.traffic), sum(len(side.epochs) for side in session.sides)))
        yield from ends()

    with patch.object(reading.analyzer, "ends", look):
        for _ in reading.batches():
            pass
    assert held == [(0, 0)] * count


def flood() -> list[list[Segment]]:
    """Connections of all fates, one after the other; each list ends later than the one before."""
    start = 10**18
    taps: list[Tap] = []

    def tap(port: int, hours: int) -> Tap:
        taps.append(Tap(port=port, time_ns=start + hours * HOUR_NS))
        return taps[-1]

    tap(1, 0).open()  # carries no byte and is idle
    tap(2, 0).open().client(metadata(1))  # waits for a response and is idle
    tap(3, 0).open().client(metadata(1)).server(metadata_answer(1)).close()
    tap(4, 0).open().client(b"GET / HTTP/1.1\r\n\r\n").server(b"HTTP/1.1 200 OK\r\n\r\n").close()
    tap(5, 0).open().client(b"\x16\x03\x01\0\2\1\0").close()
    tap(6, 0).open().client(metadata(1)[:9]).close()
    taps += [  # the same ports with other numbers
        Tap(port=7, client_isn=turn << 29, time_ns=start + turn * 10**6).open() for turn in range(3)
    ]
    tap(8, 2).open()
    return [each.segments for each in taps]


@pytest.mark.parametrize("fast_path", [False, True])
def test_of_a_flood(fast_path: bool) -> None:
    """That carry no byte, are idle, are no Kafka, are cut short, or lose their ports to a newer one."""
    analyzer = Analyzer()
    analyzer.expect_many()
    with no_cycles():
        for segments in flood():
            made = batch(segments)
            analyzer.feed(columns_of(made) if fast_path else made)
        analyzer.finish()
        ends = [values["ended"] for values in (one.values for one in analyzer.take_connections())]
    assert len(ends) == 10
    assert {"idle", "fin", "open"} <= set(ends)
