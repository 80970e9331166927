"""Which bodies of a batch need not be decoded, because a filter drops their rows by what headers and frames tell.

In: a filter, the columns asked for, batches whose bodies are not projected. Out: the slots of bodies that nobody will look at.
Law: the rows that pass are the same, value by value.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.analyzer import RowBatch
from kcap.arrays.vectors import Vector
from kcap.columns import Column
from kcap.facts.topic_names import naming_apis
from kcap.facts.tracker import FETCH, TEACHES
from kcap.filter.ast import And, Filter, columns_of, is_deep
from kcap.row_columns import RowColumns
from kcap.table.exchanges import LEARNED, ExchangeTable
from kcap.table.row_filter import Read, RowFilter

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

HEADER: Final = frozenset(
    {
        "time", "capture", "response_capture", "connection", "exchange", "client_ip", "client_port", "server_ip",
        "server_port", "api", "api_key", "api_version", "client_id", "correlation_id", "tls", "outcome", "reason",
        "request_bytes", "response_bytes", "request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns",
        "request_first_packet", "request_last_packet", "response_first_packet", "response_last_packet",
        "request_last_capture", "response_last_capture", "request_pos", "request_end_pos", "response_pos",
        "response_end_pos", "latency_ns", "rtt_ns", "queue_ns", "service_ns", "request_transfer_ns", "transfer_ns",
        "age_ns", "stream", "removed_in", "deprecated_in",
    }
)  # fmt: skip
"""Columns that are told without a body."""
MUTES: Final = frozenset({"long_poll_ns", "throttle_ns", "muted_ns"})
"""Columns in which every answer of a connection counts, for its throttle time."""


def header_part(tree: Filter) -> Filter | None:
    """What of a filter headers and frames decide: rows that do not pass it do not pass the filter."""
    if isinstance(tree, And):
        left, right = header_part(tree.left), header_part(tree.right)
        return And(left, right) if left is not None and right is not None else left or right
    return tree if HEADER.issuperset(columns_of(tree)) and not is_deep(tree) else None


def names_topics(keys: Vector) -> "Int64s":
    """Rows whose messages may tell what a topic id is called; Fetch among them, for the sake of KRaft's log."""
    known = (keys.values >= 0) & (keys.values < len(NAMES)) & keys.mask()
    return np.flatnonzero(NAMES[np.where(known, keys.values, 0)] & known)


def _names() -> "Bools":
    found = np.zeros(len(TEACHES), np.bool_)
    found[[*naming_apis(), FETCH]] = True
    return found


NAMES: Final = _names()
"""API key -> whether its exchanges may tell the name of a topic id."""


class PushDown:
    """A filter's header part over batches without bodies."""

    def __init__(self, tree: Filter, columns: Sequence[Column], reading: Read) -> None:
        """`columns` are all that will be made."""
        names = {column.name for column in columns}
        self._sieve = RowFilter(tree, reading)
        self._table = ExchangeTable(self._sieve.columns, reading.capture_files)
        self._teaches = not names.isdisjoint(LEARNED)
        self._topics = "topics" in names
        self._sides = ("request",) if not names.isdisjoint(MUTES) else ("request", "response")

    def unwanted(self, batch: RowBatch) -> "Int64s":
        """Slots of bodies that nobody will look at."""
        parts = RowColumns(batch)
        keys = parts.number("api_key")
        idle = keys.mask() & (keys.values >= 0) & (keys.values < len(TEACHES))
        key = np.where(idle, keys.values, 0)
        if self._teaches:
            idle &= ~TEACHES[key]
        if self._topics:
            idle &= ~NAMES[key]
        idle[self._sieve.rows(self._table.turn(batch), None)] = False
        slots = np.concatenate([parts.number(f"{side}_slot").values[idle] for side in self._sides])
        found: Int64s = slots[slots >= 0]
        return found
