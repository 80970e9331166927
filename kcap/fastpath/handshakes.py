"""TLS handshakes that lie whole in one walk: read from its log, so that their connections never leave the fast path.

In: the packets of connections whose client began with a ClientHello. Out: connections with objects, of which the walk goes on
with the first record of application data of each side. Law: what is not such a handshake with known keys leaves nothing behind,
so that the reference path can take its packets.
"""

from typing import Any, Final

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, made
from kcap.fastpath.sealed_kernels import flights
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.segment_columns import SegmentColumns
from kcap.tls.handshake import EARLY_DATA

RANDOM: Final = slice(11, 43)
"""Place of the random in a record that begins with a ClientHello."""
RECORD: Final = slice(at.H_SIDE, at.FLIGHT_WIDTH)


def shake(state: FastPathState, columns: SegmentColumns, log: Any, slots: Any, keeper: ConnectionOwner) -> list[int]:
    """Reads the handshakes of these own connections, whose packets are in `log`; those that were read have objects from here on
    and the bytes that they took in `G_TAKEN`. The others are marked as left to the reference path from their hello on.
    """
    if not len(slots):
        return []
    connections = state.connections
    connections[slots, at.LIVE] = at.OPEN
    rows = log[:, at.G_PLACE] >> 1
    mine = ((connections[rows, at.LIVE] == at.OPEN) & (log[:, at.G_LENGTH] > 0)).nonzero()[0]
    mine = mine[rows[mine].argsort(kind="stable")]
    taken: dict[int, list[int]] = {}
    if len(mine):
        wanted = np.sort(slots)
        firsts, lasts = (rows[mine].searchsorted(wanted, side=side) for side in ("left", "right"))
        hellos = log[mine[np.minimum(firsts, len(mine) - 1)], at.G_AT].tolist()
        stored, buffer = keeper.secrets.keylog.stored, columns.buffer
        known = np.array([buffer[hello + RANDOM.start : hello + RANDOM.stop] in stored for hello in hellos], np.bool_)
        known &= firsts < lasts
        if known.any():
            mine = mine[np.repeat(known, lasts - firsts)]
            taken = _read(state, columns, log, mine, wanted[known], keeper)
    shaken = [slot for slot in slots.tolist() if slot in taken]
    left = [slot for slot in slots.tolist() if slot not in taken]
    connections[left, at.TOUCHED] = -connections[left, at.TOUCHED]
    connections[shaken, at.LIVE] = at.SHAKING
    connections[shaken, at.OWN] = 0
    return shaken


def _read(
    state: FastPathState, columns: SegmentColumns, log: Any, mine: Any, slots: Any, keeper: ConnectionOwner
) -> dict[int, list[int]]:
    """Reads the handshakes of these connections, whose packets are the rows `mine` of `log`; of those that were read the bytes
    of each stream that are of the handshake, which `G_TAKEN` has then.
    """
    rows, lengths = log[mine, at.G_PLACE] >> 1, log[mine, at.G_LENGTH]
    lasts = rows.searchsorted(slots, side="right")
    cipher = np.empty(int(lengths.sum()), np.uint8)
    found = np.empty((2 * at.FLIGHT_RECORDS * len(slots), at.FLIGHT_WIDTH), np.int64)
    found = found[: flights(columns.data, log, mine, lasts, columns.time_ns, cipher, found)]
    cuts = found[:, at.H_CONNECTION].searchsorted(np.arange(len(slots) + 1)).tolist()
    data, records = cipher.tobytes(), found[:, RECORD].tolist()
    both = np.stack([2 * slots, 2 * slots + 1], axis=1)
    flows = state.flows(both.ravel())
    every = zip(slots.tolist(), state.connections[slots].tolist(), state.streams[both].tolist(), flows[::2], flows[1::2])
    taken: dict[int, list[int]] = {}
    for (slot, values, streams, low, high), first, last in zip(every, cuts, cuts[1:]):
        outer = made(values, streams, (low, high), None, keeper)
        starts = _shaken(outer, data, records[first:last])
        inner = outer.inner
        if starts is not None and inner is not None:
            taken[slot], state.conversations[slot] = starts, inner
            inner.fast_path_slot = slot
    ends = np.array([taken.get(slot, (0, 0)) for slot in slots.tolist()], np.int64)[slots.searchsorted(rows)]
    places = log[mine, at.G_PLACE] & 1
    log[mine, at.G_TAKEN] = np.clip(ends[np.arange(len(mine)), places] - log[mine, at.G_OFFSET], 0, lengths)
    return taken


def _shaken(conversation: Conversation, data: bytes, records: list[list[int]]) -> list[int] | None:
    """Reads one handshake; the stream offsets of the first application data, None where it is for the reference path."""
    decryptor = conversation.decrypt()
    session, swapped = decryptor.session, decryptor.swapped
    try:
        if swapped:
            for record in records:
                record[0] ^= 1
        starts = session.handshake(data, records)
    except Exception:  # noqa: BLE001 - the reference path reads the same bytes and reports what fails
        return None
    if starts is None or not session.for_batches or session.client is None or EARLY_DATA in session.client.extensions:
        return None
    decryptor.open()
    return [starts[swapped], starts[1 - swapped]]


def begin(state: FastPathState, shaken: list[int]) -> None:
    """Starts the framers of those of these connections whose first request was read; no plaintext of the others was."""
    names, connections = state.all_names() if shaken else [], state.connections
    for slot in shaken:
        conversation = state.conversations[slot]
        assert isinstance(conversation, Conversation)
        if connections[slot, at.LIVE] != at.SEALED:
            conversation.unbegun()
            continue
        conversation.begin(int(connections[slot, at.CLIENT]))
        assert conversation.requests is not None
        conversation.requests.remember(names[connections[slot, at.NAME]])
