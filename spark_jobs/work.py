"""What Spark's tasks do: a range dealt out to shares, a share read into rows.

In: numbers of tasks, and chunks, as record batches. Out: record batches. Law: nothing here knows of Spark; a task that is run
again, anywhere, gives the same.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kcap.capture.chunks import unpack
from kcap.capture.folding import Stand
from kcap.capture.sharing import Dealing, Task
from kcap.capture.source import unwrap
from kcap.portion import Portion, Standing, Whole
from kcap.table.learned import Learner
from kcap.table.merging import Facts, Witness, learner_of
from kcap.weird import WeirdKind
from spark_jobs.files import Files
from spark_jobs.rows import Maker

ACCOUNT: Final = -1
"""In place of a share: the row is the account of a range."""
KINDS: Final[dict[str, pa.DataType]] = {
    "unit": pa.int32(), "share": pa.int32(), "latest": pa.int64(), "number": pa.int64(),
    "chunk": pa.binary(), "data": pa.binary(),
}  # fmt: skip
DEALT: Final = pa.schema([pa.field(name, kind) for name, kind in KINDS.items()])
"""Chunks on their way to the shares, and the accounts of ranges."""
PACKED_ROWS: Final = 2048
"""Rows that travel together: some 500 KB of them, a hundred of which Spark holds at a time."""
REDUCED: Final = pa.schema([pa.field("rows", pa.binary()), pa.field("facts", pa.binary())])
"""Batches of a share's rows; and in a row of its own what the share learned."""


@dataclass(frozen=True, slots=True)
class Deal:
    """The tasks of one round, by number."""

    paths: Sequence[str]
    tasks: Sequence[Task]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Numbers of tasks in, chunks and accounts out."""
        files = Files(self.paths)
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for number in numbers:
                yield from deal(files, self.tasks[number])


def deal(files: Files, task: Task) -> Iterator[pa.RecordBatch]:
    """One range.

    Raises CaptureError where the file cannot be read.
    """
    part, size = task.part, task.file.size or 0
    read = files.reading(part.file, part.start, size)
    truncated: list[tuple[str, int]] = []
    if task.size is None:
        read = unwrap(read, lambda detail, position: truncated.append((detail, position)))[1]
    dealing = Dealing(task, read)
    for share, chunk in dealing.chunks():
        latest, number = (int(chunk.column(name)[0]) for name in ("latest", "number"))
        yield row(part.unit, share, latest, number, chunk.pack(), chunk.data)
    account = dealing.account
    for detail, position in truncated:
        account.facts.complete = False
        dealing.walk.report(WeirdKind.COMPRESSED_TRUNCATED, detail, part.file, 0, position)
    yield row(part.unit, ACCOUNT, 0, 0, pickle.dumps(account), None)


def row(*values: Any) -> pa.RecordBatch:
    """A row of DEALT."""
    arrays = [pa.array([value], kind.type) for value, kind in zip(values, DEALT)]
    return pa.RecordBatch.from_arrays(arrays, schema=DEALT)


@dataclass(frozen=True, slots=True)
class Reduce:
    """Makes rows of shares."""

    paths: Sequence[str]
    whole: Whole
    maker: Maker
    known: Facts | None = None
    """What the capture told, where that is known before."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Chunks of a share in order, with how their ranges stand; out rows, and at last what was learned."""
        files = Files(self.paths)
        rows = standing(batches)
        first = next(rows, None)
        if first is None:
            return
        portion = Portion(self.whole, first[0], in_front(first[1], rows), files.read_at)
        learner = Learner(portion.analyzer.report) if self.known is None else learner_of(self.known)
        witness = Witness(learner)
        for made in self.maker.share(portion, learner, witness):
            for at in range(0, made.num_rows, PACKED_ROWS):
                yield reduced_row(packed(made.slice(at, PACKED_ROWS)), None)
        yield reduced_row(None, pickle.dumps(witness.close()))


def reduced_row(rows: bytes | None, facts: bytes | None) -> pa.RecordBatch:
    """A row of REDUCED."""
    return pa.RecordBatch.from_arrays([pa.array([rows], pa.binary()), pa.array([facts], pa.binary())], schema=REDUCED)


def packed(batch: pa.RecordBatch) -> bytes:
    """A record batch as bytes: on its way through Spark it costs next to nothing, as columns it costs more than to make it."""
    ipc: Any = pa.ipc
    sink: Any = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `packed` made, from the column of it."""
    ipc: Any = pa.ipc
    for batch in batches:
        every: list[Any] = batch.column(0).to_pylist()
        for data in every:
            yield from ipc.open_stream(data)


def standing(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Standing]]:
    """Shares and chunks of rows."""
    for batch in batches:
        columns: list[Any] = [batch.column(name) for name in ("share", "packets", "before", "chunk", "data")]
        for at in range(batch.num_rows):
            share, packets, before, chunk, data = (column[at].as_py() for column in columns)
            yield share, (unpack(chunk, data), Stand(packets, before))


def in_front(first: Standing, others: Iterator[tuple[int, Standing]]) -> Iterator[Standing]:
    """One more, and the others."""
    yield first
    for _, one in others:
        yield one
