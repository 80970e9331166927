"""Collects the bodies of frames and projects them, a batch at a time.

In: byte ranges with the program that reads them. Out: one buffer with spans, projected when the batch closes. A request whose
exchange is decided in a later batch retains its projected values; a response that waits for its request has its bytes until
their batch is known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap.decode import slots
from kcap.decode.interpreter import MALFORMED, SHORT
from kcap.decode.programs import program_index, with_partitions
from kcap.decode.projection import Engine, Projection, Resumable, project, project_some
from kcap.faults import Fault, fault_of
from kcap.kafka.body_topics import NO_TOPICS, BodyTopics, topics_of
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from kcap.limits import FRAME_HEAD_KEPT, OVERTAKEN_BODY_BYTES, PARTITIONS_PROJECTED_MAX, TOPICS_CARRIED_BYTES
from kcap.model import Buffer
from kcap.schema.quirks import response_version

if TYPE_CHECKING:
    from kcap.kafka.deferred_bodies import DeferredBodies
    from kcap.kafka.waiting_bodies import WaitingBodies

REQUEST, RESPONSE = 0, 1
API_VERSIONS = 18
UNKNOWN = -1
"""No program: of a response until its request is found, or of a version that no release has."""

WORDS = {SHORT: "out of bytes", MALFORMED: "malformed"}

_TEXTS = len(slots.SLOTS)
_SPAN: Final = 3
"""Numbers of an entry of `State.wrapped`."""
NO_TEXTS: Final[tuple[bytes | None, ...]] = (None,) * len(slots.TEXTS)
Spans = Sequence[Sequence[int]]
"""Of one message's entries in a side buffer of the projection: the columns behind the first."""
Pieces = tuple[tuple[int, bytes], ...]
"""(place, bytes) of what is known of a body, and behind it its size with no bytes; empty where nothing is."""


class BodyValues(NamedTuple):
    """The projection of one body; a tuple, since each request that waits for a later batch has one."""

    status: int
    mask: int
    values: tuple[int, ...]
    texts: tuple[bytes | None, ...]
    topics: BodyTopics
    data: bytes = b""
    """The body's bytes, where bodies are retained."""
    fault: Fault | None = None
    """The failure of the projection on this body."""
    excerpts: Pieces = ()
    """Of a large body, where bodies are retained: all that is no record."""
    cut: bool = False
    """It has topics which are not kept, since too many waited with it."""
    passed: bool = False
    """The frame was read as it passed: there are more bytes than `data` and `excerpts` have."""


