"""Connections that carried no byte are stored as numbers, and nothing is lost by it."""

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.net import silent
from kcap.net.connections import ConnectionTable, reverse_flow
from kcap.net.tcp import ACK, FIN, RST, SYN, Connection
from tests.support.wire import Tap, analyze, batch, flow, metadata, metadata_answer


def connection_after(tap: Tap) -> tuple[Analyzer, Connection]:
    """The state after the segments, not yet packed."""
    analyzer = Analyzer()
    analyzer.table.segments(batch(tap.segments))
    return analyzer, next(iter(analyzer.table.streams.values())).connection


def values_of(connection: Connection) -> list[object]:
    """All that is known of a connection, but for objects."""
    own = {name: getattr(connection, name) for name in Connection.__slots__ if name not in OBJECTS}
    client = None if connection.client is None else connection.streams.index(connection.client)
    streams = [{name: getattr(s, name) for name in type(s).__slots__ if name not in OBJECTS} for s in connection.streams]
    reset = None if connection.rst_by is None else connection.streams.index(connection.rst_by)
    return [own, client, reset, *streams]


OBJECTS = ("client", "conversation", "connection", "ending", "oddities", "older", "peer", "rst_by", "sink", "streams", "uid")

SILENT = {
    "a lone SYN": ((0, SYN),),
    "a refused SYN": ((0, SYN), (1, RST | ACK)),
    "a handshake": ((0, SYN), (1, SYN | ACK), (0, ACK)),
    "a scan": ((0, SYN), (1, SYN | ACK), (0, ACK), (0, FIN | ACK), (1, FIN | ACK), (0, ACK)),
    "an answer alone": ((1, SYN | ACK), (0, ACK)),
}


@pytest.mark.parametrize("case", SILENT)
def test_what_is_unpacked_equals_what_was_packed(case: str) -> None:
    tap = Tap()
    for side, flags in SILENT[case]:
        tap.add(side, flags, seq=None if not flags & SYN else (tap.client_isn, tap.server_isn)[side])
    analyzer, connection = connection_after(tap)
    assert silent.speechless(connection)
    packed = silent.pack(connection)
    again = silent.unpack(packed, connection.flows, analyzer)
    assert values_of(again) == values_of(connection)
    assert (silent.number_of(packed), silent.last_ns_of(packed), silent.ref_of(packed)) == (
        connection.number, connection.last_ns, connection.first_ref,
    )  # fmt: skip


def test_a_connection_that_carried_a_byte_is_not_packed() -> None:
    _, connection = connection_after(Tap().open().client(b"x"))
    assert not silent.speechless(connection)


def test_rows_do_not_depend_on_when_a_connection_is_packed() -> None:
    """Packet by packet every connection is packed and unpacked; in one batch none is."""
    tap = Tap().open()
    tap.time_ns += 5 * 10**9
    tap.client(metadata(1)).server(metadata_answer(1)).close()
    again = Tap(client_isn=77_000, server_isn=99_000, time_ns=tap.time_ns + 10**9).open().reset()
    late = Tap(client_isn=5, server_isn=6, time_ns=again.time_ns + 2 * limits.CONNECTION_IDLE_NS).open()
    segments = tap.segments + again.segments + late.segments
    stepwise = Analyzer()
    for segment in segments:
        stepwise.feed(batch([segment]))
    stepwise.finish()
    whole = analyze(segments)
    assert [c.values for c in stepwise.take_connections()] == whole.connections
    assert len(whole.connections) == 3


def test_a_flood_is_stored_packed_and_its_oldest_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SILENT_MAX", 10)
    analyzer = Analyzer()
    for port in range(1, 41):
        tap = Tap(port=port)
        tap.add(0, SYN, seq=port)
        analyzer.feed(batch(tap.segments))
    table: ConnectionTable = analyzer.table
    assert (len(table.streams), len(table.silent), table.objects) == (0, 10, 0)
    assert [c.values["client_port"] for c in analyzer.take_connections()] == list(range(1, 31))
    assert [(w.kind.value, n) for w, n in analyzer.sightings()] == [("connection_limit", 30)]
    analyzer.finish()
    assert [c.values["client_port"] for c in analyzer.take_connections()] == list(range(31, 41))
    assert not table.silent


def test_either_flow_finds_a_packed_connection() -> None:
    for side in (0, 1):
        analyzer = Analyzer()
        tap = Tap().open()
        analyzer.feed(batch(tap.segments))
        up = flow()
        assert set(analyzer.table.silent) == {min(up, reverse_flow(up))}
        tap.segments.clear()
        analyzer.feed(batch(tap.send(side, metadata(1)).segments))
        assert (set(analyzer.table.streams), analyzer.table.count) == ({up, reverse_flow(up)}, 1)
