"""Indexes rows of a table in batches by row number.

In: record batches, whose rows never change. Out: the values of some rows, the rows that pass a filter, the order of a column.
Law: results equal those over one concatenated table; only requested rows are copied; a row keeps its number when those before
it are dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, starmap, zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow._compute import CastOptions, call_function

from kcap.arrays import arrow
from kcap.arrays.arrow import TAKE
from kcap.jobs.cores import free_cores
from kcap.limits import FILTER_THREADS_LEAST_ROWS, FILTER_THREADS_MAX, MAPPED_BATCHES_AT_ONCE, PAGE_ROWS_MAX, PLACES_AT_ONCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.filter.ast import Filter
    from kcap.tui.value_codes import ValueCodes

    Numbers: TypeAlias = NDArray[np.signedinteger[Any]]
    """Row numbers, of 64 or of 32 bits; or keys that sort."""

call: Any = call_function  # by name, as in `kcap.arrays.arrow`
NOWHERE: Final = -1
NONE: Final = np.zeros(0, np.int64)
"""No rows."""
LEAST: Final = int(np.iinfo(np.int64).min)
"""The key of null."""
WIDE: Final[Any] = CastOptions.safe(pa.int64())
BYTE: Final[Any] = CastOptions.safe(pa.uint8())
SAME_WIDTH: Final = pa.int64(), pa.timestamp("us", "UTC")
"""Types whose values are stored as 64-bit integers."""


class RowIndex:
    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        schema: pa.Schema,
        first: int = 0,
        release: Callable[[], None] | None = None,
        coded: "ValueCodes | None" = None,
    ) -> None:
        """`first`: number of the first row; those before it are not held. `release` releases the pages of mapped batches.
        `coded`: returns the numbers of the values of each batch, for filters."""
        self.batches = batches
        self.schema = schema
        self.first = first
        self._release = release
        self._coded = coded
        self.starts: Numbers = np.cumsum([first, *(batch.num_rows for batch in batches)], dtype=np.int64)

    def __len__(self) -> int:
        """The number after the last row: rows from `first` on are below it."""
        return int(self.starts[-1])

    @property
    def numbers(self) -> "Numbers":
        return np.arange(self.first, len(self), dtype=np.int64)

    def holds(self, number: int | None) -> bool:
        return number is not None and self.first <= number < len(self)

    def latest(self, most: int) -> "RowIndex":
        """The index of the last rows: batches are dropped from the front while at least `most` rows remain."""
        drop = int(np.searchsorted(self.starts, len(self) - most, "right")) - 1
        return self if drop <= 0 else self._from(drop)

    def _from(self, batch: int) -> "RowIndex":
        return RowIndex(self.batches[batch:], self.schema, int(self.starts[batch]), self._release)

    def scan(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Each batch and the number of its first row; pages of mapped ones are released at intervals."""
        for at, (start, batch) in enumerate(zip(self.starts.tolist(), self.batches), 1):
            yield start, batch
            if self._release is not None and (at % MAPPED_BATCHES_AT_ONCE == 0 or at == len(self.batches)):
                self._release()

    def _places(self, numbers: "Numbers") -> "Numbers":
        """The batch of each row."""
        places: Numbers = np.searchsorted(self.starts, numbers, "right") - 1
        return places

    def take(self, numbers: "Numbers", columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by their numbers, in that order."""
        names = list(columns) if columns is not None else self.schema.names
        schema = pa.schema([self.schema.field(name) for name in names])
        if not len(numbers):
            return pa.Table.from_batches([], schema)
        places = self._places(numbers)
        if len(numbers) <= PAGE_ROWS_MAX:
            return self._page(numbers, places, schema)
        order = np.argsort(places, kind="stable")
        parts: list[Any] = []
        for group in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
            at = int(places[group[0]])
            local = numbers[group] - self.starts[at]
            batch = self.batches[at].select(names)
            if len(local) == local[-1] - local[0] + 1 and (np.diff(local) == 1).all():
                parts.append(batch.slice(int(local[0]), len(local)))
            else:
                parts.append(call("take", [batch, arrow.numbers(pa.int64(), local, None)], TAKE))
        table: Any = pa.Table.from_batches(parts, schema)
        if (np.diff(order) == 1).all():
            same: pa.Table = table
            return same
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        taken: pa.Table = table.combine_chunks().take(pa.array(back))
        return taken

    def _page(self, numbers: "Numbers", places: "Numbers", schema: pa.Schema) -> pa.Table:
        """Takes a few rows, whose batches are `places`, run by run in their order. For an order that mixes batches this takes a
        third of the time of taking the rows of each batch and sorting them afterwards."""
        ends = [*(np.flatnonzero((np.diff(numbers) != 1) | (np.diff(places) != 0)) + 1).tolist(), len(numbers)]
        columns = [self.schema.get_field_index(name) for name in schema.names]
        chosen = {at: self.batches[at].select(columns) for at in dict.fromkeys(places.tolist())}
        parts: list[pa.RecordBatch] = []
        for start, end in zip([0, *ends], ends):
            at = int(places[start])
            parts.append(chosen[at].slice(int(numbers[start] - self.starts[at]), end - start))
        table: pa.Table = pa.Table.from_batches(parts, schema).combine_chunks()
        return table

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, without copying."""
        table: pa.Table = pa.Table.from_batches(list(self.batches), self.schema)
        return table if columns is None else table.select(list(columns))

    def key(self, number: int) -> tuple[str, int]:
        """Connection and number of the exchange of a row."""
        found = self.take(np.array([number], np.int64), ["connection", "exchange"]).to_pylist()[0]
        return found["connection"], found["exchange"]

    def row(self, number: int, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """One row with all or some of its columns."""
        found: dict[str, Any] = self.take(np.array([number], np.int64), columns).to_pylist()[0]
        return found

    def passing(self, tree: "Filter", first: int = 0) -> "Numbers":
        """Numbers of the rows from `first` on that pass."""
        from kcap.filter.ast import columns_of
        from kcap.table.arrow_filter import mask

        names = list(columns_of(tree)) or [self.schema.names[0]]
        codes: Sequence[pa.RecordBatch | None] = self._coded.codes() if self._coded is not None else ()
        values = self._coded.values if self._coded is not None else None
        texts = [
            name for name in names if _is_text(self.schema.field(name).type) and (values is None or not values.has([name]))
        ]

        def held(start: int, batch: pa.RecordBatch, coded: pa.RecordBatch | None) -> "Numbers":
            skip = max(first - start, 0)
            if skip:
                batch, coded = batch.select(names).slice(skip), coded.slice(skip) if coded is not None else None
            return (np.flatnonzero(mask(tree, batch, values, coded)) + (start + skip)).astype(np.int32)

        at = max(int(np.searchsorted(self.starts, first, "right")) - 1, 0)
        since = self._from(at)
        parts = ((start, batch, known) for (start, batch), known in zip_longest(since.scan(), codes[at:]))
        found = [NONE.astype(np.int32)]
        if not texts or len(since) - since.first < FILTER_THREADS_LEAST_ROWS:
            found += starmap(held, parts)
        else:
            # Arrow processes texts without the interpreter's lock.
            with ThreadPoolExecutor(min(free_cores(), FILTER_THREADS_MAX)) as threads:
                while some := list(islice(parts, MAPPED_BATCHES_AT_ONCE)):
                    found += threads.map(held, *zip(*some))
        if self._coded is not None:
            self._coded.release()
        return np.concatenate(found)

    def find(self, uid: str, exchange: int) -> int:
        """The number of the row of an exchange, -1 if there is none."""
        wanted = ("exchange", exchange), ("connection", uid)
        for start, batch in self.scan():
            numbers, uids = (call("equal", [batch.column(name), pa.scalar(value)]) for name, value in wanted)
            places = call("indices_nonzero", [call("and", [numbers, uids])])
            if len(places):
                return start + int(places[0].as_py())
        return NOWHERE

    def named(self, names: Iterable[tuple[str, int]], first: int = 0) -> "Numbers":
        """Numbers of the rows from `first` on of some exchanges."""
        wanted: dict[str, set[int]] = {}
        for uid, exchange in names:
            wanted.setdefault(uid, set()).add(exchange)
        found: list[int] = []
        for start, batch in self.scan():
            uids = batch.column("connection").dictionary_encode()
            able = [word in wanted for word in uids.dictionary.to_pylist()]
            places = np.flatnonzero(np.array(able, np.bool_)[np.asarray(uids.indices)]) if any(able) else ()
            numbers, words = batch.column("exchange"), batch.column("connection")
            found += [start + int(p) for p in places if numbers[int(p)].as_py() in wanted[words[int(p)].as_py()]]
        return np.array([number for number in found if number >= first], np.int64)

    def values(self, column: str, numbers: "Numbers") -> "Numbers":
        """Values of a numeric column for rows by their numbers; nulls become the smallest. Copies only these."""
        taken: Any = self.take(numbers, [column]).column(0)
        return np.concatenate([NONE, *map(numeric, taken.chunks)])

    def least(self, column: str) -> int:
        """The smallest value of a numeric column; requires rows."""
        return min(int(numeric(batch.column(column)).min()) for _, batch in self.scan() if batch.num_rows)

    def keys(self, column: str, numbers: "Numbers | None" = None) -> "Numbers":
        """Numbers with the order of a column's values; nulls are the smallest. Texts sort by their code points.

        In the order of the rows: of all from `first` on, or of those whose increasing `numbers` are given.
        """
        chunks = self._chunks(column, numbers)
        if _is_text(self.schema.field(column).type):
            return _ranks(chunks)
        found, end = np.empty(len(self) - self.first if numbers is None else len(numbers), np.int64), 0
        for chunk in chunks:
            found[end : end + len(chunk)] = numeric(chunk)
            end += len(chunk)
        return found

    def _chunks(self, column: str, numbers: "Numbers | None") -> Iterator[Any]:
        """A column of all or some rows, batch by batch; each batch is processed before the next one is taken."""
        for start, batch in self.scan():
            chunk: Any = batch.column(column)
            if numbers is not None:
                some = between(numbers, start, start + batch.num_rows)
                if not len(some):
                    continue
                chunk = arrow.take(chunk, some - start)
            yield chunk


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_list(kind)


def numeric(chunk: Any) -> "NDArray[np.int64]":
    """Values as 64-bit integers; nulls sort before all others."""
    kind = chunk.type
    if chunk.null_count == len(chunk):
        return np.full(len(chunk), LEAST, np.int64)
    wide = chunk if not pa.types.is_boolean(kind) else call("cast", [chunk], BYTE)
    wide = wide.view(pa.int64()) if wide.type in SAME_WIDTH else call("cast", [wide], WIDE)
    if wide.null_count:
        wide = call("coalesce", [wide, pa.scalar(LEAST)])
    found: NDArray[np.int64] = np.frombuffer(wide.buffers()[1], np.int64, len(wide), wide.offset * 8)
    return found


def _ranks(chunks: Iterable[Any]) -> "NDArray[np.int64]":
    """Ranks of texts among all texts; lists sort by their joined entries."""
    coded: list[tuple[NDArray[Any], list[Any]]] = []
    for chunk in chunks:
        texts = chunk
        if pa.types.is_list(chunk.type):
            texts = _joined(chunk if pa.types.is_string(chunk.type.value_type) else chunk.cast(pa.list_(pa.string())))
        encoded = texts.dictionary_encode()
        codes = call("coalesce", [encoded.indices, pa.scalar(NOWHERE, encoded.indices.type)])
        coded.append((np.asarray(codes), encoded.dictionary.to_pylist()))
    places = {word: at for at, word in enumerate(sorted({word for _, words in coded for word in words}))}
    found = [NONE]
    for codes, words in coded:
        ranks = np.array([*(places[word] for word in words), NOWHERE], np.int64)
        found.append(ranks[codes])
    return np.concatenate(found)


def between(numbers: "Numbers", low: int, high: int) -> "Numbers":
    """Of increasing numbers, those from `low` on and below `high`, without copying: numpy would copy all of them to search a
    64-bit number among 32-bit ones."""
    first, end = np.searchsorted(numbers, np.array([low, high], numbers.dtype)).tolist()
    return numbers[first:end]


def in_order(keys: "Numbers", *, descending: bool = False) -> "NDArray[np.int32] | None":
    """The positions of keys in sorted order, stable; None if they are sorted already. Overwrites `keys`.

    A key and its position form one 64-bit number, unless the keys are too far apart, and these are sorted in place. The
    positions that argsort returns, and its own buffer, would take as much memory again for millions of rows.
    """
    if not (keys[1:] > keys[:-1] if descending else keys[1:] < keys[:-1]).any():
        return None
    known = keys != LEAST
    low = int(keys.min(where=known, initial=np.iinfo(np.int64).max))
    width, bits = int(keys.max(where=known, initial=LEAST)) - low + 1, (len(keys) - 1).bit_length()
    if width.bit_length() + bits >= 64:
        if descending:  # the last of equal ones first, then reversed: equal ones keep their order
            return (len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]).astype(np.int32)
        return np.argsort(keys, kind="stable").astype(np.int32)
    keys -= low - 1
    keys[~known] = 0
    if descending:
        np.subtract(width, keys, out=keys)
    keys <<= bits
    for start in range(0, len(keys), PLACES_AT_ONCE):
        some = keys[start : start + PLACES_AT_ONCE]
        some |= np.arange(start, start + len(some))
    keys.sort()
    keys &= (1 << bits) - 1
    return keys.astype(np.int32)


def _joined(lists: Any) -> Any:
    """Lists of texts as one text each; a null entry becomes an empty one."""
    kind: Any = pa.ListArray
    values = call("coalesce", [lists.values, pa.scalar("")])
    texts = call("binary_join", [kind.from_arrays(lists.offsets, values), pa.scalar(",")])
    return call("if_else", [lists.is_valid(), texts, pa.scalar(None, texts.type)]) if lists.null_count else texts
