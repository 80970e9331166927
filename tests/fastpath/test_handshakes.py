"""TLS handshakes in one walk or several: their connections stay in the fast path, and whatever follows them is read as by the
reference path.
"""

from collections.abc import Callable
from unittest.mock import patch

import pytest

from kcap import limits
from kcap.analyzer import Analyzer, Options
from kcap.fastpath import engine
from kcap.net.segment_columns import columns_of
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree, agree_in_steps
from tests.fastpath.test_sealed import KINDS, options_of, sealer_of
from tests.support.tls import CLIENT, SERVER, Sealer
from tests.support.wire import MS, Tap, batch, metadata, metadata_answer


@pytest.mark.parametrize("size", [100, 1448])
@pytest.mark.parametrize("step", [1, 3, 7, 9, 14, 1 << 12])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_connection_with_keys_never_leaves_the_fast_path(kind: int, step: int, size: int) -> None:
    """Wherever a walk ends, also within a ClientHello, which is longer than most packets where it offers a post-quantum key;
    the first request has a record for its length and one for the rest, as Java writes it.
    """
    sealer = sealer_of(kind).restart()
    tap = Tap().open()
    for side, data in sealer.handshake:
        tap.send(side, data, size)
    for number in range(40):
        question = metadata(number)
        tap.client(sealer.record(CLIENT, question[:4]) + sealer.record(CLIENT, question[4:]))
        tap.server(sealer.record(SERVER, metadata_answer(number, 3)))
    found = agree(tap.close().segments, 1 << 12, step, options=options_of(sealer))
    assert found.fast_rows == len(found.rows) == 40
    assert found.own == 1


@pytest.mark.parametrize("step", [1, 9, 1 << 12])
def test_a_connection_of_java_never_leaves_the_fast_path(step: int) -> None:
    """Java's TLS 1.3 pads each record by 16 bytes, and its clients close with two alerts."""
    sealer, tap = sealer_of(0).restart(), Tap().open()
    for side, data in sealer.handshake:
        tap.send(side, data)
    for number in range(40):
        tap.client(sealer.record(CLIENT, metadata(number), padding=16), 40)
        tap.server(sealer.record(SERVER, metadata_answer(number, 3), padding=16), 40)
    tap.client(sealer.record(CLIENT, b"\1\x5a", 21, padding=16)).client(sealer.record(CLIENT, b"\1\0", 21, padding=16))
    found = agree(tap.close().segments, 1 << 12, step, options=options_of(sealer))
    assert found.fast_rows == len(found.rows) == 40
    assert found.own == 1 or step == 9  # where a walk ends between the alerts, the reference path takes the end
    assert found.connections[0]["tls_alerts"] == []


@pytest.mark.parametrize("step", [14, 40, 1 << 12])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_records_of_a_handshake_and_of_the_first_data_span_packets(kind: int, step: int) -> None:
    """Each message comes in packets of 20 bytes, or the data alone does."""
    for sizes in (20, 1448):
        sealer, tap = sealer_of(kind).restart(), Tap().open()
        for side, data in sealer.handshake:
            tap.send(side, data, sizes)
        for number in range(12):
            tap.send(CLIENT, sealer.record(CLIENT, metadata(number)), 20)
            tap.send(SERVER, sealer.record(SERVER, metadata_answer(number, 3)), 20)
        agree(tap.close().segments, 1 << 12, step, options=options_of(sealer))


@pytest.mark.parametrize("labels", [b"CLIENT_", b"SERVER_", b"_TRAFFIC_SECRET_0", b"HANDSHAKE"])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_secrets_of_strangers_with_the_same_client_random_are_passed_over(kind: int, labels: bytes) -> None:
    """They stand behind the right ones, of some labels."""
    sealer = sealer_of(kind).restart()
    tap, wrong = Tap().open(), b""
    for side, data in sealer.handshake:
        tap.send(side, data)
    asked(tap, sealer, 20)
    for line in sealer.keylog.splitlines():
        if labels in line:
            wrong += line[:-2] + (b"00" if line[-2:] != b"00" else b"01") + b"\n"
    secrets = Secrets()
    secrets.keylog.add(sealer.keylog + wrong)
    found = agree(tap.close().segments, 1 << 12, 14, options=Options(secrets=secrets))
    assert len(found.rows) == 20


Sent = Callable[[Tap, Sealer], object]
BETWEEN: dict[str, Sent] = {
    "nothing": lambda tap, sealer: None,
    "a response": lambda tap, sealer: tap.server(sealer.record(SERVER, metadata_answer(1, 3))),
    "empty records": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"")).server(sealer.record(SERVER, b"")),
    "an alert": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"\1\x5a", 21)),
    "a ticket": lambda tap, sealer: tap.server(sealer.record(SERVER, b"\4\0\0\0", 22)),
    "a wrong record": lambda tap, sealer: tap.client(sealer.record(CLIENT, metadata(1))[:-1] + b"?"),
    "HTTP": lambda tap, sealer: tap.client(sealer.record(CLIENT, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")),
    "no client id": lambda tap, sealer: tap.client(sealer.record(CLIENT, metadata(1, client_id=None))),
}
"""What stands behind a handshake, before requests."""


@pytest.mark.parametrize("count", [0, 1, 20])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", [0, 1])
def test_handshakes_that_no_simple_request_follows(kind: int, between: str, count: int) -> None:
    """Whatever a walk ends with."""
    sealer, tap = sealer_of(kind).restart(), Tap().open()
    for side, data in sealer.handshake:
        tap.send(side, data)
    BETWEEN[between](tap, sealer)
    asked(tap, sealer, count)
    segments = tap.close().segments
    agree_in_steps(segments, (9, 14, 1 << 12), 1 << 12, options=options_of(sealer))


def asked(tap: Tap, sealer: Sealer, count: int) -> None:
    """Requests with their responses."""
    for number in range(5, 5 + count):
        tap.client(sealer.record(CLIENT, metadata(number))).server(sealer.record(SERVER, metadata_answer(number, 3)))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("at", "size"), [(5, 38), (11, 32), (30, 0)])