@dataclass(frozen=True, slots=True)
class BodyBatch:
    """A closed batch. A slot from 0 on is body `dense[slot]` of the projection, or none; one below NO_BODY is in `carried`
    or `waiting`."""

    arena: Buffer
    starts: Sequence[int]
    ends: Sequence[int]
    dense: Sequence[int]
    """Slot -> message of the projection, -1 for a body that no program reads."""
    projection: Projection
    carried: dict[int, BodyValues]
    keep: bool = False
    """Carried bodies retain their bytes."""
    partitioned: bool = False
    """The projection has the partitions of all its messages, but for Metadata's."""
    room: Any = None
    """The bytes of the arena and free ones behind them, as numpy's uint8[n], where there are any. What is put there stays until
    something else is."""
    waiting: "WaitingBodies | None" = None
    """Bodies that earlier batches of the fast path carried; none of them is damaged."""

    def unread(self) -> dict[int, str]:
        """Slots of truncated and malformed bodies, each with which of the two it is."""
        status = self.projection.status
        found = {at: WORDS[int(status[at])] for at in positions(status, WORDS)} | self.projection.faults
        slots_of = {int(self.dense[slot]): slot for slot in positions(self.dense, found)} if found else {}
        carried = {number: v.fault or WORDS[v.status] for number, v in self.carried.items() if v.status in WORDS}
        return {slots_of[at]: word for at, word in found.items()} | carried

    def values(self, slot: int) -> BodyValues | None:
        """All projected values of one body; None where no program read it."""
        if slot < NO_BODY:
            return carried_values(self.carried, self.waiting, slot)
        at = int(self.dense[slot]) if slot >= 0 else -1
        if at < 0:
            return None
        projection = self.projection
        topics, wrapped = (
            [column[bisect_left(messages, at) : bisect_right(messages, at)] for column in parts]
            for messages, *parts in (projection.topics, projection.wrapped)
        )
        status, mask, *row = (int(column[at]) for column in (projection.status, projection.mask, *projection.values))
        return self._values(at, status, mask, tuple(row), topics, wrapped, int(self.starts[slot]), int(self.ends[slot]))

    def several(self, wanted: Any) -> "Iterator[BodyValues | None]":
        """`values` of some slots from 0 on, of a batch that was projected by the compiled engine."""
        projection: Any = self.projection
        if not len(wanted) or not len(projection.status):  # no program read any of them
            return iter([None] * len(wanted))
        at = self.dense[wanted]
        spans = self.starts[wanted].tolist(), self.ends[wanted].tolist()
        numbers = projection.status[at].tolist(), projection.mask[at].tolist()
        rows = zip(*(column[at].tolist() for column in projection.values))
        every = zip(at.tolist(), *numbers, rows, _spans(projection.topics, at), _spans(projection.wrapped, at), *spans)
        return (None if place < 0 else self._values(place, *known) for place, *known in every)

    def _values(
        self, at: int, status: int, mask: int, row: tuple[int, ...], topics: Spans, wrapped: Spans, start: int, end: int
    ) -> BodyValues:  # fmt: skip
        """Message `at` of the projection, whose body is `arena[start:end]`, with its status, mask and numbers, the spans of
        its topics and of its wrapped messages.
        """
        arena, fault = self.arena, self.projection.faults.get(at)
        try:
            if len(wrapped[0]):  # their records are none of those that the projection counts
                count = row[slots.RECORD_COUNT] + _in_wrapped(arena, zip(*wrapped), end)
                row = *row[: slots.RECORD_COUNT], count, *row[slots.RECORD_COUNT + 1 :]
        except Exception as error:  # noqa: BLE001 - what else the message says stays
            fault, status = fault_of(error), MALFORMED
        texts = NO_TEXTS
        if mask >> _TEXTS and max(row[_TEXTS::2]) >= 0:
            texts = tuple(_slice(arena, row[_TEXTS + 2 * i], row[_TEXTS + 2 * i + 1]) for i in range(len(NO_TEXTS)))
        data = bytes(arena[start:end]) if self.keep or end - start <= OVERTAKEN_BODY_BYTES else b""
        return BodyValues(status, mask, row, texts, topics_of(arena, *topics), data, fault)

    def token(self, slot: int) -> BodyValues | None:
        """A raw SASL token, which no program reads; None where it is too large to retain."""
        data = bytes(self.arena[self.starts[slot] : self.ends[slot]])
        nothing = (0,) * slots.WIDTH, NO_TEXTS, NO_TOPICS
        return BodyValues(UNKNOWN, 0, *nothing, data) if len(data) <= OVERTAKEN_BODY_BYTES else None


def carried_values(carried: dict[int, BodyValues], waiting: "WaitingBodies | None", slot: int) -> BodyValues | None:
    """The values of a carried body; None where it is in neither table."""
    found = carried.get(slot)
    return waiting.values(slot) if found is None and waiting is not None else found


def positions(values: Sequence[int], wanted: Collection[int]) -> list[int]:
    """Where a column has one of some values."""
    if isinstance(values, list):
        some = frozenset(wanted)
        return [at for at, value in enumerate(values) if value in some]
    import numpy as np

    column = np.asarray(values)
    few = len(wanted) <= len(WORDS)  # `isin` sorts the column
    nowhere = np.zeros(len(column), np.bool_)
    found = reduce(or_, (column == value for value in wanted), nowhere) if few else np.isin(column, list(wanted))
    places: list[int] = found.nonzero()[0].tolist()
    return places


def _spans(columns: Any, at: Any) -> Iterator[Spans]:
    """What a table of entries, ordered by message, has of each of these messages."""
    messages, *parts = columns
    first, counts = (found.tolist() for found in entries_of(messages, at))
    none = [()] * len(parts)
    return ([part[low : low + count].tolist() for part in parts] if count else none for low, count in zip(first, counts))


def entries_of(owners: Any, messages: Any) -> tuple[Any, Any]:
    """Where the entries of these messages begin in a table that is ordered by message, and how many each has."""
    import numpy as np

    owners = np.asarray(owners)
    wanted = messages.astype(owners.dtype)  # or all owners would be converted
    first = owners.searchsorted(wanted)
    return first, owners.searchsorted(wanted, "right") - first


