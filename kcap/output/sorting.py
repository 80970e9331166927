"""Sorts rows in bounded memory.

In: record batches of one schema and the columns to sort by. Out: the same rows, sorted; equal ones remain in their order, null
comes after all values. Law: sorted runs are on disk; while they are merged, only one batch of each run is in memory.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kcap.errors import UsageError, did_you_mean
from kcap.limits import SORTED_ROWS
from kcap.table.schema import columns_of

Key = tuple[str, str]
"""A column, and `ascending` or `descending`."""
PLACE: Final = "_place"
"""Column with a row's original position, which orders equal rows."""
BATCH: Final = 1 << 13


def sort_keys(table: str, text: str) -> list[Key]:
    """`latency_ns:desc,time` or `-latency_ns,time` as keys.

    Raises UsageError for a column that the table does not have, or that cannot be sorted.
    """
    known = columns_of(table)
    keys = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, order = part.removeprefix("-").partition(":")
        if order not in ("", "asc", "desc"):
            raise UsageError(f"--sort {part!r}: the order is asc or desc")
        if name not in known:
            raise UsageError(f"--sort: {table} has no column {name!r}{did_you_mean(name, known)}")
        if known[name].type.startswith("list<"):
            raise UsageError(f"--sort: lists have no order, and {name} is one")
        keys.append((name, "descending" if order == "desc" or part.startswith("-") else "ascending"))
    if not keys:
        raise UsageError("--sort needs a column")
    return keys


def sort(batches: Iterable[pa.RecordBatch], keys: Sequence[Key], at_once: int = SORTED_ROWS) -> Iterator[pa.RecordBatch]:
    every = [*keys, (PLACE, "ascending")]
    with ExitStack() as files:
        runs: list[Any] = []
        waiting: list[pa.RecordBatch] = []
        count = total = 0
        for batch in batches:
            place = pa.array(np.arange(total, total + batch.num_rows))
            waiting.append(batch.append_column(PLACE, place))
            count += batch.num_rows
            total += batch.num_rows
            if count >= at_once:
                runs.append(_spilled(files, waiting, every))
                waiting, count = [], 0
        if waiting:
            last = ordered(pa.Table.from_batches(waiting), every)
            runs.append(iter(last.to_batches(max_chunksize=BATCH)))
        for merged in _merged(runs, every):
            yield from merged.drop_columns([PLACE]).to_batches()


def ordered(table: Any, keys: Sequence[Key]) -> Any:
    return table.take(places(table, keys))


def places(table: Any, keys: Sequence[Key]) -> Any:
    """Numbers of the rows in order."""
    import pyarrow.compute as pc

    sort_indices: Any = pc.sort_indices
    return sort_indices(table, sort_keys=list(keys))  # null comes last in both directions


def _spilled(files: ExitStack, batches: list[pa.RecordBatch], keys: Sequence[Key]) -> Iterator[pa.RecordBatch]:
    """Sorts some batches and writes them to an unnamed file."""
    file = files.enter_context(tempfile.TemporaryFile(prefix="kcap-"))  # noqa: SIM115 - the stack closes it
    ipc: Any = pa.ipc
    with ipc.new_stream(file, batches[0].schema) as stream:
        stream.write_table(ordered(pa.Table.from_batches(batches), keys), max_chunksize=BATCH)
    file.seek(0)
    return iter(ipc.open_stream(file))


def _merged(runs: list[Iterator[pa.RecordBatch]], keys: Sequence[Key]) -> Iterator[Any]:
    """Merges sorted runs. Rows before the first end of a run's batch can be written, since no later batch precedes it."""
    heads: list[Any] = [pa.Table.from_batches([head]) if (head := next(run, None)) is not None else None for run in runs]
    while live := [at for at, head in enumerate(heads) if head is not None]:
        if len(live) == 1:
            yield heads[live[0]]
            heads[live[0]] = None
            yield from (pa.Table.from_batches([batch]) for batch in runs[live[0]])
            return
        sizes = [heads[at].num_rows for at in live]
        owner = np.repeat(live, sizes)
        whole = pa.concat_tables([heads[at] for at in live])
        order = np.asarray(places(whole, keys))
        ends = np.cumsum(sizes) - 1
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        until = int(place[ends].min()) + 1
        yield whole.take(pa.array(order[:until]))
        gone = np.bincount(owner[order[:until]], minlength=len(runs))
        for at in live:
            left = heads[at].slice(int(gone[at]))
            if not left.num_rows:
                following = next(runs[at], None)
                left = None if following is None else pa.Table.from_batches([following])
            heads[at] = left