def test_hellos_in_pieces_and_sessions_without_keys(at: int, size: int, known: bool) -> None:
    """The ClientHello comes in two packets, the second of which begins at `at`, or with other bytes from there on."""
    sealer, tap = sealer_of(0).restart(), Tap().open()
    for side, data in sealer.handshake:
        if side == CLIENT and data[5] == 1:
            tap.client(data[:at] if not size else data[:at] + bytes(size) + data[at + size :]).client(
                data[at:] if not size else b""
            )
        else:
            tap.send(side, data)
    asked(tap, sealer, 20)
    secrets = options_of(sealer).secrets
    if not known:
        secrets = Secrets()
        secrets.keylog.add(b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"00" * 48)
    for step in (9, 1 << 12):
        agree(tap.close().segments, 1 << 12, step, options=Options(secrets=secrets))


CUT: dict[str, Sent] = {
    "the end of the capture": lambda tap, sealer: None,
    "FIN": lambda tap, sealer: tap.close(),
    "RST": lambda tap, sealer: tap.reset(1),
    "an open alert": lambda tap, sealer: tap.server(b"\x15\x03\x03\x00\x02\x02\x28"),
    "no record": lambda tap, sealer: tap.client(b"GET / HTTP/1.1\r\n"),
    "a hole": lambda tap, sealer: tap.server(b"lost").server(b"more").segments.pop(-2),
    "silence": lambda tap, sealer: setattr(tap, "time_ns", tap.time_ns + limits.CONNECTION_IDLE_NS),
}
"""What follows a part of a handshake."""


@pytest.mark.parametrize("end", CUT)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_handshakes_that_stop_at_any_packet(kind: int, end: str) -> None:
    """What waited for the next walk is read by the reference path then."""
    sealer = sealer_of(kind).restart()
    for sizes in (300, 1448):
        packets = [(side, data[at : at + sizes]) for side, data in sealer.handshake for at in range(0, len(data), sizes)]
        for count in range(1, len(packets)):
            tap = Tap().open()
            for side, data in packets[:count]:
                tap.send(side, data)
            CUT[end](tap, sealer)
            other = Tap(port=41_000, time_ns=tap.time_ns + MS).open().client(metadata(1)).server(metadata_answer(1)).close()
            agree_in_steps([*tap.segments, *other.segments], (4, 5, 1 << 12), 1 << 12, options=options_of(sealer))


@pytest.mark.parametrize("missing", [b"CLIENT_HANDSHAKE", b"SERVER_HANDSHAKE", b"CLIENT_TRAFFIC", b"SERVER_TRAFFIC"])
def test_a_key_log_without_one_of_the_secrets(missing: bytes) -> None:
    """It is noticed in a later walk than that of the hello."""
    sealer, tap, secrets = sealer_of(0).restart(), Tap().open(), Secrets()
    for side, data in sealer.handshake:
        tap.send(side, data, 200)
    asked(tap, sealer, 9)
    secrets.keylog.add(b"\n".join(line for line in sealer.keylog.splitlines() if not line.startswith(missing)))
    for step in (5, 9, 1 << 12):
        agree(tap.close().segments, 1 << 12, step, options=Options(secrets=secrets))


def test_handshakes_that_find_no_room_are_read_by_the_reference_path() -> None:
    sealer, tap = sealer_of(0).restart(), Tap().open()
    for side, data in sealer.handshake:
        tap.send(side, data, 200)
    asked(tap, sealer, 9)
    with patch.object(limits, "FAST_PATH_HANDSHAKE_BYTES", 500):
        found = agree(tap.close().segments, 1 << 12, 5, options=options_of(sealer))
    assert not found.own


def test_handshakes_beside_each_other() -> None:
    """Their packets alternate, so that none lies in one walk; and room is given back."""
    taps = [Tap(port=41_000 + number, time_ns=1_000_000_000 + number).open() for number in range(20)]
    for number, tap in enumerate(taps):
        sealer = sealer_of(number % len(KINDS)).restart()
        for side, data in sealer.handshake:
            tap.send(side, data)
        asked(tap, sealer, 5)
        tap.close()
    secrets = Secrets()
    for kind in range(len(KINDS)):
        secrets.keylog.add(sealer_of(kind).keylog)
    segments = sorted((s for tap in taps for s in tap.segments), key=lambda s: s.time_ns)
    found = agree(segments, 1 << 12, 50, options=Options(secrets=secrets))
    assert (found.own, found.fast_rows) == (20, 100)
    analyzer = Analyzer(Options(secrets=secrets))
    with patch.object(engine, "STEP", 50):
        analyzer.feed(columns_of(batch(segments)))
    assert analyzer.fast_path is not None
    assert analyzer.fast_path.state.handshake_bytes == 0
