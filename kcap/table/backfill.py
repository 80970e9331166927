"""Backfills facts of the whole capture into rows that were made before these facts were known.

In: record batches of `exchanges`, `partitions` or `records`, and the tracker at the end of the capture. Out: the same rows with
broker ids, cluster ids, topic names and verdicts as the tracker has them then. Law: a backfilled value depends only on its row
and the tracker's final state; nothing else of a row changes. Memory is flat: waiting rows are on disk.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import (
    Array,
    absent,
    as_schema,
    coalesced,
    coded,
    filled,
    flattened,
    lists,
    nulls,
    numbers,
    parquet_file,
    take,
    with_texts,
)
from kcap.columns import Column
from kcap.facts.brokers import Server
from kcap.facts.offer_history import OfferedBy
from kcap.facts.tracker import MetadataTracker
from kcap.facts.version_verdicts import NONE, VERDICTS, final_verdict
from kcap.limits import COPIED_AT_ONCE, HELD_ROW_BYTES, HELD_ROWS
from kcap.table.schema import columns_of

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

SERVER: Final = ("server_ip", "server_port")
COMPANIONS: Final[dict[str, tuple[str, ...]]] = {
    "broker_id": SERVER,
    "cluster_id": SERVER,
    "cluster_brokers": SERVER,
    "topics": ("topic_ids",),
    "version_verdict": (*SERVER, "request_first_ns", "api_key", "api_version", "software_name", "software_version"),
    "topic": ("topic_id",),
}
"""Columns that facts of the whole capture may change -> the columns by which these facts are looked up."""
PARTS_OF_EXCHANGES: Final = ("partitions", "records")
BACKFILLED: Final = ("exchanges", *PARTS_OF_EXCHANGES)
"""Tables with such columns."""


class Backfill(Enum):
    """When rows leave whose values later facts may change."""

    WAIT = auto()
    """At the end of the capture, with all facts."""
    AS_KNOWN = auto()
    """At once, with the facts known so far."""
    REWRITE = auto()
    """The first HELD_ROWS rows wait for each other. The caller rewrites all rows if the tracker knows more at the end."""


def companions(table: str, columns: Sequence[Column]) -> list[Column]:
    """The columns, followed by those that a backfill of them needs."""
    names = [column.name for column in columns]
    wanted = {name for selected in names for name in COMPANIONS.get(selected, ())} if table in BACKFILLED else ()
    return [*columns, *(column for name, column in columns_of(table).items() if name in wanted and name not in names)]


def needs_backfill(table: str, columns: Sequence[Column], children: Sequence[str] = ()) -> bool:
    """Whether facts of the whole capture may change a column."""
    return table in BACKFILLED and (bool(children) or any(column.name in COMPANIONS for column in columns))


Labelled = tuple[str, pa.RecordBatch]
"""Label of a table in a set of them, and some of its rows."""
VerdictCache = dict[tuple[Any, ...], str | None]
"""Verdict so far, server with the offer that counts, API, version, library and its version -> final verdict."""


class Backfiller:
    """Backfills what a tracker knows now. Valid until the tracker observes more."""

    def __init__(self, tracker: MetadataTracker) -> None:
        self.tracker = tracker
        self.verdicts: VerdictCache = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the present facts."""
        schema = batch.schema
        batch = as_schema(batch, with_texts(schema, coded=False))
        rows = _Rows(batch, self)
        for name, make in MAKERS.items():
            at = batch.schema.get_field_index(name)
            if at >= 0 and all(companion in batch.schema.names for companion in COMPANIONS.get(name, ())):
                batch = batch.set_column(at, batch.schema.field(at), make(rows))
        return as_schema(batch, schema)


