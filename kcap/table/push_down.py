"""Push-down of a filter: which bodies need no decoding, because headers and frames show that their rows do not pass.

In: a filter, the facts that columns need, batches whose bodies are not projected. Out: the slots of such bodies. Law: the
selected rows are the same, value by value.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.analyzer import RowBatch
from kcap.batch.columns import BatchColumns
from kcap.facts.topic_names import naming_apis
from kcap.facts.tracked_rows import IS_TRACKED
from kcap.facts.tracker import FROM_MESSAGES, Fact, no_context
from kcap.filter.ast import And, Filter, columns_of, is_deep
from kcap.kafka.headers import FETCH
from kcap.table.exchanges import Exchanges, NameColumn
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
        "age_ns", "in_flight", "stream", "removed_in", "deprecated_in",
    }
)  # fmt: skip
"""Columns that need no body."""


def header_part(tree: Filter) -> Filter | None:
    """The part of a filter that headers and frames decide: rows that do not pass it do not pass the filter."""
    if isinstance(tree, And):
        left, right = header_part(tree.left), header_part(tree.right)
        return And(left, right) if left is not None and right is not None else left or right
    return tree if HEADER.issuperset(columns_of(tree)) and not is_deep(tree) else None


def _names() -> "Bools":
    found = np.zeros(len(IS_TRACKED), np.bool_)
    found[[*naming_apis(), FETCH]] = True
    return found


NAMES: Final = _names()
"""API key -> whether its messages may have names of topic ids."""


class PushDown:
    """Evaluates a filter's header part on batches without bodies."""

    def __init__(self, tree: Filter, needs: Fact, reading: Read) -> None:
        """`needs` are the facts of all columns that will be built."""
        self._filter = RowFilter(tree, reading)
        self._files = NameColumn([file.name for file in reading.capture_files])
        self._messages = bool(needs & FROM_MESSAGES)
        self._topics = Fact.TOPICS in needs
        self._sides = ("request",) if Fact.MUTES in needs else ("request", "response")

    def unwanted(self, batch: RowBatch) -> "Int64s":
        """Slots of bodies that need no decoding."""
        columns = BatchColumns(batch)
        keys = columns.number("api_key")
        idle = keys.mask() & (keys.values >= 0) & (keys.values < len(IS_TRACKED))
        key = np.where(idle, keys.values, 0)
        if self._messages:
            idle &= ~IS_TRACKED[key]
        if self._topics:
            idle &= ~NAMES[key]
        idle[self._filter.places(Exchanges(columns, no_context(columns.size), self._files))] = False
        slots = np.concatenate([columns.number(f"{side}_slot").values[idle] for side in self._sides])
        found: Int64s = slots[slots >= 0]
        return found
