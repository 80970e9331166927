"""The table `partitions`: one row per topic partition of an exchange that concerns partitions.

In: batches of exchanges whose bodies are retained. Out: columns of the table. Law: a partition that a request and its response
both name is one row. Rows are in the order of the request, followed by those that only the response names. Each value is the
wire's.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.arrays.arrow import Array, Coded
from kcap.arrays.vectors import Vector
from kcap.batch.bodies import encoded
from kcap.batch.columns import BatchColumns
from kcap.batch.failures import Report, report_cut, report_failure
from kcap.decode import slots
from kcap.facts.fetch_positions import Positions, keeps
from kcap.facts.tracker import MetadataTracker, Reread
from kcap.faults import Fault
from kcap.limits import PARTITIONS_OF_MESSAGE
from kcap.schema.registry import REQUEST, RESPONSE, api_key
from kcap.table.batch_headers import COLUMNS as FACTS
from kcap.table.batch_headers import BatchFacts
from kcap.table.exchanges import ERROR_BASE, ERROR_NAMES, Made
from kcap.table.partition_pairs import Pairs, PartitionBodies
from kcap.table.schema import TYPES, columns_of
from kcap.weird import WeirdKind
from kcap.wire.text import name_text

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

PRODUCE, FETCH = api_key("Produce"), api_key("Fetch")
LEADER: Final = "leader_id"
OF_RECORDS: Final = frozenset({"crc_ok", "plain_bytes"})
"""Columns for which the records are read; the others need only the header of a record batch."""
RESPONSE_ONLY: Final = (
    "base_offset", "high_watermark", "last_stable_offset", "log_start_offset", LEADER, "delivery_count",
)  # fmt: skip
"""Columns that only a response has."""
EITHER: Final = ("partition", "committed_offset", "timestamp_ms", "leader_epoch")
"""Columns of the response, or of the request if the response lacks them."""


class Partitions:
    """The partitions of one batch as columns; shared intermediate results are computed once."""

    def __init__(
        self,
        columns: BatchColumns,
        tracker: MetadataTracker,
        positions: Positions,
        reread: Reread,
        *,
        listed: bool = False,
        records: bool = True,
        between: tuple[int, int] | None = None,
    ) -> None:
        """`listed`: includes the partitions that Metadata lists. `records`: columns `OF_RECORDS` are needed. `between`: as for
        `PartitionBodies`. Takes fetch sessions into `positions`."""
        self._columns, self._tracker = columns, tracker
        self.pairs = Pairs(PartitionBodies(columns, reread, listed=listed, records=records, between=between))
        cut = self.pairs.bodies.cut
        report_cut(tracker.report, columns.batch, cut, WeirdKind.PARTITIONS_LIMIT, "partitions", PARTITIONS_OF_MESSAGE)
        self._fetch_offset = self._positioned(positions)

    def column(self, name: str) -> Made:
        made = MAKERS[name](self)
        return made.to_arrow(KINDS[name]) if isinstance(made, Vector) else made

    # -- the exchange -------------------------------------------------------------------------------------------------
    def number(self, name: str) -> Vector:
        return self._columns.number(name).take(self.pairs.row)

    def connection(self) -> Coded:
        """Uid of the connection."""
        return self._columns.constants.text("uid").take(self.number("identity").values)

    def time(self) -> Made:
        """Time of the first byte of the request, or of the response if there is no request."""
        first = self.number("request_first_ns").otherwise(self.number("response_first_ns"))
        made: Any = Vector(first.values // 1000, first.valid).to_arrow(pa.int64())
        found: Array = made.view(KINDS["time"])
        return found

    # -- the partition ------------------------------------------------------------------------------------------------
    def either(self, name: str) -> Vector:
        """A column of the response, or of the request."""
        return self.pairs.value(name, RESPONSE).otherwise(self.pairs.value(name, REQUEST))

    def responded(self, name: str) -> Vector:
        """A column of the response."""
        return self.pairs.value(name, RESPONSE)

    def error_code(self) -> Vector:
        """The error. For a ShareFetch response with records and no error, that of the acknowledgements in its request."""
        code, refused = self.responded("error_code"), self.responded("acknowledge_error")
        return refused.where(refused.values != 0).where(code.values == 0).otherwise(code)

    def error(self) -> Coded:
        """Kafka's name of the error."""
        code = self.error_code()
        return ERROR_NAMES.take(np.where(code.mask(), code.values - ERROR_BASE, -1))

    def topic(self) -> Coded:
        """The topic name in the message, or the name of its topic id as the capture reports it."""
        pairs = self.pairs
        uuids = [self._tracker.topic_name(text) for text in self._uuids]
        known = pa.array([*(name_text(name) for name in pairs.names), *uuids, None], pa.string())
        last = len(known) - 1
        by_id = np.where(pairs.uuid >= 0, pairs.uuid + len(pairs.names), last)
        return Coded(known, np.where(pairs.name >= 0, pairs.name, by_id))

    @cached_property
    def _uuids(self) -> list[str]:
        return [urlsafe_b64encode(uuid)[:22].decode() for uuid in self.pairs.ids]

    def topic_id(self) -> Coded:
        """The topic id in the form in which Kafka prints uuids."""
        known = pa.array([*self._uuids, None], pa.string())
        return Coded(known, np.where(self.pairs.uuid >= 0, self.pairs.uuid, len(known) - 1))

    def group(self) -> Coded:
        """The group of the partition's entry, or else of the message."""
        columns, groups = self._columns, self.pairs.groups
        of_row, texts = np.full(len(columns.batch), -1, np.int64), [name_text(name) for name in groups]
        for side in (columns.response, columns.request):  # the request's group counts
            rows, starts, ends = side.texts("group_id")
            here = starts >= 0
            numbers, names = encoded(columns.messages.pool, starts[here], ends[here])
            of_row[rows[here]] = numbers + len(texts)
            texts += map(name_text, names)
        places = np.where(self.pairs.group >= 0, self.pairs.group, of_row[self.pairs.row])
        return Coded(pa.array([*texts, None], pa.string()), np.where(places >= 0, places, len(texts)))

    def _positioned(self, positions: Positions) -> Vector:
        """`fetch_offset`, taken from the fetch session if the request does not name the partition."""
        pairs, requested = self.pairs, self.pairs.value("fetch_offset", REQUEST)
        request = self._columns.request
        session, epoch = request.slot("session_id"), request.slot("session_epoch")
        answered = self._columns.response.slot("session_id")
        in_session = session.mask() & epoch.mask()
        places = np.flatnonzero(in_session[pairs.row] & (self.number("api_key").values == FETCH))
        if not len(places):
            return requested
        values, valid = requested.values.copy(), requested.mask().copy()
        rows = pairs.row[places]
        cuts = np.flatnonzero(np.diff(rows, prepend=-1))
        exchanges = rows[cuts]
        uids = self._columns.constants.uids
        links = self._columns.number("identity").values[exchanges].tolist()
        columns = (*(column.values[exchanges].tolist() for column in (session, epoch)), answered.take(exchanges).to_list())
        keys, offsets, named_here = self._keys(places), values[places].tolist(), valid[places].tolist()
        whole = np.logical_and.reduceat(valid[places], cuts).tolist()
        highs = [*cuts[1:].tolist(), len(places)]
        for low, high, link, all_named, session_id, number, given in zip(cuts.tolist(), highs, links, whole, *columns):
            if not keeps(number, given):  # the offsets are those of the request
                positions.fetched(uids[link], session_id, number, {}, given)
                continue
            if all_named:  # most requests name all partitions of their response
                positions.fetched(uids[link], session_id, number, dict(zip(keys[low:high], offsets[low:high])), given)
                continue
            named = {keys[at]: offsets[at] for at in range(low, high) if named_here[at]}
            held = positions.fetched(uids[link], session_id, number, named, given)
            for at in range(low, high):
                if not named_here[at] and keys[at] in held:
                    values[places[at]], valid[places[at]] = held[keys[at]], True
        return Vector(values, valid)

    def _keys(self, places: "Int64s") -> list[tuple[bytes, int]]:
        """Topic, as on the wire, and number of some partitions."""
        pairs, numbers = self.pairs, self.either("partition").values[places].tolist()
        names = [*pairs.names, *pairs.ids, b""]
        by_id = np.where(pairs.uuid[places] >= 0, pairs.uuid[places] + len(pairs.names), len(names) - 1)
        topics = np.where(pairs.name[places] >= 0, pairs.name[places], by_id).tolist()
        return list(zip(map(names.__getitem__, topics), numbers, strict=True))

    def fetch_offset(self) -> Vector:
        """The offset from which the Fetch reads."""
        return self._fetch_offset

    # -- its records --------------------------------------------------------------------------------------------------
    @cached_property
    def _spans(self) -> tuple["Int64s", "Int64s", "Bools"]:
        """Start and end of each row's records, -1 for none, and which of them are truncated in the capture. The records of a
        Produce are in its request, all others in the response."""
        pairs = self.pairs
        produced = self.number("api_key").values == PRODUCE
        starts, ends = (
            np.where(produced, pairs.span(at, REQUEST), pairs.span(at, RESPONSE))
            for at in (slots.RECORDS_START, slots.RECORDS_END)
        )
        # A truncated message lacks bytes that it announces, although other bodies follow it in the buffer.
        body_end = np.where(produced, pairs.body_end(REQUEST), pairs.body_end(RESPONSE))
        cut = ends > body_end
        return np.where(cut & (starts >= body_end), -1, starts), np.minimum(ends, body_end), cut

    @cached_property
    def _facts(self) -> BatchFacts:
        # `failed` must not refer to this object: it would retain the batch's bodies until Python's collector runs.
        failed = partial(report_fault, self._tracker.report, self._columns.batch, self.pairs.row)
        return BatchFacts(self.pairs.bodies.buffer, *self._spans[:2], failed=failed)

    def of_batches(self, name: str) -> Made:
        """A fact of the records."""
        return self._facts.column(name, KINDS[name])

    def plain_bytes(self) -> Made:
        """Uncompressed size of the batches of each Produce."""
        produced = self.number("api_key").values == PRODUCE
        return self._facts.plain_bytes(produced).to_arrow(pa.int64())

    def lag(self) -> Vector:
        """High watermark less the offset after the fetched records, or less the fetch offset if there are none; null if the
        capture does not have all of the records."""
        high = self.responded("high_watermark").where((self.number("api_key").values == FETCH) & ~self._spans[2])
        return high.minus(self._facts.next_offset.otherwise(self._fetch_offset))


def report_fault(report: Report | None, batch: RowBatch, rows: "Int64s", place: int, error: Exception | Fault) -> None:
    """Reports that the records of a partition could not be read; `rows` are the exchanges of the partitions."""
    report_failure(report, batch, int(rows[place]), "records of a partition", error)


KINDS: Final = {column.name: TYPES[column.type] for column in columns_of("partitions").values()}
Maker = Callable[[Partitions], Made | Vector]
MAKERS: Final[dict[str, Maker]] = {
    "connection": Partitions.connection,
    "exchange": lambda made: made.number("exchange"),
    "time": Partitions.time,
    "api_key": lambda made: made.number("api_key"),
    "group_id": Partitions.group,
    "topic": Partitions.topic,
    "topic_id": Partitions.topic_id,
    "error_code": Partitions.error_code,
    "error": Partitions.error,
    "fetch_offset": Partitions.fetch_offset,
    "plain_bytes": Partitions.plain_bytes,
    "lag": Partitions.lag,
    **{name: partial(Partitions.responded, name=name) for name in RESPONSE_ONLY},
    **{name: partial(Partitions.either, name=name) for name in EITHER},
    **{name: partial(Partitions.of_batches, name=name) for name in FACTS if name in KINDS},
}
"""How each column is made."""