class _Rows:
    """The rows of one batch during a backfill."""

    def __init__(self, batch: pa.RecordBatch, filler: Backfiller) -> None:
        self.batch, self.tracker, self.verdicts = batch, filler.tracker, filler.verdicts

    def column(self, name: str) -> Any:
        return self.batch.column(name)

    @cached_property
    def servers(self) -> "tuple[Int64s, list[Server]]":
        """Number of each row's server, and the servers."""
        hosts, names = coded(self.column("server_ip"))
        ports: Int64s = self.column("server_port").to_numpy(zero_copy_only=False).astype(np.int64)
        number, known = _distinct(hosts.astype(np.int64) << 16 | ports)
        return number, [(names[code >> 16], code & 0xFFFF) for code in known]

    def requested_ns(self) -> "Int64s":
        """Times of the requests, 0 for null."""
        made: Int64s = filled(self.column("request_first_ns"), 0).to_numpy(zero_copy_only=False)
        return made


def _distinct(codes: "Int64s") -> "tuple[Int64s, list[int]]":
    """Entries as numbers of the distinct ones, and the distinct ones."""
    number, known = coded(numbers(pa.int64(), codes, None))
    return number.astype(np.int64), known


def _of_server(part: int, kind: pa.DataType) -> Callable[[_Rows], Array]:
    def make(rows: _Rows) -> Array:
        number, servers = rows.servers
        values = [rows.tracker.brokers.facts(server)[part] for server in servers]
        return take(pa.array(values, kind), number) if any(v is not None for v in values) else nulls(len(number), kind)

    return make


def named(names: Any, ids: Any, known: MetadataTracker) -> Array:
    """Topic names, with those of known ids in place of nulls."""
    if not names.null_count:
        same: Array = names
        return same
    some, uuids = coded(ids, nulls_too=True)
    found = pa.array([known.topics.names.get(uuid) for uuid in uuids], pa.string())
    return coalesced(names, take(found, some))


def _topics(rows: _Rows) -> Array:
    topics = rows.column("topics")
    names = flattened(topics)
    if not names.null_count:
        same: Array = topics
        return same
    return _relist(topics, named(names, flattened(rows.column("topic_ids")), rows.tracker))


def _children(name: str) -> Callable[[_Rows], Array]:
    """Backfills the topics of a list column of partitions or records."""

    def make(rows: _Rows) -> Array:
        column = rows.column(name)
        if not pa.types.is_list(column.type):  # the column `records` of `partitions` is a count
            same: Array = column
            return same
        structs = column.flatten()
        parts = dict(zip((field.name for field in structs.type), structs.flatten()))
        parts["topic"] = named(parts["topic"], parts["topic_id"], rows.tracker)
        return _relist(column, pa.StructArray.from_arrays(list(parts.values()), fields=list(structs.type)))

    return make


def _relist(column: Any, values: Any) -> Array:
    """A list column with other entries."""
    offsets: Any = column.offsets.to_numpy()
    made = lists((offsets - offsets[0]).astype(np.int32), values, absent(column))
    return made if made.type == column.type else made.cast(column.type)


def _verdicts(rows: _Rows) -> Array:
    """The column `version_verdict`, with one look-up for all equal rows."""
    number, servers = rows.servers
    code, offered = rows.tracker.offers.of_rows(number, servers, rows.requested_ns)
    parts: list[list[Any]] = [[*offered]]
    for name in ("version_verdict", "api_key", "api_version", "software_name", "software_version"):
        some, known = coded(rows.column(name), nulls_too=True)
        parts.append(known)
        code = code * max(len(known), 1) + some
    kind, kinds = _distinct(code)
    found: list[str | None] = []
    for one in kinds:
        values: list[Any] = []
        for known in reversed(parts):
            one, at = divmod(one, max(len(known), 1))
            values.append(known[at])
        key = tuple(values)
        if key not in rows.verdicts:
            rows.verdicts[key] = _final(rows.tracker, *key)
        found.append(rows.verdicts[key])
    return take(pa.array(found, pa.string()), kind)


