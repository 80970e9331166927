"""Connections with TLS that were never more than numbers and a session: their ends, and their objects where they need these."""

import pickle
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer, Options
from kcap.columns import TABLES
from kcap.fastpath.closed_rows import ClosedRow
from kcap.model import CaptureFile
from kcap.net.segment_columns import columns_of
from kcap.table.side_tables import batch_of, connection_batch, connection_rows
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree, cut, result_of
from tests.fastpath.test_sealed import KINDS, sealer_of
from tests.support.tls import CLIENT, SERVER
from tests.support.wire import ACK, FIN, MS, Segment, Tap, metadata, metadata_answer

LINGER = limits.CONNECTION_LINGER_NS
ENDS = (
    "fin", "open", "reset by client", "reset by server", "half", "answer behind FIN", "alert", "partial record",
    "partial frame", "unanswered", "late", "again", "reset behind FIN", "FIN again",
)  # fmt: skip


def options() -> Options:
    """The secrets of every kind."""
    secrets = Secrets()
    for kind in range(len(KINDS)):
        secrets.keylog.add(sealer_of(kind).keylog)
    return Options(secrets=secrets)


def brief(kind: int, count: int, end: str, port: int, time_ns: int, sizes: int = 1448) -> Tap:
    """A handshake, some requests with their responses, an end."""
    sealer = sealer_of(kind).restart()
    tap = Tap(client_isn=port, server_isn=9 * port, port=port, time_ns=time_ns).open()
    for side, data in sealer.handshake:
        tap.send(side, data, sizes)
    for number in range(count):
        tap.send(CLIENT, sealer.record(CLIENT, metadata(number)), sizes)
        tap.send(SERVER, sealer.record(SERVER, metadata_answer(number, 3)), sizes)
    last = sealer.record(CLIENT, metadata(99))
    match end:
        case "fin":
            tap.close()
        case "reset by client" | "reset by server":
            tap.reset(int(end.endswith("server")))
        case "half":
            tap.add(0, FIN | ACK)
        case "answer behind FIN":
            tap.client(last).add(0, FIN | ACK)
            tap.server(sealer.record(SERVER, metadata_answer(99, 3))).add(1, FIN | ACK)
        case "alert":
            tap.client(sealer.record(CLIENT, b"\1\0", 21)).close()
        case "partial record":
            tap.client(last[:-3]).close()
        case "partial frame":
            tap.client(sealer.record(CLIENT, metadata(99)[:-3])).close()
        case "unanswered":
            tap.client(last).close()
        case "late":
            tap.close()
            tap.time_ns += LINGER // 2
            tap.server(sealer.record(SERVER, metadata_answer(99, 3)))
        case "again":
            tap.client(last).server(sealer.record(SERVER, metadata_answer(99, 3))).close()
            tap.segments += [replace(s, time_ns=tap.time_ns + MS) for s in tap.segments[-6:-3]]
        case "reset behind FIN":
            tap.add(0, FIN | ACK)
            tap.reset(1)
        case "FIN again":
            tap.close()
            tap.segments.append(replace(tap.segments[-1], time_ns=tap.time_ns + MS, flags=FIN | ACK))
        case _:
            pass
    return tap


@st.composite
def crowds(draw: st.DrawFn) -> list[Segment]:
    """Connections on few ports, whose packets alternate; time goes on in leaps."""
    segments: list[Segment] = []
    time_ns = 1_000_000_000
    for _ in range(draw(st.integers(1, 7))):
        time_ns += draw(st.sampled_from((MS, 50 * MS, LINGER)))
        kind, port = draw(st.integers(0, len(KINDS) - 1)), 40_000 + draw(st.integers(0, 5))
        sizes = draw(st.sampled_from((40, 500, 1448)))
        segments += brief(kind, draw(st.integers(0, 4)), draw(st.sampled_from(ENDS)), port, time_ns, sizes).segments
    return sorted(segments, key=lambda s: s.time_ns)


@settings(deadline=None)
@given(crowds(), st.integers(1, 400), st.sampled_from((9, 30, 100, 4096)))
def test_crowds(segments: list[Segment], size: int, step: int) -> None:
    agree(segments, size, step, options=options())


@settings(deadline=None, max_examples=20)
@given(crowds(), st.integers(1, 200))
def test_crowds_restored(segments: list[Segment], size: int) -> None:
    """Pickle and restore after any batch."""
    batches = cut(segments, size)
    result_of(batches, fast_path=True, pickled=True, step=100, options=options()).same(
        result_of(batches, fast_path=False, options=options())
    )


def every_end() -> list[Segment]:
    """Two connections of each end, one after the other."""
    segments: list[Segment] = []
    for number, end in enumerate((*ENDS, *ENDS)):
        segments += brief(number % len(KINDS), 3, end, 1000 + number, (number + 1) * 1000 * MS).segments
    return segments


def test_ends_between_two_frames_need_no_objects() -> None:
    """Those of the first four, of a client alone, of what waits, and of what comes again."""
    found = agree(every_end(), 1 << 12, 1 << 12, options=options())
    assert found.own >= 14
    assert {row["ended"] for row in found.connections} == {"fin", "rst", "open"}


def test_columns_agree_with_rows() -> None:
    """Also beside connections without TLS, and those of the reference path."""
    analyzer = Analyzer(options())
    plain = Tap(port=7).open().client(metadata(1)).server(metadata_answer(1)).close()
    for batch in cut([*plain.segments, *every_end()], 1 << 12):
        analyzer.feed(columns_of(batch))
    analyzer.finish()
    taken = analyzer.take_connections()
    files, columns = [CaptureFile("a.pcap", "a.pcap")] * 2, TABLES["connections"]
    own = [one for one in taken if isinstance(one, ClosedRow)]
    assert 14 < len(own) < len(taken)
    assert {one.values["tls"] for one in own} == {True, False}
    for closed in (taken, taken[::-1], own, pickle.loads(pickle.dumps(own))):
        made = connection_batch(closed, columns, files)
        assert made.equals(batch_of("connections", columns, connection_rows(closed, files)))