def places_of(first: Any, counts: Any) -> Any:
    """The places of runs of entries, from where each begins and how many it has."""
    import numpy as np

    return np.repeat(first - counts.cumsum() + counts, counts) + np.arange(counts.sum())


def _in_wrapped(data: Buffer, spans: Iterable[Sequence[int]], end: int) -> int:
    """Records of these compressed messages of magic 0 and 1, whose body ends at `end`."""
    from kcap.records.record_sets import count_wrapped  # hardly a capture has them, and its modules take time to import

    return sum(count_wrapped(data, low, high, end) for low, high in spans)


def _slice(arena: Buffer, start: int, end: int) -> bytes | None:
    return None if start < 0 else bytes(arena[start:end])


def resumed(index: int, head: bytearray, low: int, *, counted: bool, light: bool) -> Resumable | None:
    """The resumable reader of a frame's body, fed with `head[low:]`; None without a program. `counted`: with the records in
    compressed messages of magic 0 and 1; `light`: none where it holds more than half of the first bytes, for then it would do
    so to the end.
    """
    if index < 0:
        return None
    reader = Resumable(index)
    reader.whole = bytearray() if counted else None
    first = low + (FRAME_HEAD_KEPT if light else 0)
    fed(reader, memoryview(head)[low:first])
    if light and reader.held - len(reader.whole or b"") > FRAME_HEAD_KEPT // 2:
        return None
    fed(reader, memoryview(head)[first:])
    return reader


def fed(reader: Resumable, data: Buffer) -> None:
    """Feeds a reader; what it holds stays small but for a compressed message of magic 0 or 1, whose records are counted once it
    has passed.
    """
    reader.feed(data)
    if reader.whole is None:
        del reader.state.wrapped[_SPAN:]  # that there is one is enough
    else:
        _count_passed(reader, reader.whole)


def _count_passed(reader: Resumable, data: bytearray) -> None:
    """Counts the records in compressed messages that have passed, and lets their bytes go."""
    spans, shift, counted = reader.state.wrapped, reader.shift, 0
    passed = shift + len(data)
    while counted < len(spans) and spans[counted + 2] <= passed:
        low, high = spans[counted + 1] - shift, spans[counted + 2] - shift
        counted += _SPAN
        try:
            reader.counted += _in_wrapped(data, [(low, high)], len(data))
        except Exception as error:  # noqa: BLE001 - what else the message says stays
            reader.fault = fault_of(error)
    del spans[:counted]
    reader.shift = min(spans[1] if spans else passed, reader.read if reader.state.status == SHORT else passed)
    del data[: reader.shift - shift]


def values_of(reader: Resumable, excerpts: Pieces = ()) -> BodyValues:
    """The values of a body that was read as it passed, and its excerpts. Where compressed messages of magic 0 and 1 were not
    stored, their records cannot be counted, so the number of its records is then null.
    """
    found, kept = reader.result(), reader.kept
    if reader.whole is not None:
        _count_passed(reader, reader.whole)
    row = [int(column[0]) for column in found.values]
    status, mask = int(found.status[0]), int(found.mask[0])
    if reader.whole is None and len(found.wrapped[0]):
        mask &= ~(1 << slots.RECORD_COUNT)
    row[slots.RECORD_COUNT] += reader.counted
    if reader.fault is not None:
        status = MALFORMED
    texts = tuple(_slice(kept, row[_TEXTS + 2 * i], row[_TEXTS + 2 * i + 1]) for i in range(len(NO_TEXTS)))
    _, starts, ends, ids = found.topics
    topics = topics_of(kept, starts, ends, ids)
    return BodyValues(status, mask, tuple(row), texts, topics, fault=reader.fault, excerpts=excerpts, passed=True)


def projected(
    arena: Buffer,
    starts: Any,
    ends: Any,
    programs: Any,
    carried: dict[int, BodyValues],
    *,
    compiled: bool,
    keep: bool = False,
    partitions: bool = False,
    room: Any = None,
) -> BodyBatch:
    """Bodies in one buffer, projected; UNKNOWN for bodies that no program reads. With `compiled` the numbers are arrays, else
    lists. `partitions`: with their partitions, unless these are very many. `room`: as of `BodyBatch`.
    """
    dense: Any
    spans: tuple[Any, ...]
    if compiled:
        import numpy as np

        here = programs >= 0
        dense = np.where(here, np.cumsum(here) - 1, -1)
        spans = (starts, ends, programs) if here.all() else (starts[here], ends[here], programs[here])
    else:
        read = [at for at, index in enumerate(programs) if index >= 0]
        dense = [-1] * len(programs)
        for number, at in enumerate(read):
            dense[at] = number
        spans = [starts[at] for at in read], [ends[at] for at in read], [programs[at] for at in read]
    engine: Engine = "jit" if compiled else "auto"
    projection = _with_partitions(arena, spans, engine) if partitions else None
    found = project(arena, *spans, engine=engine) if projection is None else projection
    return BodyBatch(arena, starts, ends, dense, found, carried, keep, projection is not None, room)


