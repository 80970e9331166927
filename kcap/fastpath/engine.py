"""The fast path beside the table of connections: decides which path takes each packet, imports and exports connections.

In: `SegmentColumns` in capture order. Out: rows and closed connections of the fast path, and calls on the `ConnectionTable` for
all other packets, in order. Law: rows, connections, weirds and ledgers equal those of the table alone.

A connection is *own* (it began in the fast path and has no objects), a *guest* (it was imported from the reference path), or
*outside*.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.arrays import PacketArrays
from kcap.fastpath.body_kernels import carry_over, transposed
from kcap.fastpath.close_kernels import all_settled
from kcap.fastpath.closed_connections import EndedSlots, OwnConnection
from kcap.fastpath.closed_rows import closed_rows
from kcap.fastpath.export_state import Host, export_connection
from kcap.fastpath.flow_table import find, pair_number
from kcap.fastpath.frame_kernels import settled_run
from kcap.fastpath.import_state import fits, import_connection, packets_until_fit, passing
from kcap.fastpath.oddities import report_ends, report_late, report_late_rows, report_resyncs
from kcap.fastpath.packet_kernels import walk
from kcap.fastpath.projected import both_projected
from kcap.fastpath.rows import FastPathRows
from kcap.fastpath.state import FastPathState
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.body_values import UNKNOWN
from kcap.kafka.carried_bodies import carried
from kcap.kafka.conversation import Conversation
from kcap.model import REF_FILE_SHIFT
from kcap.net import guard
from kcap.net.connections import IDLE_DETAIL, Numbered
from kcap.net.segment_columns import ABSENT, SegmentColumns
from kcap.net.tcp import Connection
from kcap.weird import WeirdKind

STEP = limits.FAST_PATH_PACKETS
SEEN = 4096
"""Number of counters of packets left to the reference path, by endpoints. If two connections share a counter, the kernel stops
early or leaves a new one to the reference path; nothing else changes.
"""
COUNTED = (
    at.M_LEFT, at.M_GONE, at.M_FRESH, at.M_FULL, at.M_OPENED, at.M_ENDED, at.M_BLIND, at.M_LOGGED, at.M_TOUCHED, at.M_LATE,
    at.M_ODD,
)  # fmt: skip
"""Counters that a walk starts from 0."""
OUTSIDE = 1 << 20
"""Number of counters of connections outside, by endpoints. A new connection that shares a counter is left to the reference
path.
"""


class FastPath:
    """The fast path of one analyzer."""

    def __init__(self, analyzer: Host) -> None:
        self.analyzer = analyzer
        self.state = FastPathState(analyzer.bodies.shared)
        self.state.meta[at.M_OPENS] = analyzer.takes_all()
        self.step = STEP
        """Number of packets in the next window."""
        self.passed = 0
        """Number of packets so far, for the order of rows."""
        analyzer.orders[:] = [-1] * len(analyzer.orders)
        self.spare: Any = None
        """The table of bodies of the previous batch, which is reused."""
        self.kept = 0
        """Bytes of the arena that were carried over from the previous batch."""
        self.imported = 0
        """Number of connections that were imported so far."""
        self.outside: Any = np.zeros(OUTSIDE, np.int32)
        self.expected: Any = np.zeros(SEEN, np.int32)
        """Estimated number of packets until connections outside fit, by endpoints; 0 if nothing is known."""
        self.entered: list[int] = []
        """Orders of the packets of this window that opened connections outside."""
        self.ended = EndedSlots()
        analyzer.table.elsewhere = self
        self._know_outside()

    def _know_outside(self) -> None:
        table = self.analyzer.table
        for ended in table.closing:
            ended.closing_order = -1
        for connection in {stream.connection for stream in table.streams.values()}:
            older: Connection | None = connection
            while older is not None:
                self.opened(older)
                older = older.older
        for flow in table.silent:
            self.outside[self._place(flow)] += 1
        self.entered.clear()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"spare": None}

    # -- connections outside ------------------------------------------------------------------------------------------
    def opened(self, connection: Connection) -> None:
        """The reference path has one more connection."""
        self.outside[self._place(connection.flows[0])] += 1
        self.entered.append(self.analyzer.table.order)

    def closed(self, flow: bytes) -> None:
        """The reference path has one connection less, the one with this flow."""
        self.outside[self._place(flow)] -= 1

    @staticmethod
    @lru_cache(maxsize=1 << 12)  # it is computed several times for a connection that opens and ends
    def _place(flow: bytes) -> int:
        return pair_number(flow) & (OUTSIDE - 1)

    @property
    def decided(self) -> int:
        """Number of rows that wait to be taken."""
        return int(self.state.meta[at.M_ROWS])

    @property
    def gathered(self) -> int:
        """Bytes of bodies since the last batch."""
        large = 2 * len(self.state.decided_large()) * limits.BODIES_BYTES // max(len(self.state.large.arrays.large), 1)
        return int(self.state.meta[at.M_TOP]) - self.kept + large

    @property
    def large_bytes(self) -> int:
        """Bytes of the large frames of rows since the last batch."""
        return int(self.state.large.arrays.large[self.state.decided_large(), at.L_PASSED].sum())

    # -- packets ------------------------------------------------------------------------------------------------------
    def feeds(self, columns: SegmentColumns) -> Iterator[None]:
        """Takes segments. Pauses so that the caller can take rows."""
        table = self.analyzer.table
        count = len(columns)
        present = columns.state != ABSENT
        if not count or not present.any():
            self.passed += count
            return
        table.order_base = self.passed - columns.first_packet
        first, patience, self.expected[:] = 0, limits.FAST_PATH_PATIENCE, 0
        while first < count:
            last = min(first + self.step, count)
            imported, waiting = self.imported, self.analyzer.waiting
            stopped = self._look(columns, first, last, patience)
            in_vain = stopped < last and imported == self.imported
            patience = min(2 * patience, STEP) if in_vain else limits.FAST_PATH_PATIENCE
            more, most = self.analyzer.waiting - waiting, self.analyzer.rows_per_batch
            if more > most:  # a packet may hold a hundred messages, and each row becomes an object outside of the fast path
                self.step = max(limits.FEED_PACKETS_MIN, (stopped - first) * most // more)
            else:
                self.step = min(STEP, 2 * self.step)
            first = stopped
            if self.analyzer.full:
                yield
        self.passed += count
        table.order = self.passed - 1
        times = columns.time_ns if present.all() else columns.time_ns[present]
        self.advance(int(times.max()))

    def _look(self, columns: SegmentColumns, first: int, last: int, patience: int) -> int:
        state = self.state
        if state.meta[at.M_TOP] == self.kept:
            state.last_arena()
        if columns.flows:
            self._slow_flows(columns, first, last)
        self._bound_waiting()
        self._bound_open()
        meta, span = state.meta, last - first
        if meta[at.M_SLOTS] < span and not meta[at.M_GROWS]:
            self._bound_silent()
        meta[at.M_ORDER] = self.passed
        meta[at.M_REF] = (columns.file << REF_FILE_SHIFT) + columns.first_packet
        meta[list(COUNTED)] = 0
        meta[at.M_TLS] = self.analyzer.reads_handshakes()
        meta[at.M_IDENTITIES], decided = len(self.analyzer.identities), int(meta[at.M_ROWS])
        meta[at.M_LARGE_FROM] = limits.FRAME_GATHERED_MAX if self.analyzer.bodies.records else limits.FAST_PATH_LARGE_FROM
        meta[at.M_EXCERPTS] = self.analyzer.bodies.keep
        rare = self.analyzer.sighted + len(state.large.arrays.odd) < limits.WEIRDS_MAX
        meta[at.M_RESYNCS] = rare and self.analyzer.watch is None
        left, opened, ended = np.empty((3, span, 2), np.int64)
        gone = np.empty(span, np.int64)
        fresh = np.empty(state.slots, np.int64)
        seen, most = np.zeros(SEEN, np.int32), np.where(self.expected, self.expected, np.int32(patience))
        packets = PacketArrays(
            columns.data, columns.numbers, columns.time_ns, columns.position, columns.flow_at, columns.flow_size,
            columns.state, state.table, state.keys, state.free, left, gone, opened, ended, seen, most, self.outside, state.log,
            state.undo,
        )  # fmt: skip
        place: int = walk(packets, first, last, state.arrays(fresh))
        if meta[at.M_FULL]:
            state.more_room(int(columns.numbers[6, place]))
        left, gone = left[: meta[at.M_LEFT]], gone[: meta[at.M_GONE]]
        opened, ended = opened[: meta[at.M_OPENED]], ended[: meta[at.M_ENDED]]
        if meta[at.M_TOUCHED]:
            left, gone, ended = self._sealed(columns, left, gone, ended, fresh)
        if not len(left) and len(opened):  # the reference path opens none in between
            count = self.analyzer.table.count
            state.connections[opened[:, 0], at.PLACE] = np.arange(count + 1, count + 1 + len(opened))
        fresh = fresh[: meta[at.M_FRESH]]
        first_fresh = self._identify(fresh)
        later = report_late(state, self.analyzer, decided, left[:1, 0]) if meta[at.M_LATE] else None
        if meta[at.M_ODD] or meta[at.M_SEARCHED]:
            report_resyncs(state, self.analyzer)
        if meta[at.M_ANSWER]:
            state.large.learn()
        if meta[at.M_LARGE_WANTED]:
            state.large.make_room()
        self._settle(columns, left, gone, opened, ended, fresh, first_fresh)
        if later is not None:
            report_late_rows(self.analyzer, later)
        return place

    def _bound_waiting(self) -> None:
        """Leaves connections with many waiting requests to the reference path if those of all connections may become too
        many.
        """
        state, meta = self.state, self.state.meta
        waiting = self.analyzer.bodies.outstanding + len(state.queues) - int(meta[at.M_SPARE])
        if waiting <= limits.OUTSTANDING_OF_ALL // 2:
            meta[at.M_WAITING_MAX] = limits.FAST_PATH_OUTSTANDING_MAX
        elif meta[at.M_WAITING_MAX] != limits.OUTSTANDING_LEAST - 1:
            meta[at.M_WAITING_MAX] = limits.OUTSTANDING_LEAST - 1
            connections = state.connections
            count = connections[:, at.COUNT] + connections[:, at.PASSED]
            many = (connections[:, at.LIVE] != at.FREE) & (count >= limits.OUTSTANDING_LEAST)
            self._back(np.flatnonzero(many).tolist())

    def _bound_silent(self) -> None:
        """Closes the oldest of the connections that carried no bytes if most of all connections are such."""
        connections, least = self.state.connections, self.state.slots // 2
        silent = np.flatnonzero(unspoken(connections))
        silent = silent[self._settled(silent)]
        if len(silent) > least:
            oldest = silent[np.argsort(connections[silent, at.PLACE])[: least // 4]]
            self.analyzer.report(WeirdKind.CONNECTION_LIMIT, f"more than {least} connections without a byte")
            self._over(oldest)

    def _bound_open(self) -> None:
        """Leaves connections whose incomplete frames hold much to the reference path if those of all connections hold too
        much.
        """
        meta, held = self.state.meta, self.analyzer.bodies.gathered_bytes + self.state.count_open()
        if held > limits.GATHERED_OF_ALL // 2:
            meta[at.M_OPEN_MAX] = 0
            self._back(np.unique(self.state.heavy_frames() >> 1).tolist())
        elif held <= limits.GATHERED_OF_ALL // 4:
            meta[at.M_OPEN_MAX] = limits.GATHERED_OF_ALL // 4

    def _sealed(self, columns: SegmentColumns, left: Any, gone: Any, ended: Any, fresh: Any) -> tuple[Any, Any, Any]:
        """Reads what the walk took of connections with TLS. Returns the packets and connections that are left to the reference
        path, including those that this step leaves to it, and the connections that ended, without these.
        """
        from kcap.fastpath.sealed import read_sealed  # most captures have no TLS, and the import takes time

        state = self.state
        cut = read_sealed(state, columns, fresh, self.analyzer.secrets)
        if not len(cut):
            return left, gone, ended
        log = state.log[: state.meta[at.M_LOGGED]]
        more = log[np.isin(log[:, at.G_PLACE] >> 1, cut), at.G_INDEX]
        left = np.concatenate([left, np.stack([more, np.full(len(more), at.LEAVE)], axis=1)])
        return left[np.argsort(left[:, 0], kind="stable")], np.union1d(gone, cut), ended[~np.isin(ended[:, 0], cut)]

    def _identify(self, fresh: Any) -> int:
        """Adds the constants of connections with their first rows in the open batch; returns the index of the first."""
        analyzer, state, first = self.analyzer, self.state, len(self.analyzer.identities)
        if len(fresh):
            analyzer.identities.extend(state.identities(fresh))
            for place in np.flatnonzero(state.connections[fresh, at.OWN] == 0).tolist():
                conversation = state.conversations[fresh[place]]
                assert conversation is not None
                analyzer.identities.put(first + place, analyzer.constants(conversation))
        return first

    def _settle(
        self, columns: SegmentColumns, left: Any, gone: Any, opened: Any, ended: Any, fresh: Any, first_fresh: int
    ) -> None:
        """Completes a walk: exports connections, passes packets to the reference path and reports ends, all in packet order.

        `fresh` are the connections with their first rows in the open batch; their indexes begin with `first_fresh`.
        """
        table, state = self.analyzer.table, self.state
        if len(ended):
            for slot in ended[:, 0].tolist() if state.sealed else ():
                sealed = state.sealed.get(slot)
                if sealed is not None:
                    sealed.end()
            self.ended.add(ended[:, 0], ended[:, 1], state.connections[ended[:, 0], at.CLOSING_NS])
        before = table.count
        back: dict[int, Conversation] = {}
        if len(gone):
            slots = gone.tolist()
            for slot, conversation in zip(slots, self._back(slots)):
                conversation.leaves_fast_path()
                back[slot] = conversation
        if not len(left):
            table.count += len(opened)  # they are numbered, and nothing was exported
            return
        self.entered.clear()
        table.taken.extend(opened[:, 1].tolist())
        self._rest(columns, left)
        table.count += len(table.taken)
        table.taken.clear()
        if len(opened):
            numbers = before + 1 + np.arange(len(opened)) + np.searchsorted(self.entered, opened[:, 1])
            self._number(opened, numbers, back, {slot: first_fresh + place for place, slot in enumerate(fresh.tolist())})

    def _number(self, opened: Any, numbers: Any, back: dict[int, Conversation], indexes: dict[int, int]) -> None:
        """Numbers the connections that a walk opened, now that it is known which ones the reference path opened in between.
        `back` has those that were exported since, and `indexes` those in the open batch.
        """
        number_of: dict[int, int] = dict(zip(opened[:, 0].tolist(), numbers.tolist()))
        here = np.array([slot not in back for slot in number_of], np.bool_)
        self.state.connections[opened[here, 0], at.PLACE] = numbers[here]
        for slot in number_of.keys() & back.keys():
            conversation = back[slot]
            conversation.tcp.number = number_of[slot]
            # Its plaintext may have begun since, or the connection may be closed by now and have no reference to it.
            gone_with = plaintext_of(conversation.tcp) or conversation.inner or conversation
            if gone_with.identity_batch == self.analyzer.batch:
                self.analyzer.identities.renumber(gone_with.identity_index, number_of[slot])
        for slot in number_of.keys() & indexes.keys():
            self.analyzer.identities.renumber(indexes[slot], number_of[slot])

    def _back(self, slots: Iterable[int]) -> list[Conversation]:
        """Exports these connections to the reference path."""
        table, conversations, slots = self.analyzer.table, [], list(slots)
        for slot in slots:
            guest = self.state.conversations[slot] is not None
            conversation = export_connection(self.state, slot, self.analyzer)
            conversations.append(conversation)
            self.outside[self._place(conversation.tcp.flows[0])] += 1
            if guest:
                continue
            connection = self._adopted(conversation).tcp
            if connection.closing_ns is not None:
                table.ended(connection, self.ended.take(slot))
        self.state.release_all(np.array(slots, np.int64))
        return conversations

    def _adopted(self, conversation: Conversation | None) -> Conversation:
        """Adds an own connection's new objects to the table."""
        assert conversation is not None
        self.analyzer.table.adopt(conversation.tcp)
        return conversation

    def _slow_flows(self, columns: SegmentColumns, first: int, last: int) -> None:
        """Exports the connections of packets whose flow the kernel cannot read."""
        state, slots = self.state, set()
        for index, flow in columns.flows.items():
            if first <= index < last:
                found = find(np.frombuffer(flow, np.uint8), 0, len(flow), state.table, state.keys, state.streams)
                if found >= 0:
                    slots.add(found >> 1)
        if slots:
            self._back(sorted(slots))

    def _rest(self, columns: SegmentColumns, left: Any) -> None:
        """Passes packets to the reference path, in order, and then imports their connections if their state allows it."""
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
        streams, number, ends = table.streams, self.analyzer.batch, where[-1] + 1 == len(columns)
        for flow in set(batch.flow):
            stream = streams.get(flow)
            if stream is None:
                continue
            conversation = plaintext_of(stream.connection)
            if conversation is None or conversation.phase != "kafka" or conversation.fast_path_slot >= 0:
                continue
            within = passing(conversation, self.state)
            if ends and conversation.mid_frame and not within:
                continue  # it does not fit yet; the estimate of when it will is valid within a batch
            place, packets = self._place(conversation.tcp.flows[0]), packets_until_fit(conversation)
            self.expected[place & (SEEN - 1)] = packets
            most = int(self.state.meta[at.M_WAITING_MAX])
            if not packets and fits(conversation.connection, conversation, most, within=within):
                if import_connection(self.state, conversation, number):
                    self.outside[place] -= 1
                    self.imported += 1
                elif not within:
                    return
                else:
                    conversation.leaves_fast_path()  # another attempt takes time

    def _remainder(self, columns: SegmentColumns, index: int, taken: int) -> None:
        """Returns the rest of a packet's payload, of which the fast path took the beginning."""
        table = self.analyzer.table
        one = columns.lists(np.array([index]))
        stream = table.streams[one.flow[0]]
        packet, length = one.packet[0], one.length[0] - taken
        table.order = table.order_base + packet
        captured = max(one.captured[0] - taken, 0)
        ref, position = (one.file << REF_FILE_SHIFT) + packet, one.position[0]
        stream.acknowledges(stream.peer.acked_raw, ref)
        guard.data(
            stream, stream.next - length, one.buffer, one.payload[0] + taken, captured, length, one.time_ns[0], ref, position
        )

    # -- time ---------------------------------------------------------------------------------------------------------
    def advance(self, time_ns: int) -> None:
        """Advances capture time."""
        table, connections = self.analyzer.table, self.state.connections
        if table.crowded:
            self._back(np.flatnonzero((connections[:, at.LIVE] != at.FREE) & (connections[:, at.OWN] == 0)).tolist())
        time_ns = max(time_ns, table.time_ns)
        left, silent = self._sweep(time_ns) if table.sweeps(time_ns) else (False, [])
        table.advance(time_ns, silent)
        table.unswept |= left

    def _sweep(self, time_ns: int) -> tuple[bool, list[OwnConnection]]:
        """Exports those of the idle connections that the table closes next, except those that carried no bytes. Returns whether
        others remain, and the exceptions.
        """
        connections, table = self.state.connections, self.analyzer.table
        live, last, own = connections[:, at.LIVE], connections[:, at.LAST], connections[:, at.OWN] != 0
        idle = (live != at.FREE) & (live != at.CLOSING) & (time_ns - last >= limits.CONNECTION_IDLE_NS)
        self._back(np.flatnonzero(idle & ~own).tolist())
        for slot in np.flatnonzero((live != at.FREE) & ~own).tolist():
            conversation = self.state.conversations[slot]
            assert conversation is not None
            conversation.tcp.last_ns = int(last[slot])
        slots = np.flatnonzero(idle & own)
        numbers = connections[slots, at.PLACE].copy()
        every = np.sort([*numbers.tolist(), *(number for number, _ in table.idle(time_ns))])
        chosen = numbers <= (every[: limits.CLOSED_TOGETHER][-1] if len(every) else -1)
        silent = unspoken(connections[slots]) & self._settled(slots)
        self._back(slots[chosen & ~silent].tolist())
        quiet = chosen & silent
        connections[slots[quiet], at.ENDED] = at.IDLE
        both = zip(numbers[quiet].tolist(), slots[quiet].tolist())
        return not chosen.all(), [OwnConnection(number, slot, self) for number, slot in both]

    def _settled(self, slots: Any) -> Any:
        """Which of these connections are settled (`close_kernels.settled`)."""
        found = np.empty(len(slots), np.bool_)
        all_settled(slots, found, self.state.connections, self.state.streams)
        return found

    def close(self, slot: int) -> Connection | None:
        """Closes an own connection, or exports it if the reference path has to decide its end."""
        self.state.more_rows(int(self.state.connections[slot, (at.COUNT, at.PASSED)].sum()))
        return None if self.close_many(np.array([slot])) else self._back([slot])[0].tcp

    def close_many(self, slots: Any) -> int:
        """Closes own connections from the first on, up to one that needs `close`; returns how many."""
        count = self._decided(slots)
        if count:
            self._over(slots[:count])
        return count

    def close_ended(self, until_ns: int, before: int) -> bool:
        """As `net.connections.Elsewhere`."""
        while self.ended.begin_before(before):
            slots = self.ended.due(until_ns, before)
            if not len(slots):
                return False
            count = self.close_many(slots)
            if count < len(slots):
                slot = int(slots[count])
                self.ended.drop(count)
                if self.close(slot) is not None:  # it is now the first in the table's queue
                    return True
                count = 1
            self.ended.drop(count)
        return True

    def _behind(self) -> bool:
        """Whether a row of the reference path comes first."""
        orders = self.analyzer.orders
        return bool(orders) and orders[-1] == self.analyzer.table.order

    def _over(self, slots: Any) -> None:
        for uid in self.state.uids(slots[self.state.connections[slots, at.ENDED] == at.IDLE]):
            self.analyzer.report(WeirdKind.CONNECTION_IDLE, IDLE_DETAIL, uid=uid)
        self.analyzer.over(closed_rows(self.state, slots))
        self.state.release_all(slots)

    def _decided(self, slots: Any) -> int:
        """Decides the outstanding requests of own connections that end; returns for how many, as `settled_run`."""
        state, meta, table = self.state, self.state.meta, self.analyzer.table
        first = int(meta[at.M_ROWS])
        fresh = np.empty(len(slots), np.int64)
        meta[at.M_FRESH], meta[at.M_IDENTITIES] = 0, len(self.analyzer.identities)
        count: int = settled_run(slots, table.order, table.time_ns, self._behind(), state.arrays(fresh))
        self._identify(fresh[: meta[at.M_FRESH]])
        report_ends(state, self.analyzer, first)
        return count

    def leave(self) -> None:
        """Exports all connections."""
        self._back(self.state.live())

    def ends(self) -> Iterator[None]:
        """Ends the capture: closes own connections without objects, in the table's order. Those with something left to decide
        get their objects one by one. Pauses as `ConnectionTable.ends`.
        """
        state = self.state
        live = np.array(state.live(), np.int64)
        found = self._settled(live)
        found |= (state.connections[live, at.OWN] != 0) & (state.connections[live, at.LIVE] != at.CLOSING)
        places = state.connections[live[found], at.PLACE].tolist()
        own: list[Numbered] = [OwnConnection(place, slot, self) for slot, place in zip(live[found].tolist(), places)]
        others = live[~found].tolist()
        table = self.analyzer.table
        for start in range(0, len(others), STEP):
            for conversation in self._back(others[start : start + STEP]):
                table.freeze(conversation.tcp)
        for _ in table.ends(own):
            table.order += 1  # the rows of the next connection come after those of this one, whichever path decides them
            yield
        table.elsewhere = None  # frees the arrays here with the analyzer's reference

    def _take_large(self, rows: Any) -> None:
        """Replaces the slots of large frames with their values, for these rows."""
        bodies = self.analyzer.bodies
        for place in (at.R_REQUEST_SLOT, at.R_RESPONSE_SLOT):
            for row in np.flatnonzero(rows[place] >= at.LARGE_BASE).tolist():
                values = self.state.large.take(int(rows[place, row]))
                rows[place, row] = number = bodies.carry(values)
                bodies.settle_carried([number])

    # -- rows ---------------------------------------------------------------------------------------------------------
    def take(self, unwanted: Callable[[FastPathRows], Any] | None = None) -> tuple[FastPathRows, BodyBatch]:
        """Returns the rows since the last call, and the bodies of these and of the reference path's rows. `unwanted` returns
        the bodies that are not to be decoded.
        """
        state, bodies, meta = self.state, self.analyzer.bodies, self.state.meta
        rows = np.empty((at.ROW_WIDTH, int(meta[at.M_ROWS])), np.int64)
        transposed(state.rows[: meta[at.M_ROWS]], rows)
        if state.large.used:
            self._take_large(rows)
        slots = rows[at.R_REQUEST_SLOT]
        bodies.settle_carried(slots[slots < UNKNOWN].tolist())
        shift = len(bodies.starts) - at.SLOT_BASE
        for place in (at.R_REQUEST_SLOT, at.R_RESPONSE_SLOT):
            rows[place] += np.where(rows[place] >= at.SLOT_BASE, shift, 0)
        old = state.bodies, state.arena, int(meta[at.M_BODIES]), int(meta[at.M_TOP])
        state.next_arena()
        state.bodies = np.empty_like(old[0]) if self.spare is None or self.spare.shape != old[0].shape else self.spare
        heavy = np.empty(len(state.queues), np.int64)
        count = carry_over(
            state.connections, state.streams, state.queues, old[0], old[1], state.bodies, state.arena, meta, heavy
        )
        taken = FastPathRows(rows, state.all_names())
        if unwanted is not None:
            slots, first = unwanted(taken), len(bodies.starts)
            bodies.leave_out(slots[slots < first].tolist())
            old[0][2, slots[slots >= first] - first] = UNKNOWN
        batch = bodies.close(both_projected(bodies, *old))
        heavy = heavy[:count]
        state.queues[heavy, at.Q_SLOT] = carried(bodies, batch, state.queues[heavy, at.Q_SLOT] + shift)
        self.spare = old[0]
        self.kept = int(meta[at.M_TOP])
        meta[at.M_ROWS] = 0
        state.connections[:, at.IDENTITY] = -1
        if state.names_wasted:
            state.forget_names()
        return taken, batch


def unspoken(connections: Any) -> Any:
    """Which of these connections are open and have carried no bytes and no FIN."""
    live = connections[:, at.LIVE]
    return (live == at.CALLED) | (live == at.OPEN)


def plaintext_of(connection: Connection) -> Conversation | None:
    """The conversation of a connection's plaintext, with or without TLS."""
    conversation = connection.conversation
    if not isinstance(conversation, Conversation):
        return None
    return conversation if conversation.inner is None else conversation.inner
