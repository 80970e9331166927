"""The partitions of a batch of exchanges: those of a request beside those of its response.

In: a `RowBatch` whose bodies are retained. Out: for each partition of an exchange, its positions in the side buffers of the
projection, for request and response. Law: a partition that both name, in one topic and one group, is one pair; the n-th mention
in one is paired with the n-th in the other. Of a message, the first PARTITIONS_OF_MESSAGE partitions that were read are all
included.
"""

from collections import defaultdict, deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap import kernels
from kcap.analyzer import RowBatch
from kcap.arrays.sparse import sparse
from kcap.arrays.vectors import Vector, grouped, nothing
from kcap.batch.bodies import Pool, beyond, encoded, encoded_ids
from kcap.batch.columns import SIDES, VERSIONS, BatchColumns
from kcap.decode import slots
from kcap.decode.programs import program_index
from kcap.decode.projection import Projection, project
from kcap.kafka.body_values import BodyValues, Pieces
from kcap.kafka.frames import NO_BODY
from kcap.limits import (
    FRAME_GATHERED_MAX,
    LARGE_BODIES_ROOM,
    PARTITIONS_AT_ONCE,
    PARTITIONS_OF_MESSAGE,
    REREAD_AT_ONCE_BYTES,
    SPARSE_BODIES_ROOM,
)
from kcap.schema import registry
from kcap.schema.registry import REQUEST, RESPONSE

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.facts.tracker import Reread
    from kcap.table.exchanges import Exchanges

KEYS: Final = frozenset(key for name in slots.WITH_PARTITIONS if (key := registry.api_key(name)) is not None)
LISTING: Final = registry.api_key(slots.LISTING)
PARTITION_BYTES_MIN: Final = 4
"""Minimum size of a partition: its number."""
TOPIC_BYTES: Final = 32
"""Number of bytes, other than records, that count as a partition: topics without partitions have an entry as well."""
MINUS_ONE_COUNTS: Final = frozenset({"error_code", "acknowledge_error", "partition"})
"""Columns in which -1 is a value; in all others it is Kafka's value for none."""


