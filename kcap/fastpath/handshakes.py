"""TLS handshakes in the walks of the fast path: read from its log, so that their connections never leave it.

In: the packets of connections whose client began with a ClientHello. Out: their sessions, with which the walk goes on to
application data; for a handshake that later walks continue, what was read, and its packets. Law: anything that is not such a
handshake with known keys leaves no trace, so that the reference path can take its packets.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.sealed_connection import SealedConnection
from kcap.fastpath.sealed_kernels import flights
from kcap.fastpath.state import FastPathState
from kcap.model import REF_FILE_SHIFT
from kcap.net.segment_columns import SegmentColumns
from kcap.tls.hello_kernels import hellos
from kcap.tls.records import RecordPiece
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.simple_handshake import simple_handshakes

RANDOM: Final = slice(11, 43)
"""Position of the random in a record that begins with a ClientHello."""
MOST: Final = 12
"""Number of records in most handshakes, including the first data."""
RECORD: Final = slice(at.H_SIDE, at.FLIGHT_WIDTH)
PACKET: Final = slice(at.G_INDEX, at.G_OFFSET + 1)
EVERYTHING: Final = 1 << 62
"""Beyond all stream offsets."""


def shake(state: FastPathState, columns: SegmentColumns, log: Any, slots: Any, secrets: Secrets) -> None:
    """Reads the handshakes of these own connections, whose packets are in `log`. `state.sealed` then has those that have been
    simple so far, and `G_TAKEN` the bytes that they took. The others are marked as left to the reference path from their
    ClientHello on.
    """
    wanted = np.sort(slots[[not _was_read(state.sealed.get(slot)) for slot in slots.tolist()]])
    if not len(wanted):
        return
    connections, rows = state.connections, log[:, at.G_PLACE] >> 1
    places = np.minimum(wanted.searchsorted(rows), len(wanted) - 1)
    mine = ((wanted[places] == rows) & (log[:, at.G_LENGTH] > 0)).nonzero()[0]
    mine = mine[rows[mine].argsort(kind="stable")]
    firsts, lasts = (rows[mine].searchsorted(wanted, side=side) for side in ("left", "right"))
    stored, buffer = secrets.keylog.stored, columns.buffer
    known = firsts < lasts
    for place, slot in enumerate(wanted.tolist()):
        if state.sealed.get(slot) is None and known[place]:
            hello = int(log[mine[firsts[place]], at.G_AT])
            known[place] = buffer[hello + RANDOM.start : hello + RANDOM.stop] in stored
    simple = known.copy()
    if known.any():
        simple[known] = _read(state, columns, log, mine[np.repeat(known, lasts - firsts)], wanted[known], secrets)
    simple |= np.array([state.sealed.get(slot) is not None for slot in wanted.tolist()]) & (firsts == lasts)
    left = wanted[~simple]
    connections[left, at.TOUCHED] = -connections[left, at.TOUCHED]
    connections[left, at.TLS] = at.CLEAR


def _was_read(sealed: SealedConnection | None) -> bool:
    """Whether a connection's handshake was read to its end."""
    return sealed is not None and not sealed.packets


