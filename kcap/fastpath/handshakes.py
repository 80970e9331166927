"""TLS handshakes that lie whole in one walk: read from its log, so that their connections never leave the fast path.

In: the packets of connections whose client began with a ClientHello. Out: connections with objects, of which the walk goes on
with the first record of application data of each side. Law: what is not such a handshake with known keys leaves nothing behind,
so that the reference path can take its packets.
"""

from collections.abc import Iterator
from typing import Any, Final

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, made
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.segment_columns import SegmentColumns
from kcap.tls.batches import FAULT
from kcap.tls.handshake import EARLY_DATA

RANDOM: Final = slice(11, 43)
"""Place of the random in a record that begins with a ClientHello."""
FEW: Final = 24
"""Packets with payload that are looked at together, and that most handshakes do with."""


def shake(state: FastPathState, columns: SegmentColumns, log: Any, slots: Any, keeper: ConnectionOwner) -> list[int]:
    """Reads the handshakes of these own connections, whose packets are in `log`; those that were read have objects from here on
    and the bytes that they took in `G_TAKEN`. The others are marked as left to the reference path from their hello on.
    """
    if not len(slots):
        return []
    connections = state.connections
    connections[slots, at.LIVE] = at.OPEN
    flows = state.flows((2 * slots[:, None] + (0, 1)).ravel())
    rows = log[:, at.G_PLACE] >> 1
    mine = ((connections[rows, at.LIVE] == at.OPEN) & (log[:, at.G_LENGTH] > 0)).nonzero()[0]
    mine = mine[rows[mine].argsort(kind="stable")]
    ordered = rows[mine]
    firsts, lasts = (ordered.searchsorted(slots, side=side).tolist() for side in ("left", "right"))
    shaken = []
    for slot, first, last, low, high in zip(slots.tolist(), firsts, lasts, flows[::2], flows[1::2]):
        if first < last and _shaken(state, columns, log, mine[first:last], slot, (low, high), keeper):
            shaken.append(slot)
        else:
            connections[slot, at.TOUCHED] = -connections[slot, at.TOUCHED]
    connections[shaken, at.LIVE] = at.SHAKING
    connections[shaken, at.OWN] = 0
    return shaken


def _shaken(
    state: FastPathState, columns: SegmentColumns, log: Any, mine: Any, slot: int, flows: tuple[bytes, bytes],
    keeper: ConnectionOwner,
) -> bool:  # fmt: skip
    """Reads one handshake, in the rows `mine` of `log`."""
    buffer, base, hello = columns.buffer, int(state.meta[at.M_REF]), int(log[mine[0], at.G_AT])
    if buffer[hello + RANDOM.start : hello + RANDOM.stop] not in keeper.secrets.keylog.stored:
        return False
    streams = state.streams[2 * slot : 2 * slot + 2].tolist()
    conversation = made(state.connections[slot].tolist(), streams, flows, None, keeper)
    decryptor = conversation.decrypt()
    session, starts, rows = decryptor.session, [-1, -1], []
    try:
        for row, time_ns, position in _each(columns, log, mine):
            rows.append(row)
            index, place, start, length, offset = row
            stream, side = place & 1, place & 1 ^ decryptor.swapped
            if starts[stream] >= 0:
                continue
            payload = buffer[start : start + length]
            if session.feed(side, offset, payload, length, time_ns, base + index, position):
                found = session.to_data(side)
                if found == FAULT:
                    return False
                if found is not None:
                    starts[stream] = found
                    if min(starts) >= 0:
                        break
    except Exception:  # noqa: BLE001 - the reference path reads the same bytes and reports what fails
        return False
    if min(starts) < 0 or not session.for_batches or session.client is None or EARLY_DATA in session.client.extensions:
        return False
    for number, row in zip(mine.tolist(), rows):
        taken = starts[row[at.G_PLACE] & 1] - row[at.G_OFFSET]
        if taken > 0:
            log[number, at.G_TAKEN] = min(taken, row[at.G_LENGTH])
    decryptor.open()
    assert conversation.inner is not None
    state.conversations[slot] = conversation.inner
    conversation.inner.fast_path_slot = slot
    return True


def _each(columns: SegmentColumns, log: Any, places: Any) -> Iterator[tuple[list[int], int, int]]:
    """These rows of `log` as far as G_OFFSET, with time and position of their packets; most of them are not wanted."""
    for first in range(0, len(places), FEW):
        some = log[places[first : first + FEW], : at.G_RTT]
        index = some[:, at.G_INDEX]
        yield from zip(some.tolist(), columns.time_ns[index].tolist(), columns.position[index].tolist())


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
