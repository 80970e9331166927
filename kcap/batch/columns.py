"""One batch of decided exchanges as columns, from its rows and bodies, without any fact of other exchanges.

In: a `RowBatch`. Out: vectors with one entry per row; each is made when it is first needed. Law: a column depends only on the
rows and bodies of the batch. Nothing refers back to this object, so that bodies are freed with the last reference to it.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.analyzer import RowBatch
from kcap.arrays.vectors import Vector
from kcap.batch.bodies import Messages, SideColumns
from kcap.batch.constants import Constants
from kcap.batch.failures import Report, report_failure
from kcap.batch.rows import RowColumns, SelectedRows
from kcap.batch.topics import TopicColumns
from kcap.identities import Identities
from kcap.kafka.frames import NO_BODY

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

KEYS, VERSIONS = 128, 32
"""Bounds of tables by API key and version; no release has larger numbers."""
SIDES: Final = ("request", "response")


class BatchColumns:
    """The columns of a batch, or of some rows of one."""

    def __init__(self, batch: RowBatch, *, many: bool = False, rows: RowColumns | None = None) -> None:
        """`many`: most parts of the rows will be needed. `rows`: the selected rows; all of the batch by default."""
        self.batch = batch
        self.rows = RowColumns(batch, many=many) if rows is None else rows
        self.size = self.rows.size
        self.array, self.number = self.rows.array, self.rows.number

    def select(self, places: "Int64s") -> "BatchColumns":
        return BatchColumns(self.batch, rows=SelectedRows(self.rows, places))

    @property
    def identities(self) -> Identities:
        """The connections that `number("identity")` refers to."""
        return self.batch.identities

    @property
    def constants(self) -> Constants:
        """The same as columns."""
        return self.rows.constants

    def is_outcome(self, name: str) -> "Bools":
        """True for rows with this outcome."""
        known, numbers = self.rows.codes("outcome")
        found: Bools = np.array([text == name for text in known] or [False], np.bool_)[numbers]
        return found

    # -- latency and its parts ----------------------------------------------------------------------------------------
    @cached_property
    def latency(self) -> Vector:
        """From the request's last byte to the response's first, ns."""
        difference = self.number("response_first_ns").minus(self.number("request_last_ns"))
        return difference.where(self.is_outcome("answered"))

    @cached_property
    def backwards(self) -> "Bools":
        """Rows whose response was captured before its request: their latency has no parts."""
        latency = self.latency
        return latency.mask() & (latency.values < 0)

    @cached_property
    def rtt(self) -> Vector:
        """The part of the latency that is a round trip on the network, ns."""
        known, latency = self.number("rtt_min_ns"), self.latency.where(~self.backwards)
        return Vector(np.minimum(known.values, latency.values), known.mask() & latency.mask())

    @cached_property
    def queue(self) -> Vector:
        """The part of the latency in which the broker still processed an earlier request of the connection, ns."""
        latency, previous, rtt = self.latency.where(~self.backwards), self.number("previous_ns"), self.rtt.filled()
        waited = np.where(previous.mask(), previous.values - self.number("request_last_ns").values - rtt, 0)
        return Vector(np.clip(waited, 0, np.maximum(latency.values - rtt, 0)), latency.valid)

    @cached_property
    def service(self) -> Vector:
        """The rest of the latency, ns."""
        return Vector(self.latency.values - self.rtt.filled() - self.queue.values, self.queue.valid)

    # -- bodies -------------------------------------------------------------------------------------------------------
    @cached_property
    def messages(self) -> Messages:
        return Messages(self.batch.bodies, [self.number(f"{side}_slot").values for side in SIDES])

    @cached_property
    def request(self) -> SideColumns:
        return SideColumns(self.messages, self.number("request_slot").values)

    @cached_property
    def response(self) -> SideColumns:
        return SideColumns(self.messages, self.number("response_slot").values)

    @cached_property
    def topics(self) -> TopicColumns:
        return TopicColumns(self.messages, self.request, self.response, self.size)

    @cached_property
    def error_code(self) -> Vector:
        """The first error of the response; if it was not read to its end, the outermost error, unless that is 0."""
        top = self.response.slot("top_error_code")
        return self.response.slot("error_code").otherwise(top.where(top.values != 0))

    @cached_property
    def throttle(self) -> Vector:
        """Throttle time in milliseconds; null if Kafka's value is -1."""
        found = self.response.slot("throttle_time_ms")
        return found.where(found.values >= 0)

    def report_uncounted(self, report: Report | None) -> None:
        """Reports messages whose records could not be counted, if columns of messages were made."""
        made: Messages | None = vars(self).get("messages")
        for message, fault in made.faults.items() if made is not None else ():
            for side in (self.request, self.response):
                for at in np.flatnonzero(side.index == message).tolist():
                    report_failure(report, self.batch, at, "records", fault)

    @cached_property
    def _spans(self) -> "list[Int64s]":
        """Starts and ends of all bodies in the arena, with one more entry for no body."""
        return [np.append(np.asarray(column, np.int64), 0) for column in (self.batch.bodies.starts, self.batch.bodies.ends)]

    def spans(self, slots: "Int64s") -> "tuple[Int64s, Int64s]":
        """Start and end of bodies in the arena, by slot; for a body of an earlier batch, the start is its slot."""
        here = slots >= 0
        starts, ends = (column[np.where(here, slots, 0)] for column in self._spans)
        return np.where(here, starts, slots), ends

    def body(self, start: int, end: int) -> bytes:
        """The body of a span; empty where its bytes were not retained."""
        bodies = self.batch.bodies
        if start >= 0:
            return bytes(memoryview(bodies.arena)[start:end])
        values = bodies.carried.get(start) if start < NO_BODY else None
        return b"" if values is None else values.data

    # -- API and version ----------------------------------------------------------------------------------------------
    @cached_property
    def calls(self) -> tuple["Int64s", list[int]]:
        """For each row, the index of its API and version, and the codes of these; the index after the last one means none.

        A code is key * VERSIONS + version. An API or version that no release has gets the last code, which no release has
        either.
        """
        key, version = self.number("api_key"), self.number("api_version")
        codes = np.minimum(key.values, KEYS - 1) * VERSIONS + np.minimum(version.values, VERSIONS - 1)
        here = (key.values >= 0) & (version.values >= 0) & key.mask() & version.mask()
        codes = np.where(here, codes, KEYS * VERSIONS)
        known = np.flatnonzero(np.bincount(codes, minlength=KEYS * VERSIONS)[: KEYS * VERSIONS])
        number = np.full(KEYS * VERSIONS + 1, len(known))
        number[known] = np.arange(len(known))
        return number.take(codes), known.tolist()
