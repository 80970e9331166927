"""TLS handshakes that lie whole in one walk: read from its log, so that their connections never leave the fast path.

In: the packets of connections whose client began with a ClientHello. Out: their sessions; the walk goes on with the first
record of application data of each side. Law: what is not such a handshake with known keys leaves nothing behind, so that the
reference path can take its packets.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.sealed_connection import SealedConnection
from kcap.fastpath.sealed_kernels import flights
from kcap.fastpath.state import FastPathState
from kcap.kafka.decrypted import PlaintextProgress
from kcap.net.segment_columns import SegmentColumns
from kcap.tls.handshake import EARLY_DATA
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession

RANDOM: Final = slice(11, 43)
"""Place of the random in a record that begins with a ClientHello."""
MOST: Final = 12
"""Records of most handshakes, with the first data."""
RECORD: Final = slice(at.H_SIDE, at.FLIGHT_WIDTH)


def shake(state: FastPathState, columns: SegmentColumns, log: Any, slots: Any, secrets: Secrets) -> None:
    """Reads the handshakes of these own connections, whose packets are in `log`. `state.sealed` has those that were read, and
    `G_TAKEN` the bytes that they took; the others are marked as left to the reference path from their hello on.
    """
    if not len(slots):
        return
    connections = state.connections
    rows = log[:, at.G_PLACE] >> 1
    mine = ((connections[rows, at.TLS] == at.SHAKING) & (log[:, at.G_LENGTH] > 0)).nonzero()[0]
    mine = mine[rows[mine].argsort(kind="stable")]
    if len(mine):
        wanted = np.sort(slots)
        firsts, lasts = (rows[mine].searchsorted(wanted, side=side) for side in ("left", "right"))
        hellos = log[mine[np.minimum(firsts, len(mine) - 1)], at.G_AT].tolist()
        stored, buffer = secrets.keylog.stored, columns.buffer
        known = np.array([buffer[hello + RANDOM.start : hello + RANDOM.stop] in stored for hello in hellos], np.bool_)
        known &= firsts < lasts
        if known.any():
            _read(state, columns, log, mine[np.repeat(known, lasts - firsts)], wanted[known], secrets)
    left = [slot for slot in slots.tolist() if state.sealed[slot] is None]
    connections[left, at.TOUCHED] = -connections[left, at.TOUCHED]
    connections[left, at.TLS] = at.CLEAR


def _read(state: FastPathState, columns: SegmentColumns, log: Any, mine: Any, slots: Any, secrets: Secrets) -> None:
    """Reads the handshakes of these connections, whose packets are the rows `mine` of `log`."""
    rows, lengths = log[mine, at.G_PLACE] >> 1, log[mine, at.G_LENGTH]
    lasts = rows.searchsorted(slots, side="right")
    cipher = np.empty(int(lengths.sum()), np.uint8)
    found = np.empty((2 * at.FLIGHT_RECORDS * len(slots), at.FLIGHT_WIDTH), np.int64)
    found = found[: flights(columns.data, log, mine, lasts, columns.time_ns, cipher, found)]
    clients = state.connections[slots, at.CLIENT]
    found[:, at.H_SIDE] ^= clients[found[:, at.H_CONNECTION]]
    cuts = found[:, at.H_CONNECTION].searchsorted(np.arange(len(slots) + 1)).tolist()
    data, records = cipher.tobytes(), found[:, RECORD]
    ends = np.zeros((len(slots), 2), np.int64)
    for place, (slot, client, first, last) in enumerate(zip(slots.tolist(), clients.tolist(), cuts, cuts[1:])):
        session = TlsSession(secrets, whole=True)
        starts = _shaken(session, data, records[first:last])
        if starts is not None:
            ends[place] = starts[client], starts[1 - client]
            state.sealed[slot] = SealedConnection(session, client, (PlaintextProgress(), PlaintextProgress()))
    taken = ends[slots.searchsorted(rows), log[mine, at.G_PLACE] & 1]
    log[mine, at.G_TAKEN] = np.clip(taken - log[mine, at.G_OFFSET], 0, lengths)


def _shaken(session: TlsSession, data: bytes, records: Any) -> tuple[int, int] | None:
    """Reads one handshake; the stream offsets of the first application data of client and server, None where it is for the
    reference path.
    """
    try:
        starts = session.handshake(data, _some_at_a_time(records))
    except Exception:  # noqa: BLE001 - the reference path reads the same bytes and reports what fails
        return None
    if starts is None or not session.for_batches or session.refused:
        return None
    return None if session.client is None or EARLY_DATA in session.client.extensions else starts


def _some_at_a_time(records: Any) -> Iterator[list[int]]:
    """The rows of an array. A handshake has a dozen records, and the data behind it, which is not looked at, often more."""
    for first in range(0, len(records), MOST):
        yield from records[first : first + MOST].tolist()