def _with_partitions(arena: Buffer, spans: tuple[Any, ...], engine: Engine) -> Projection | None:
    """The projection with all partitions; None where there are too many. `spans`: starts, ends and programs."""
    starts, ends, programs = spans
    every: Any = list(map(with_partitions, programs)) if isinstance(programs, list) else mapped(programs, with_partitions)
    return project_some(arena, starts, ends, every, PARTITIONS_PROJECTED_MAX, engine=engine)


def mapped(numbers: Any, make: Callable[[int], int]) -> Any:
    """What a function gives for each of an array of small numbers from 0 on, called once for each different one."""
    import numpy as np

    made = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    made[numbers] = 1
    some = np.flatnonzero(made)
    made[some] = [make(number) for number in some.tolist()]
    return made.take(numbers)


class BodyCollector:
    """The open batch."""

    def __init__(self) -> None:
        self.arena = bytearray()
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.programs: list[int] = []
        self.owners: list[PendingExchange | PendingResponse] = []
        """The owner of each slot; the slot is free once the owner's `slot` changes."""
        self.carried: dict[int, BodyValues] = {}
        self.waiting: WaitingBodies | None = None
        """Carried bodies of the fast path, but for those in `carried`."""
        self.keep = False
        """Bodies of outstanding requests retain their bytes from batch to batch."""
        self.records = False
        """So do the records in large bodies."""
        self.partitions = False
        """Bodies are projected with their partitions."""
        self.large_bytes = 0
        """Bytes of the large frames that ended in this batch."""
        self.topic_bytes = self.fresh_topics = 0
        """Memory of the topics of all carried bodies; how many those of this batch have."""
        self.early_bytes = 0
        """Memory of the responses of all connections that wait for their requests."""
        self.outstanding = 0
        """Requests that wait on the reference path, of the connections that have many."""
        self.gathered_bytes = 0
        """Memory of the unfinished frames of all framers, of those that hold much."""
        self.searched_bytes = 0
        """Stream bytes that the resyncs of all framers hold."""
        self.shared: Callable[[int], Any] | None = None
        """Makes arenas of some size that another process sees, which projects the batches (`kcap.kafka.deferred_bodies`); None
        where this one does."""
        self._settled: set[int] = set()
        self._next_carried = NO_BODY - 1

    def retain(self, *, records: bool, partitions: bool = False) -> None:
        """Retains bodies from now on; the `records` in large ones too. `partitions` are projected with them."""
        self.keep = True
        self.records |= records
        self.partitions |= partitions

    def add(self, buffer: Buffer, low: int, high: int, index: int, owner: PendingExchange | PendingResponse) -> int:
        """Adds a body to the batch; returns its slot."""
        arena = self.arena
        self.starts.append(len(arena))
        arena += buffer[low:high]
        self.ends.append(len(arena))
        self.programs.append(index)
        self.owners.append(owner)
        return len(self.starts) - 1

    def settle_response(self, response: PendingResponse, api_key: int, api_version: int) -> int:
        """The exchange of a response is decided, which gives its body a program; returns the slot and frees it of its owner."""
        body = response.body
        slot = self.forget_response(response)
        if body is not None:
            slot = self.add(body, 0, len(body), UNKNOWN, response)
        if slot >= 0:
            if api_key == API_VERSIONS:
                start = self.starts[slot]
                api_version = response_version(api_key, api_version, self.arena[start : start + 2])
            self.programs[slot] = program_index(api_key, api_version, RESPONSE)
        return slot

    def forget_response(self, response: PendingResponse) -> int:
        """No exchange waits for the response any more; returns the slot and frees it of its owner."""
        slot, response.slot, response.body = response.slot, NO_BODY, None
        if slot < NO_BODY:
            self._settled.add(slot)
        return slot

    def requested_bytes(self, slot: int) -> int | None:
        """The max_bytes of an outstanding fetch request; None where its version has none or its bytes are not here."""
        if slot >= 0 and self.programs[slot] >= 0:
            projection = project(self.arena, [self.starts[slot]], [self.ends[slot]], [self.programs[slot]], engine="plain")
            return projection.column("max_bytes")[0]
        values = carried_values(self.carried, self.waiting, slot)
        if values is None or not values.mask >> slots.SLOT["max_bytes"] & 1:
            return None
        return values.values[slots.SLOT["max_bytes"]]

    def bytes_of(self, slot: int) -> bytes:
        """The bytes of an outstanding request's body; empty where they were not retained."""
        if slot >= 0:
            return bytes(self.arena[self.starts[slot] : self.ends[slot]])
        values = self.carried.get(slot)
        return b"" if values is None else values.data

    def settle(self, exchange: PendingExchange) -> int:
        """The exchange is decided; returns the slot of its request and frees it of its owner."""
        slot = exchange.request_slot
        if slot != NO_BODY:
            exchange.request_slot = NO_BODY
            if slot < NO_BODY:
                self._settled.add(slot)
        return slot

    def leave_out(self, slots: Iterable[int]) -> None:
        """Leaves these bodies of decided exchanges out of the projection."""
        for slot in slots:
            self.programs[slot] = UNKNOWN

    def projected(self) -> "BodyBatch | DeferredBodies":
        """The open batch, projected."""
        spans = self.arena, self.starts, self.ends, self.programs
        if self.shared is not None:
            from kcap.kafka.deferred_bodies import DeferredBodies

            return DeferredBodies(*spans, self.carried, partitions=self.partitions)
        return projected(*spans, self.carried, compiled=False, partitions=self.partitions)

    def settle_carried(self, slots: Iterable[int]) -> None:
        """Frees carried bodies whose values rows of the fast path took."""
        self._settled.update(slots)

    def next_slots(self, count: int) -> int:
        """Slots for carried bodies: the first, which is the lowest one."""
        self._next_carried -= count
        return self._next_carried + 1

    def carry(self, values: BodyValues) -> int:
        """Carries values for an outstanding request of the fast path; returns their slot."""
        slot = self.next_slots(1)
        if values.topics and self.topic_bytes + values.topics.bytes_held > TOPICS_CARRIED_BYTES:
            values = values._replace(topics=NO_TOPICS, cut=True)
        self.topic_bytes += values.topics.bytes_held
        self.fresh_topics += len(values.topics)
        self.carried[slot] = values
        return slot

    def carry_large(self, reader: Resumable, size: int, excerpts: Pieces) -> int:
        """Carries the values of a large frame of which `size` bytes came, and its excerpts; returns their slot."""
        self.large_bytes += size
        return self.carry(values_of(reader, excerpts))

    def close(self, batch: "BodyBatch | DeferredBodies | None" = None) -> Any:
        """Projects the batch, unless the fast path projected it with its own bodies, and starts the next one."""
        of_fast_path = batch is not None
        batch = batch or self.projected()
        batch = replace(batch, keep=self.keep, waiting=self.waiting)
        owners, settled = self.owners, self._settled
        self.arena, self.starts, self.ends, self.programs, self.owners = bytearray(), [], [], [], []
        self.carried = batch.carried.copy()
        for number in settled:
            left = self.carried.pop(number, None)
            self.topic_bytes -= 0 if left is None else left.topics.bytes_held
        if self.waiting is not None:
            self.waiting = self.waiting.without(settled)
        self._settled, self.large_bytes, self.fresh_topics = set(), 0, 0
        waiting: dict[int, PendingExchange] = {}
        for slot, owner in enumerate(owners):
            if type(owner) is PendingExchange:
                if owner.request_slot == slot:
                    owner.request_slot = NO_BODY
                    waiting[slot] = owner
            elif type(owner) is PendingResponse and owner.slot == slot:
                owner.slot, owner.body = NO_BODY, bytes(batch.arena[batch.starts[slot] : batch.ends[slot]])
        found: Iterable[BodyValues | None]
        if of_fast_path:
            import numpy as np

            found = batch.several(np.array([*waiting], np.int64))
        else:
            found = map(batch.values, waiting)
        for (slot, owner), values in zip(waiting.items(), found):
            known = batch.token(slot) if owner.token else values
            if known is not None:
                owner.request_slot = self.carry(known)
        return batch
