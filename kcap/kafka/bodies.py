"""Collects the bodies of frames, a batch at a time.

In: byte ranges with the program that reads them. Out: a `BodyBatch` when the batch closes. If the exchange of a request is
decided in a later batch, the request's projected values are carried to it. The bytes of a response that waits for its request
are stored until it is known to which batch they belong.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kcap.decode import slots
from kcap.decode.programs import program_index
from kcap.decode.projection import Resumable, project
from kcap.kafka.body_batch import BodyBatch, carried_values, projected
from kcap.kafka.body_topics import NO_TOPICS
from kcap.kafka.body_values import RESPONSE, UNKNOWN, BodyValues, Pieces, values_of
from kcap.kafka.frames import NO_BODY, PendingExchange, PendingResponse
from kcap.limits import TOPICS_CARRIED_BYTES
from kcap.model import Buffer
from kcap.schema.quirks import API_VERSIONS, response_version

if TYPE_CHECKING:
    from kcap.kafka.deferred_bodies import DeferredBodies
    from kcap.kafka.waiting_bodies import WaitingBodies


class BodyCollector:
    """The open batch."""

    def __init__(self) -> None:
        self.arena = bytearray()
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.programs: list[int] = []
        self.owners: list[PendingExchange | PendingResponse] = []
        """The owner of each slot; the slot is freed when the owner's `slot` changes."""
        self.carried: dict[int, BodyValues] = {}
        self.waiting: WaitingBodies | None = None
        """Carried bodies of the fast path, except those in `carried`."""
        self.keep = False
        """Whether bodies of outstanding requests retain their bytes from batch to batch."""
        self.records = False
        """Whether the records in large bodies are retained too."""
        self.partitions = False
        """Whether bodies are projected with their partitions."""
        self.large_bytes = 0
        """Bytes of the large frames that ended in this batch."""
        self.topic_bytes = self.fresh_topics = 0
        """Memory of the topics of all carried bodies; number of topics that were added in this batch."""
        self.early_bytes = 0
        """Memory of the responses of all connections that wait for their requests."""
        self.outstanding = 0
        """Number of requests that wait on the reference path, for the connections that have many."""
        self.gathered_bytes = 0
        """Memory of the incomplete frames of all framers that hold much."""
        self.searched_bytes = 0
        """Stream bytes that the resyncs of all framers hold."""
        self.shared: Callable[[int], Any] | None = None
        """Makes arenas of a given size that are shared with another process, which projects the batches
        (`kcap.kafka.deferred_bodies`). None if this process projects them."""
        self._settled: set[int] = set()
        self._next_carried = NO_BODY - 1

    def retain(self, *, records: bool, partitions: bool = False) -> None:
        """Retains bodies from now on; with `records`, also those in large ones. `partitions`: these are projected too."""
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
        """The exchange of a response is decided, and so is the body's program. Returns the slot and clears it in the
        response."""
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
        """No exchange waits for the response any more. Returns the slot and clears it in the response."""
        slot, response.slot, response.body = response.slot, NO_BODY, None
        if slot < NO_BODY:
            self._settled.add(slot)
        return slot

    def requested_bytes(self, slot: int) -> int | None:
        """The max_bytes of an outstanding fetch request; None if its version has no such field or its bytes are not here."""
        if slot >= 0 and self.programs[slot] >= 0:
            projection = project(self.arena, [self.starts[slot]], [self.ends[slot]], [self.programs[slot]], engine="plain")
            return projection.column("max_bytes")[0]
        values = carried_values(self.carried, self.waiting, slot)
        if values is None or not values.mask >> slots.SLOT["max_bytes"] & 1:
            return None
        return values.values[slots.SLOT["max_bytes"]]

    def bytes_of(self, slot: int) -> bytes:
        """The bytes of an outstanding request's body; empty if they were not retained."""
        if slot >= 0:
            return bytes(self.arena[self.starts[slot] : self.ends[slot]])
        values = self.carried.get(slot)
        return b"" if values is None else values.data

    def settle(self, exchange: PendingExchange) -> int:
        """The exchange is decided. Returns the slot of its request and clears it in the exchange."""
        slot = exchange.request_slot
        if slot != NO_BODY:
            exchange.request_slot = NO_BODY
            if slot < NO_BODY:
                self._settled.add(slot)
        return slot

    def leave_out(self, slots: Iterable[int]) -> None:
        """Excludes these bodies of decided exchanges from the projection."""
        for slot in slots:
            self.programs[slot] = UNKNOWN

    def projected(self) -> "BodyBatch | DeferredBodies":
        """The open batch, projected, or to be projected by another process."""
        spans = self.arena, self.starts, self.ends, self.programs
        if self.shared is not None:
            from kcap.kafka.deferred_bodies import DeferredBodies

            return DeferredBodies(*spans, self.carried, partitions=self.partitions)
        return projected(*spans, self.carried, compiled=False, partitions=self.partitions)

    def settle_carried(self, slots: Iterable[int]) -> None:
        """Frees carried bodies whose values were taken by rows of the fast path."""
        self._settled.update(slots)

    def next_slots(self, count: int) -> int:
        """Reserves `count` slots for carried bodies; returns the lowest one."""
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
        """Carries the values and excerpts of a large frame, of which `size` bytes were received; returns their slot."""
        self.large_bytes += size
        return self.carry(values_of(reader, excerpts))

    def close(self, batch: "BodyBatch | DeferredBodies | None" = None) -> Any:
        """Closes the batch, which is projected unless the fast path did so with its own bodies, and starts the next one."""
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