def _final(
    tracker: MetadataTracker, release: str, name: str | None, version: int, key: int | None, text: str | None, by: OfferedBy
) -> str | None:
    verdict = PLACES[text]
    if key is not None:
        software, (server, offer) = None if name is None else (name, release), by
        common = tracker.offers.common(server)
        verdict = final_verdict(verdict, offer, common, key, version, used=tracker.used, software=software)
    return None if verdict == NONE else VERDICTS[verdict]


PLACES: Final = {verdict: at for at, verdict in enumerate(VERDICTS)} | {None: NONE}
MAKERS: Final[dict[str, Callable[[_Rows], Array]]] = {
    "broker_id": _of_server(0, pa.int32()),
    "cluster_id": _of_server(1, pa.string()),
    "cluster_brokers": _of_server(2, pa.int32()),
    "topics": _topics,
    "version_verdict": _verdicts,
    "topic": lambda rows: named(rows.column("topic"), rows.column("topic_id"), rows.tracker),
    **{name: _children(name) for name in PARTS_OF_EXCHANGES},
}


def rows_held(batch: pa.RecordBatch) -> int:
    """How much of HELD_ROWS a batch counts for: a row may have a list of thousands of topics."""
    return max(batch.num_rows, batch.nbytes // HELD_ROW_BYTES)


def waited(
    batches: Iterable[pa.RecordBatch], finisher: Callable[[], Callable[[pa.RecordBatch], pa.RecordBatch]], held: int = HELD_ROWS
) -> Iterator[pa.RecordBatch]:
    """The batches, backfilled once the last one is there; beyond `held` rows they wait in an unnamed file."""
    waiting: list[pa.RecordBatch] = []
    ipc: Any = pa.ipc
    with tempfile.TemporaryFile(prefix="kcap-") as file:
        stream: Any = None
        for batch in batches:
            if stream is None and held > 0:
                waiting.append(batch)
                held -= rows_held(batch)
                continue
            stream = stream or ipc.new_stream(file, batch.schema)
            stream.write_batch(batch)
        finish = finisher()
        while waiting:
            yield finish(waiting.pop(0))
        if stream is not None:
            stream.close()
            file.seek(0)
            for batch in ipc.open_stream(file):
                yield finish(batch)


def leading(rows: Iterable[Labelled], tracker: MetadataTracker, held: int = HELD_ROWS) -> Iterator[Labelled]:
    """The rows of some tables. The first `held` ones wait for each other and are backfilled."""
    waiting: list[Labelled] = []
    source = iter(rows)
    for one in source:
        waiting.append(one)
        held -= rows_held(one[1])
        if held <= 0:
            break
    better, fill = tracker.knows_better(), Backfiller(tracker)
    while waiting:
        label, batch = waiting.pop(0)
        yield label, fill(batch) if better else batch
        del batch
    if better:
        tracker.settle()
    yield from source


@contextmanager
def taken_back(sink: Any) -> Iterator[BinaryIO | None]:
    """Moves the content of a file that is being written to another file, and empties it. None if it cannot be read."""
    try:
        number = sink.fileno()
        regular = stat.S_ISREG(os.fstat(number).st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    except (AttributeError, OSError, ValueError):
        regular = False
    if not regular:
        yield None
        return
    sink.flush()
    with tempfile.TemporaryFile(prefix="kcap-") as aside:
        size, at = os.fstat(number).st_size, 0
        while at < size and (data := os.pread(number, COPIED_AT_ONCE, at)):
            at += aside.write(data)
        aside.flush()
        aside.seek(0)
        sink.seek(0)
        sink.truncate()
        yield aside


def read_again(form: str, file: BinaryIO) -> Iterator[pa.RecordBatch]:
    """The batches of a Parquet file, an Arrow IPC file (`feather`) or an Arrow IPC stream (`arrow`)."""
    ipc: Any = pa.ipc
    if form == "arrow":
        yield from ipc.open_stream(file)
        return
    if form == "feather":
        reader = ipc.open_file(file)
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)
        return
    yield from parquet_file(file).iter_batches(batch_size=1 << 13)
