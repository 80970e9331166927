"""TLS handshakes that lie in one walk: their connections stay in the fast path, and whatever follows them is read as by the
reference path.
"""

from collections.abc import Callable

import pytest

from kcap.analyzer import Options
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree
from tests.fastpath.test_sealed import KINDS, options_of, sealer_of
from tests.support.tls import CLIENT, SERVER, Sealer
from tests.support.wire import Tap, metadata, metadata_answer


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_connection_whose_handshake_lies_in_one_walk_never_leaves_the_fast_path(kind: int) -> None:
    """Also where the first request has a record for its length and one for the rest, as Java writes it."""
    sealer = sealer_of(kind).restart()
    tap = Tap().open()
    for side, data in sealer.handshake:
        tap.send(side, data)
    for number in range(40):
        question = metadata(number)
        tap.client(sealer.record(CLIENT, question[:4]) + sealer.record(CLIENT, question[4:]))
        tap.server(sealer.record(SERVER, metadata_answer(number, 3)))
    found = agree(tap.close().segments, 1 << 12, 1 << 12, options=options_of(sealer))
    assert found.fast_rows == len(found.rows) == 40
    assert found.own == 1


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
    for step in (9, 14, 1 << 12):
        agree(segments, 1 << 12, step, options=options_of(sealer))


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