class PartitionBodies:
    """The bodies of a batch's exchanges that concern partitions, requests before responses, each in order of the exchanges.

    Bodies that were projected with the batch are not projected again, except carried ones and those that the arena lacks.
    """

    def __init__(
        self,
        columns: BatchColumns,
        reread: "Reread",
        *,
        listed: bool = False,
        records: bool = True,
        between: tuple[int, int] | None = None,
    ) -> None:
        """`listed`: includes the partitions that Metadata lists; `records`: includes the bytes of all records, not only of
        batch headers; `between`: the first of the wanted exchanges and the one after the last, if not all are wanted."""
        batch = columns.batch
        self.buffer: Any = batch.bodies.arena
        """The arena, followed by the bodies that it lacks; without `records`, the records of large bodies are zeros."""
        self._length = len(self.buffer)
        keys, versions = columns.number("api_key"), columns.number("api_version")
        wanted = [key for key in KEYS if listed or key != LISTING]
        about = np.flatnonzero(np.isin(keys.filled(-1), wanted) & versions.mask())
        if between is not None:
            about = about[slice(*np.searchsorted(about, between))]
        numbers, calls = columns.calls
        call = numbers[about]
        bodies = batch.bodies
        starts, ends, dense = (np.asarray(column, np.int64) for column in (bodies.starts, bodies.ends, bodies.dense))
        projected = (keys.values[about] != LISTING) & bodies.partitioned
        found: list[tuple[Int64s, ...]] = []
        pieces: list[tuple[Pieces, Body]] = []
        absent: list[tuple[int, int, Body]] = []
        room = SPARSE_BODIES_ROOM
        for side in (REQUEST, RESPONSE):
            programs = [
                program_index(code // VERSIONS, code % VERSIONS, side, True) if code // VERSIONS in wanted else -1
                for code in calls
            ]
            program = np.array([*programs, -1], np.int64)[call]
            slot = columns.number(f"{SIDES[side]}_slot").filled(NO_BODY)[about]
            sizes = columns.number(f"{SIDES[side]}_bytes").filled(0)[about]
            large = sizes > FRAME_GATHERED_MAX
            here = np.flatnonzero((program >= 0) & (slot >= 0) & ~large)
            sides, places = np.full(len(here), side), slot[here]
            messages = np.where(projected[here], dense[places], -1)
            found.append((starts[places], ends[places], program[here], about[here], sides, messages))
            for at in np.flatnonzero((program >= 0) & (large | (slot < NO_BODY))).tolist():
                body, values = (int(program[at]), int(about[at]), side), batch.bodies.carried.get(int(slot[at]))
                known = pieces_of(values, records=records)
                if known and room >= known[-1][0]:
                    room -= known[-1][0]
                    pieces.append((known, body))
                elif large[at] or values is not None:
                    absent.append((int(sizes[at]), int(slot[at]), body))
        others = [*self._read_again(batch, absent, reread), *self._laid(pieces, bodies.arena, bodies.room)]
        found.append(tuple(np.array([(*other, -1) for other in others], np.int64).reshape(-1, 6).T))
        table: list[Any] = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        if others:  # the rest is in order
            order = np.argsort(table[4] * len(batch) + table[3], kind="stable")
            table = [column[order] for column in table]
        starts, ends, which, self.rows, self.sides, message = table
        self.ends: Int64s = ends
        """End of each body in the buffer."""
        self.pool = Pool(np.frombuffer(self.buffer, np.uint8))
        self._first = bodies.projection if bodies.partitioned else NO_PROJECTION
        """The projection of the batch."""
        mine, first = message < 0, len(self._first)
        message[mine] = first + np.arange(np.count_nonzero(mine))
        self._later = project(self.buffer, starts[mine], ends[mine], which[mine])
        """The projection of the others; the numbers of its messages, topics and elements continue those of the batch."""
        self._known = (columns.messages.topic_names, columns.messages.topic_ids) if first else NO_TOPICS
        messages = np.concatenate([column_of(self._first, slots.MESSAGE), column_of(self._later, slots.MESSAGE) + first])
        per_message = np.bincount(messages, minlength=first + len(self._later))
        counts, low = np.minimum(per_message, PARTITIONS_OF_MESSAGE)[message], (np.cumsum(per_message) - per_message)[message]
        self.cut: Int64s = grouped(self.rows[per_message[message] > PARTITIONS_OF_MESSAGE])[0]
        """Exchanges that have a message with more partitions or topics than were read."""
        self.places: Int64s = np.repeat(low + counts - counts.cumsum(), counts) + np.arange(counts.sum())
        """Positions of the partitions among all elements, in the order of the bodies."""
        self.of_body: Int64s = np.repeat(np.arange(len(message)), counts)
        """The body of each partition."""
        topics = len(self._first.topics[0])
        left_out = [beyond(np.asarray(projection.topics[0], np.int64)) for projection in (self._first, self._later)]
        if any(map(len, left_out)):
            behind = self.places >= len(self._first.elements[0])
            topic = self.elements(slots.TOPIC, self.spots(self.places)) + np.where(behind, topics, 0)
            there = ~np.isin(topic, np.concatenate([left_out[0], left_out[1] + topics]))
            self.cut = grouped(np.concatenate([self.cut, self.rows[self.of_body[~there]]]))[0]
            self.places, self.of_body = self.places[there], self.of_body[there]

    def spots(self, places: "Int64s") -> "Spots":
        """Positions among the elements of both projections, split into positions in each."""
        size = len(self._first.elements[0])
        behind = np.flatnonzero(places >= size)
        return np.where(places < size, places, 0) if len(behind) else places, behind, places[behind] - size

    def elements(self, at: int, spots: "Spots") -> "Int64s":
        """Entries of a column of `slots.ELEMENTS`."""
        before, behind, after = spots
        first = column_of(self._first, at)
        if not len(first):
            return column_of(self._later, at).take(after)
        found = first.take(before)
        if len(behind):
            found[behind] = column_of(self._later, at)[after]
        return found

    def topics(self, spots: "Spots") -> "tuple[tuple[Int64s, list[bytes]], ...]":
        """For topic names and for topic ids: the number of each element's value, -1 for none, and the distinct values."""
        topic, (_, behind, after) = self.elements(slots.TOPIC, spots), spots
        topic[behind], of_later = 0, column_of(self._later, slots.TOPIC)[after]
        _, starts, ends, ids = (np.asarray(column, np.int64) for column in self._later.topics)
        made = []
        for (numbers, known), (more, some) in zip(self._known, (encoded(self.pool, starts, ends), encoded_ids(self.pool, ids))):
            places = {text: at for at, text in enumerate(known)}
            again = np.array([*(places.setdefault(text, len(places)) for text in some), -1], np.int64)
            found = numbers[topic] if len(numbers) else np.empty(len(topic), np.int64)
            found[behind] = again[more[of_later]]
            made.append((found, list(places)))
        return tuple(made)

    def _read_again(self, batch: RowBatch, absent: "list[tuple[int, int, Body]]", reread: "Reread") -> list[tuple[int, ...]]:
        """Reads large bodies again and appends them to a copy of the arena; returns one row of the table for each.

        `absent`: size of each frame, slot of its part in the arena, body. Room is allocated at once as far as these sizes are
        plausible; the buffer grows if it is too small.
        """
        arena, found = batch.bodies.arena, list[tuple[int, ...]]()
        claimed = min(sum(size for size, _, _ in absent), LARGE_BODIES_ROOM)
        following = [(exchange, SIDES[side]) for _, _, (_, exchange, side) in absent]
        for number, (_, slot, body) in enumerate(absent):
            message = reread(batch, *following[number], () if number else following)
            if message is None:
                if slot >= 0:
                    found.append((int(batch.bodies.starts[slot]), int(batch.bodies.ends[slot]), *body))
                continue
            data = memoryview(message.frame)[body_start(message.frame, body[2], message.header.version) :]
            start, self._length = self._length, self._length + len(data)
            if self.buffer is arena:
                self.buffer = bytearray(start + max(len(data), min(claimed, CLAIMED_FACTOR * len(data))))
                memoryview(self.buffer)[:start] = arena  # slicing a bytearray would copy it
            self.buffer[start : self._length] = data
            found.append((start, self._length, *body))
            del message, data  # otherwise they would live while the next one is read
        return found

    def _laid(self, pieces: "list[tuple[Pieces, Body]]", arena: Any, room: Any) -> list[tuple[int, ...]]:
        """Appends bodies of which pieces are known, with zeros between the pieces; returns one row of the table for each.
        `arena` and `room`: as of `BodyBatch`."""
        found, before = list[tuple[int, ...]](), self._length
        if not pieces:
            return found
        for known, body in pieces:
            start, self._length = self._length, self._length + known[-1][0]
            found.append((start, self._length, *body))
        parts = [data for known, _ in pieces for _, data in known]
        if before + sum(map(len, parts)) == self._length:
            if room is not None and self._length <= len(room) and self.buffer is arena:
                room[before : self._length] = np.frombuffer(b"".join(parts), np.uint8)
                self.buffer = memoryview(room[: self._length])
                return found
            if self.buffer is arena:
                self.buffer = bytearray(arena)
            self.buffer[before:] = b"".join(parts)
            return found
        wider = memoryview(sparse((self._length,), np.uint8, before))
        wider[:before] = memoryview(self.buffer)[:before]
        for (known, _), (start, *_) in zip(pieces, found, strict=True):
            for place, data in known:
                wider[start + place : start + place + len(data)] = data
        self.buffer = wider
        return found


def stretches(rows: "Exchanges", *, records: bool = False) -> list[tuple[int, int]]:
    """The exchanges of a batch in ranges of about `PARTITIONS_AT_ONCE` partitions, by the size of their messages. With
    `records`, a range is also limited to as many records, by their batches, and to so many bytes missing from the arena that
    they fit in memory once more. A range has at least one exchange. Topics count as partitions."""
    count, keys = rows.carried("partition_count"), rows.number("api_key")
    sizes = sum(rows.number(f"{side}_bytes").filled(0) for side in SIDES)
    room = np.where(np.isin(keys.filled(-1), list(KEYS)), sizes // PARTITION_BYTES_MIN, 0)
    topics = (sizes - rows.carried("records_bytes").filled(0)).clip(0) // TOPIC_BYTES
    each = np.where(count.mask(), np.maximum(count.values, topics), room)
    if records:
        each = each + rows.carried("record_count").filled(0).clip(0, PARTITIONS_AT_ONCE)
    again = np.zeros(len(each), np.int64)
    for side in SIDES:
        size, slot = rows.number(f"{side}_bytes").filled(0), rows.number(f"{side}_slot").filled(NO_BODY)
        again += np.where((size > FRAME_GATHERED_MAX) | (slot < NO_BODY), size, 0)
    steps = np.diff(np.cumsum(each) // PARTITIONS_AT_ONCE) + np.diff(np.cumsum(again) // REREAD_AT_ONCE_BYTES)
    cuts = np.flatnonzero(steps) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(each)]))