def _read(state: FastPathState, columns: SegmentColumns, log: Any, mine: Any, slots: Any, secrets: Secrets) -> list[bool]:
    """Reads the handshakes of these connections, whose packets are the rows `mine` of `log`; returns which of them are
    simple.
    """
    rows, lengths = log[mine, at.G_PLACE] >> 1, log[mine, at.G_LENGTH]
    lasts = rows.searchsorted(slots, side="right")
    sizes, rests = np.zeros((len(slots), 2), np.int64), []
    for place, slot in enumerate(slots.tolist()):
        begun = state.sealed.get(slot)
        if begun is not None:
            rests += [begun.rest(index ^ begun.client)[0] for index in (0, 1)]
            sizes[place] = len(rests[-2]), len(rests[-1])
    cipher = np.empty(int(lengths.sum() + sizes.sum()), np.uint8)
    found = np.empty((2 * at.FLIGHT_RECORDS * len(slots), at.FLIGHT_WIDTH), np.int64)
    rest = np.frombuffer(b"".join(rests) or b"\0", np.uint8)
    found = found[: flights(columns.data, log, mine, lasts, columns.time_ns, rest, sizes, cipher, found)]
    clients = state.connections[slots, at.CLIENT]
    found[:, at.H_SIDE] ^= clients[found[:, at.H_CONNECTION]]
    cuts = found[:, at.H_CONNECTION].searchsorted(np.arange(len(slots) + 1))
    data, records, suites = cipher.tobytes(), found[:, RECORD], np.empty(len(slots), np.int64)
    hellos(cipher, records, cuts, suites)
    suites[[state.sealed.get(slot) is not None for slot in slots.tolist()]] = -1  # their beginning is not among these records
    ends, simple, before = [(0, 0)] * len(slots), [], 0
    whole, held = [], []
    simple_ones = simple_handshakes(secrets, suites, data, records, cuts)
    columns_of = slots, clients, cuts[:-1], cuts[1:], lasts
    each = zip(simple_ones, *(column.tolist() for column in columns_of))
    for place, (found_one, slot, client, first, last, end) in enumerate(each):
        if found_one is not None:
            sealed = SealedConnection(found_one, client, read=found_one.read)
            good = True
        else:
            sealed = state.sealed.get(slot) or SealedConnection(TlsSession(secrets, whole=True), client)
            good = sealed.handshaken or _shaken(sealed, data, records[first:last])
        if good and sealed.handshaken:
            state.handshake_bytes -= sealed.held_bytes if sealed.packets else 0
            ends[place] = sealed.read[client], sealed.read[1 - client]
            whole.append(slot)
            held.append(sealed.settle())
        elif good:
            good = last - first < at.FLIGHT_RECORDS and state.connections[slot, at.LIVE] == at.TALKING
            good = good and _held(state, columns, log[mine[before:end]], sealed)
            ends[place] = EVERYTHING, EVERYTHING
        if good:
            state.sealed[slot] = sealed
        simple.append(good)
        before = end
    for index, sizes_held in enumerate(zip(*held)):
        state.streams[2 * np.array(whole) + index, at.HELD] = sizes_held
    taken = np.array(ends)[slots.searchsorted(rows), log[mine, at.G_PLACE] & 1]
    log[mine, at.G_TAKEN] = np.clip(taken - log[mine, at.G_OFFSET], 0, lengths)
    return simple


def _held(state: FastPathState, columns: SegmentColumns, log: Any, sealed: SealedConnection) -> bool:
    """Stores the packets of a handshake that continues after the walk; False if there is no room for them."""
    size = int(log[:, at.G_LENGTH].sum())
    if state.handshake_bytes + size > limits.FAST_PATH_HANDSHAKE_BYTES:
        return False
    state.handshake_bytes += size
    first = (columns.file << REF_FILE_SHIFT) + columns.first_packet
    for index, place, start, length, offset in log[:, PACKET].tolist():
        time_ns, position = int(columns.time_ns[index]), int(columns.position[index])
        piece = RecordPiece(offset, offset + length, time_ns, first + index, position)
        sealed.hold((place & 1, bytes(columns.buffer[start : start + length]), piece))
    return True


def _shaken(sealed: SealedConnection, data: bytes, records: Any) -> bool:
    """Reads more records of one handshake; False if it has to be left to the reference path."""
    session = sealed.session
    try:
        if not session.handshake(data, _some_at_a_time(records), sealed.read):
            return False
    except Exception:  # noqa: BLE001 - the reference path reads the same bytes and reports what fails
        return False
    opens = not session.handshaken or all(side.opener.opens_many for side in session.sides)
    begins = session.client is not None or not len(records)  # a ClientHello may be longer than a packet
    return opens and begins and not session.early.offered


def _some_at_a_time(records: Any) -> Iterator[list[int]]:
    """Yields the rows of an array in groups. A handshake has a dozen records, often followed by more records of data, which are
    not needed.
    """
    for first in range(0, len(records), MOST):
        yield from records[first : first + MOST].tolist()
