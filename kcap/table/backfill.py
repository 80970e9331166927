"""Facts of the whole capture for rows that were made before they were known.

In: record batches of `exchanges`, made with what was known by then, and the learner that goes on learning. Out: the same rows,
with broker ids, cluster ids, names of topics and verdicts as the end of the capture knows them. Law: what is put in depends on
the row and on the learner's last state alone; nothing else of a row changes. Memory is flat: what waits, waits on disk.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import Array, coded, nulls, raw, take
from kcap.columns import EXCHANGES, Column
from kcap.facts.brokers import Server
from kcap.facts.tracker import MetadataTracker
from kcap.facts.version_verdicts import NONE, OK, UNNEGOTIATED, VERDICTS, final_verdict
from kcap.limits import HELD_ROWS

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.table.row_filter import RowFilter

COPIED_AT_ONCE: Final = 1 << 20
SERVER: Final = ("server_ip", "server_port")
COMPANIONS: Final[dict[str, tuple[str, ...]]] = {
    "broker_id": SERVER,
    "cluster_id": SERVER,
    "topics": ("topic_ids",),
    "version_verdict": (*SERVER, "api_key", "api_version", "software_name", "software_version"),
}
"""Columns that the whole capture may know better -> the columns that say of whom."""


def companions(columns: Sequence[Column]) -> list[Column]:
    """Columns that must be made beside the ones asked for, so that these can be looked at again; those asked for come first."""
    names = [column.name for column in columns]
    wanted = {name for asked in names for name in COMPANIONS.get(asked, ())}
    return [*columns, *(column for column in EXCHANGES if column.name in wanted and column.name not in names)]


def needs_backfill(columns: Sequence[Column]) -> bool:
    """Whether any column may be known better at the end."""
    return any(column.name in COMPANIONS for column in columns)


def backfill(batch: pa.RecordBatch, learner: MetadataTracker, judged: "VerdictCache | None" = None) -> pa.RecordBatch:
    """A batch as the learner knows it by now; `judged` keeps verdicts from batch to batch for one that learns no more."""
    rows = _Rows(batch, learner, VerdictCache() if judged is None else judged)
    for name, make in MAKERS.items():
        if name in batch.schema.names:
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, batch.schema.field(at), make(rows))
    return batch


VerdictCache = dict[tuple[Any, ...], str | None]
"""Verdict as it was, server, API, version, library and its version -> verdict as it is known to be."""


@dataclass(slots=True)
class _Rows:
    """Rows that are looked at again, and who knows more of them."""

    batch: pa.RecordBatch
    learner: MetadataTracker
    judged: VerdictCache
    _servers: "tuple[Int64s, list[tuple[str, int]]] | None" = None

    @property
    def servers(self) -> "tuple[Int64s, list[tuple[str, int]]]":
        """Server of each row by number, and those."""
        if self._servers is None:
            hosts, names = coded(self.batch.column("server_ip"))
            column: Any = self.batch.column("server_port")
            ports: Int64s = column.to_numpy(zero_copy_only=False).astype(np.int64)
            number, known = _distinct(hosts.astype(np.int64) << 16 | ports)
            self._servers = number, [(names[code >> 16], code & 0xFFFF) for code in known]
        return self._servers


def _distinct(codes: "Int64s") -> "tuple[Int64s, list[int]]":
    """Entries as numbers of the distinct ones, and those."""
    number, known = coded(pa.array(codes))
    return number.astype(np.int64), known


def _of_server(part: int, kind: pa.DataType) -> Callable[[_Rows], Array]:
    def make(rows: _Rows) -> Array:
        number, servers = rows.servers
        values = [rows.learner.brokers.identify(server)[part] for server in servers]
        return take(pa.array(values, kind), number) if any(v is not None for v in values) else nulls(len(number), kind)

    return make


def _topics(rows: _Rows) -> Array:
    batch, topics = rows.batch, cast(Any, rows.batch.column("topics"))
    if not topics.flatten().null_count:
        same: Array = topics
        return same
    names: list[Any] = topics.to_pylist()
    every: list[Any] = batch.column("topic_ids").to_pylist()
    known = rows.learner.topics.names
    for row, ids in enumerate(every):
        if names[row] is not None and None in names[row]:
            names[row] = [name if name is not None else known.get(uuid) for name, uuid in zip(names[row], ids)]
    made: Array = pa.array(names, topics.type)
    return made


def _verdicts(rows: _Rows) -> Array:
    """Rows that are alike are judged once."""
    number, servers = rows.servers
    code: Int64s = number
    parts: list[list[Any]] = [[*servers]]
    for name in ("version_verdict", "api_key", "api_version", "software_name", "software_version"):
        column: Any = rows.batch.column(name)
        encoded = column.dictionary_encode("encode")  # null is one of the values
        parts.append(encoded.dictionary.to_pylist())
        code = code * max(len(parts[-1]), 1) + raw(encoded.indices, np.int32)
    kind, kinds = _distinct(code)
    found: list[str | None] = []
    for one in kinds:
        values: list[Any] = []
        for known in reversed(parts):
            one, at = divmod(one, max(len(known), 1))
            values.append(known[at])
        asked = tuple(values)
        if asked not in rows.judged:
            rows.judged[asked] = _judged(rows.learner, *asked)
        found.append(rows.judged[asked])
    return take(pa.array(found, pa.string()), kind)


def _judged(
    learner: MetadataTracker, release: str, name: str | None, version: int, key: int | None, text: str | None, whom: Server
) -> str | None:
    verdict = PLACES[text]
    if key is not None and verdict in (OK, UNNEGOTIATED, NONE):
        software = None if name is None else (name, release)
        verdict = final_verdict(verdict, learner.offers.get(whom), key, version, learner.used, software)
    return None if verdict == NONE else VERDICTS[verdict]


PLACES: Final = {verdict: at for at, verdict in enumerate(VERDICTS)} | {None: NONE}
MAKERS: Final[dict[str, Callable[[_Rows], Array]]] = {
    "broker_id": _of_server(0, pa.int32()),
    "cluster_id": _of_server(1, pa.string()),
    "topics": _topics,
    "version_verdict": _verdicts,
}


def waited(
    batches: Iterable[pa.RecordBatch], finish: Callable[[pa.RecordBatch], pa.RecordBatch], held: int = HELD_ROWS
) -> Iterator[pa.RecordBatch]:
    """The batches, looked at again once the last of them came; above `held` rows they wait in a file that nobody else sees."""
    waiting: list[pa.RecordBatch] = []
    ipc: Any = pa.ipc
    with tempfile.TemporaryFile(prefix="kcap-") as file:
        stream: Any = None
        for batch in batches:
            if stream is None and held > 0:
                waiting.append(batch)
                held -= batch.num_rows
                continue
            stream = stream or ipc.new_stream(file, batch.schema)
            stream.write_batch(batch)
        while waiting:
            yield finish(waiting.pop(0))
        if stream is not None:
            stream.close()
            file.seek(0)
            for batch in ipc.open_stream(file):
                yield finish(batch)


def leading(batches: Iterable[pa.RecordBatch], learner: MetadataTracker, held: int = HELD_ROWS) -> Iterator[pa.RecordBatch]:
    """The batches; the first `held` rows are looked at again before they leave."""
    waiting: list[pa.RecordBatch] = []
    source = iter(batches)
    for batch in source:
        waiting.append(batch)
        held -= batch.num_rows
        if held <= 0:
            break
    better = learner.knows_better()
    while waiting:
        batch = waiting.pop(0)
        yield backfill(batch, learner) if better else batch
        del batch
    if better:
        learner.settle()
    yield from source


def chosen(
    names: Sequence[str], learner: MetadataTracker, sieve: "RowFilter | None" = None
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Looks at a batch again, lets rows pass that a filter does, and leaves out the columns that nobody asked for."""

    judged = VerdictCache()

    def finish(batch: pa.RecordBatch) -> pa.RecordBatch:
        if learner.knows_better():
            batch = backfill(batch, learner, judged)
        if sieve is not None:
            batch = sieve.passed(batch)
        picked: pa.RecordBatch = batch.select(names)
        return picked

    return finish


@contextmanager
def taken_back(sink: Any) -> Iterator[BinaryIO | None]:
    """What a file holds that is being written, moved aside; the file is empty then. None where it cannot be read."""
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
    from pyarrow.parquet import ParquetFile

    parquet: Any = ParquetFile(file)
    yield from parquet.iter_batches(batch_size=1 << 13)
