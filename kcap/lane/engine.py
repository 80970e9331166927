"""The lane beside the table of connections: who walks which packet, who enters and who leaves.

In: `SegmentColumns` in capture order. Out: rows of the lane, and calls on the `ConnectionTable` for all other packets, in
order. Law: rows,
connections, weirds and ledgers are those of the table alone.
"""

from typing import Any, Protocol

import numpy as np

from kcap import limits
from kcap.decode.projection import program_index, project
from kcap.kafka.bodies import REQUEST, RESPONSE, UNKNOWN, BodyBatch
from kcap.kafka.conversation import Collector, Conversation
from kcap.lane import layout as at
from kcap.lane.bodies import carry_over
from kcap.lane.kernel import walk
from kcap.lane.rows import LaneRows
from kcap.lane.state import LaneState, fits, header_tables
from kcap.model import REF_FILE_SHIFT
from kcap.net.columns import ABSENT, SegmentColumns

STEP = limits.LANE_PACKETS
SEEN = 1024
"""Counters of packets left to the machines, by flow; two flows that share one only make the kernel stop early."""


class Host(Collector, Protocol):
    """The analyzer, as the lane sees it."""

    identities: list[Any]


class Lane:
    """The fast lane of one analyzer."""

    def __init__(self, analyzer: Host) -> None:
        self.analyzer = analyzer
        self.state = LaneState()
        self.looks = 0
        self.passed = 0
        """Packets so far, for the order of rows."""
        analyzer.orders[:] = [-1] * len(analyzer.orders)
        self.other: Any = None
        """The table and the arena of the batch before, to be used again."""
        self.kept = 0
        """Bytes of the arena that came over from the batch before."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"other": None}

    @property
    def decided(self) -> int:
        """Rows that wait to be taken."""
        return int(self.state.meta[at.M_ROWS])

    @property
    def gathered(self) -> int:
        """Bytes of bodies since the last batch."""
        return int(self.state.meta[at.M_TOP]) - self.kept

    # -- packets ------------------------------------------------------------------------------------------------------
    def feed(self, columns: SegmentColumns) -> None:
        """Takes segments."""
        table = self.analyzer.table
        count = len(columns)
        present = columns.state != ABSENT
        if not count or not present.any():
            self.passed += count
            return
        table.order_base = self.passed - columns.first_packet
        first, patience = 0, limits.LANE_PATIENCE
        while first < count:
            last = min(first + STEP, count)
            stopped = self._look(columns, first, last, patience)
            patience = limits.LANE_PATIENCE if stopped == last else 2 * patience
            first = stopped
        self.passed += count
        table.order = self.passed - 1
        times = columns.time_ns if present.all() else columns.time_ns[present]
        self._advance(int(times.max()))

    def _look(self, columns: SegmentColumns, first: int, last: int, patience: int) -> int:
        state, plain_steps = self.state, header_tables()
        if columns.flows:
            self._slow_flows(columns, first, last)
        meta = state.meta
        meta[at.M_ORDER] = self.passed
        meta[at.M_REF] = (columns.file << REF_FILE_SHIFT) + columns.first_packet
        meta[at.M_LEFT] = meta[at.M_GONE] = meta[at.M_FRESH] = meta[at.M_FULL] = 0
        meta[at.M_IDENTITIES] = len(self.analyzer.identities)
        left = np.empty((last - first, 2), np.int64)
        gone = np.empty(last - first, np.int64)
        fresh = np.empty(state.slots, np.int64)
        seen = np.zeros(SEEN, np.int64)
        place = walk(
            columns.data, columns.numbers, columns.time_ns, columns.position, columns.flow_at, columns.flow_size,
            columns.state, first,
            last, state.table, state.keys, state.connections, state.streams, state.queues, state.ids, state.rows,
            state.bodies, state.arena,
            meta, left, gone, fresh, *plain_steps, seen, patience,
        )  # fmt: skip
        if meta[at.M_FULL]:
            state.more_room(int(columns.numbers[6, place]))
        analyzer = self.analyzer
        for slot in fresh[: meta[at.M_FRESH]].tolist():
            talk = state.talks[slot]
            assert talk is not None
            analyzer.identity(talk)
        self.looks += 1
        for slot in gone[: meta[at.M_GONE]].tolist():
            talk = state.demote(slot, analyzer.batch)
            talk.lane_left += 1
            talk.lane_again = self.looks + min(1 << talk.lane_left, limits.LANE_WAIT_MAX)
        if meta[at.M_LEFT]:
            self._rest(columns, left[: meta[at.M_LEFT]])
        return place

    def _slow_flows(self, columns: SegmentColumns, first: int, last: int) -> None:
        """Packets that the kernel cannot look up make their connections leave."""
        streams = self.analyzer.table.streams
        for index, flow in columns.flows.items():
            if first <= index < last and flow in streams:
                talk = streams[flow].connection.talk
                if isinstance(talk, Conversation) and talk.lane >= 0:
                    self.state.demote(talk.lane, self.analyzer.batch)

    def _rest(self, columns: SegmentColumns, left: Any) -> None:
        """Packets for the machines, in order; then those of their connections enter that are in good order."""
        table = self.analyzer.table
        where, taken = left[:, 0], left[:, 1]
        batch = columns.lists(where)
        cuts = np.flatnonzero(taken >= 0).tolist()
        if not cuts:
            table.segments(batch)
        before = 0
        for cut in [*cuts, len(where)] if cuts else []:
            if cut > before:
                table.segments(columns.lists(where[before:cut]))
            if cut < len(where):
                self._remainder(columns, int(where[cut]), int(taken[cut]))
            before = cut + 1
        streams, looks, number = table.streams, self.looks, self.analyzer.batch
        for flow in set(batch.flow):
            stream = streams.get(flow)
            if stream is None:
                continue
            connection = stream.connection
            talk = connection.talk
            if not isinstance(talk, Conversation) or talk.phase != "kafka" or talk.lane >= 0 or talk.lane_again > looks:
                continue
            if fits(connection, talk) and not self.state.promote(talk, number):
                return

    def _remainder(self, columns: SegmentColumns, index: int, taken: int) -> None:
        """The rest of a packet's payload, of which the lane took the beginning."""
        table = self.analyzer.table
        one = columns.lists(np.array([index]))
        stream = table.streams[one.flow[0]]
        packet, length = one.packet[0], one.length[0] - taken
        table.order = table.order_base + packet
        stream.sink.data(
            stream.next - length, one.buffer, one.payload[0] + taken, length, length, one.time_ns[0],
            (one.file << REF_FILE_SHIFT) + packet, one.position[0],
        )  # fmt: skip

    # -- time ---------------------------------------------------------------------------------------------------------
    def _advance(self, time_ns: int) -> None:
        table, state = self.analyzer.table, self.state
        time_ns = max(time_ns, table.time_ns)
        if table.sweeps(time_ns):
            if len(table.streams) > 2 * limits.CONNECTIONS_MAX:
                self.leave()
            live = np.flatnonzero(state.connections[:, at.LIVE])
            last = state.connections[live, at.LAST]
            for slot, last_ns in zip(live.tolist(), last.tolist()):
                if time_ns - last_ns >= limits.CONNECTION_IDLE_NS:
                    state.demote(slot, self.analyzer.batch)
                else:
                    talk = state.talks[slot]
                    assert talk is not None
                    talk.connection.last_ns = last_ns
        table.advance(time_ns)

    def leave(self) -> None:
        """Everybody leaves."""
        for slot in np.flatnonzero(self.state.connections[:, at.LIVE]).tolist():
            self.state.demote(slot, self.analyzer.batch)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def take(self) -> tuple[LaneRows, BodyBatch]:
        """Rows since the last call, and the bodies of these and of the machines' rows."""
        state, bodies, meta = self.state, self.analyzer.bodies, self.state.meta
        rows = np.ascontiguousarray(state.rows[: meta[at.M_ROWS]].T)
        slots = rows[at.R_REQUEST_SLOT]
        for slot in slots[slots < UNKNOWN].tolist():
            bodies.settle_carried(slot)
        shift = len(bodies.starts) - at.SLOT_BASE
        for place in (at.R_REQUEST_SLOT, at.R_RESPONSE_SLOT):
            rows[place] += np.where(rows[place] >= at.SLOT_BASE, shift, 0)
        old = state.bodies, state.arena, int(meta[at.M_BODIES]), int(meta[at.M_TOP])
        state.bodies, state.arena = self.other or (np.empty_like(state.bodies), np.empty_like(state.arena))
        if state.bodies.shape[1] < old[0].shape[1] or state.arena.size < old[1].size:
            state.bodies, state.arena = np.empty_like(old[0]), np.empty_like(old[1])
        heavy = np.empty(len(state.queues), np.int64)
        count = carry_over(
            state.connections, state.streams, state.queues, old[0], old[1], state.bodies, state.arena, meta, heavy
        )
        batch = bodies.close(self._project(*old))
        for place in heavy[:count].tolist():
            values = batch.values(int(state.queues[place, at.Q_SLOT]) + shift)
            state.queues[place, at.Q_SLOT] = UNKNOWN if values is None else bodies.carry(values)
        self.other = old[0], old[1]
        self.kept = int(meta[at.M_TOP])
        meta[at.M_ROWS] = 0
        state.connections[:, at.IDENTITY] = -1
        taken = LaneRows(rows, state.names)
        if len(state.names) > limits.LANE_NAMES:
            state.forget_names()
        return taken, batch

    def _project(self, table: Any, lane_arena: Any, count: int, top: int) -> BodyBatch:
        """The bodies of the machines and of the lane as one batch."""
        bodies = self.analyzer.bodies
        size = len(bodies.arena)
        arena = bytearray(bodies.arena)
        arena += memoryview(lane_arena[:top])
        mine = programs(table[2, :count])
        starts = np.concatenate([np.array(bodies.starts, np.int64), table[0, :count] + size])
        ends = np.concatenate([np.array(bodies.ends, np.int64), table[1, :count] + size])
        every = np.concatenate([np.array(bodies.programs, np.int64), mine])
        read = every >= 0
        dense = np.where(read, np.cumsum(read) - 1, -1)
        spans: tuple[Any, Any, Any] = (starts[read], ends[read], every[read])
        projection = project(arena, *spans, engine="jit")
        slots: tuple[Any, Any, Any] = (starts, ends, dense)
        return BodyBatch(arena, *slots, projection=projection, carried=bodies.carried)


def programs(codes: Any) -> Any:
    """The programs for what the kernel noted: key, version and side in one number."""
    if not len(codes):
        return codes
    known, place = np.unique(codes, return_inverse=True)
    found = []
    for code in known.tolist():
        number = -2 - code
        found.append(
            code if code > -2 else program_index(number >> 17, number >> 1 & 0xFFFF, RESPONSE if number & 1 else REQUEST)
        )
    return np.array(found, np.int64)[place]