CLAIMED_FACTOR: Final = 16
"""Bytes of room for large bodies per byte of the first one: a message may end long before its stated size."""
Body = tuple[int, int, int]
"""Program, exchange, side."""
Spots = tuple["Int64s", "Int64s", "Int64s"]
"""Positions in the projection of the batch, the entries that are not there, and their positions in the other projection."""
HEADED: Final = 0, 1 << 2
"""Formats of records, as bits, whose batch headers state the number of records: none, and magic 2."""


def pieces_of(values: BodyValues | None, *, records: bool) -> Pieces:
    """The known pieces of a carried body; nothing if they are not sufficient. `records`: the records are needed too."""
    if values is None:
        return ()
    if not values.passed:
        return (0, values.data), (len(values.data), b"")
    return values.excerpts if not records and values.values[slots.MAGICS] in HEADED else ()


def body_start(frame: bytes, side: int, header_version: int | None) -> int:
    """Where a program begins to read: after the fixed header (see `decode.programs`)."""
    if side == RESPONSE:
        return 4
    if not header_version:
        return 8
    return 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))


def column_of(projection: Projection, at: int) -> "Int64s":
    """A column of `slots.ELEMENTS` as an array."""
    # array.array has `long long`, which for code that compares numpy's type codes is another type.
    found: Int64s = np.asarray(projection.elements[at], np.int64).view(np.int64)
    return found


NO_PROJECTION: Final = project(b"", [], [], [], engine="plain")
NO_ENTRIES: Final = np.zeros(0, np.int64)
NO_TOPICS: Final[Any] = ((NO_ENTRIES, []), (NO_ENTRIES, []))
"""Numbers and distinct values of topic names and topic ids, for no topics."""


class Pairs:
    """The partitions of a batch, one entry each."""

    def __init__(self, bodies: PartitionBodies) -> None:
        self.bodies = bodies
        spots = bodies.spots(bodies.places)
        low, high, partition = (bodies.elements(at, spots) for at in (slots.GROUP_START, slots.GROUP_END, slots.PARTITION))
        (names, self.names), (ids, self.ids) = bodies.topics(spots)
        groups, self.groups = encoded(bodies.pool, low, high)
        middle = int(np.searchsorted(bodies.sides[bodies.of_body], RESPONSE))
        keys = np.array([names, ids, groups, partition])
        pairs = compiled_pairs if kernels.worthwhile(PAIR_NS * len(partition)) else pairs_of
        self.row, entries = pairs(bodies.rows[bodies.of_body], middle, keys)
        self._there, self._entries = entries >= 0, np.maximum(entries, 0)
        self._spots = [bodies.spots(bodies.places[some]) for some in self._entries] if len(partition) else []
        self.name = self._either(names)
        """Number of the topic's name in `names`, -1 for none."""
        self.uuid = self._either(ids)
        self.group = self._either(groups)

    def __len__(self) -> int:
        return len(self.row)

    def value(self, name: str, side: int) -> Vector:
        """The values of one side in a column of the side buffer."""
        if not len(self):
            return nothing(0)
        values = self.bodies.elements(slots.ELEMENT_AT[name], self._spots[side])
        valid = self._there[side] & (values != slots.NOTHING)
        return Vector(values, valid if name in MINUS_ONE_COUNTS else valid & (values != -1))

    def span(self, start: int, side: int) -> "Int64s":
        """A position in the buffer that the element of one side has, -1 for none."""
        if not len(self):
            return NO_ENTRIES
        found: Int64s = np.where(self._there[side], self.bodies.elements(start, self._spots[side]), -1)
        return found

    def body_end(self, side: int) -> "Int64s":
        """The end in the buffer of the body with the element of one side, -1 for none."""
        return self._of_side(self.bodies.ends[self.bodies.of_body], side)

    def _either(self, numbers: "Int64s") -> "Int64s":
        requests, responses = (self._of_side(numbers, side) for side in (REQUEST, RESPONSE))
        found: Int64s = np.where(requests >= 0, requests, responses)
        return found

    def _of_side(self, numbers: "Int64s", side: int) -> "Int64s":
        """For each pair the number of one side's entry, -1 for none."""
        if not len(self):
            return NO_ENTRIES
        found: Int64s = np.where(self._there[side], numbers.take(self._entries[side]), -1)
        return found


def pairs_of(rows: "Int64s", middle: int, keys: "Int64s") -> "tuple[Int64s, Int64s]":
    """Exchange of each pair, and its entries of the request and of the response, -1 for none, as two rows.

    `rows` are the exchanges of the entries, in order both for the requests, which end before entry `middle`, and for the
    responses. `keys` are the numbers of their names, ids, groups and partitions, one row each.
    """
    waiting: defaultdict[tuple[int, ...], deque[int]] = defaultdict(deque)
    pairs: list[list[int]] = []
    for entry, key in enumerate(zip(rows.tolist(), *keys.tolist())):
        if key[-1] == slots.NOTHING:  # a message may end before the partition's number
            continue
        if entry < middle:
            waiting[key].append(len(pairs))
            pairs.append([key[0], entry, -1])
        elif waiting[key]:
            pairs[waiting[key].popleft()][2] = entry
        else:
            pairs.append([key[0], -1, entry])
    table = np.array(sorted(pairs, key=itemgetter(0)), np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1:].T


def compiled_pairs(rows: "Int64s", middle: int, keys: "Int64s") -> "tuple[Int64s, Int64s]":
    """The same by a kernel."""
    from kcap.table.pair_kernels import pair

    size, room = len(rows), 2 << middle.bit_length()
    row, at = np.empty(size, np.int64), np.empty((2, size), np.int64)
    count = pair(rows, middle, keys, row, at, np.empty((2, room), np.int64), np.empty(size, np.int64), kernels.SEED)
    return row[:count], at[:, :count]


PAIR_NS: Final = 1_500
"""Processor time per entry in `pairs_of`, in ns."""
