"""The statements of the report `latency` over Arrow batches in memory, by numpy: half of an engine's work or less.

In: batches of exchanges, keys that are columns. Out: what the engine gives for each expression of the report. Law: the same
rows; percentiles are exact. Memory grows with groups and with what lies beside a percentile, not with exchanges; where there
are many groups, or times so long that sums would not be exact, there is no result and the engine does it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.arrays.arrow import coded, flattened, joined, parents, raw, same, validity
from kcap.limits import COLUMNAR_GROUPS, COLUMNAR_SOURCES
from kcap.reports.definition import EDGES_NS, FAR, LARGEST, PARTS, TIMES, Batches, Key, ReportRequest, Results, Row
from kcap.reports.latency import BESIDE, INEXACT, PERCENTILES, SOURCE, STEPS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Bools, Int64s

AT_ONCE: Final = 1 << 16
"""Rows that are worked on together: each piece of them has a price of its own, whatever its size."""
TIMED: Final = ("outcome", "latency_ns", "long_poll_ns", *TIMES)
"""Columns of `Columns`."""
MANTISSA: Final = 6
"""Leading bits of a value, behind the first one, that tell its bucket: buckets are 1.5 % wide."""
LOWEST: Final = (1023 << MANTISSA) - 1
"""What the bits of 1.0 have before the others (IEEE 754), less one: 0 has a bucket of its own."""
SIDE: Final = 64 << MANTISSA
BUCKETS: Final = 2 * SIDE + 1
EDGES: Final = np.array(EDGES_NS, np.int64)
DENSE: Final = 1 << 20
"""Combinations of codes that are counted rather than sorted."""
LESS: Final = 1 << 62
"""Sums of a batch stay below."""


class TooMuch(Exception):  # noqa: N818 - no error: the engine does it
    """There are too many groups for tables of counts, or times too long for exact sums."""


def buckets(values: "Int64s") -> "Int64s":
    """The bucket of each value: of a larger value it is no smaller."""
    size = (np.abs(values).astype(np.float64).view(np.int64) >> (52 - MANTISSA)) - LOWEST
    np.maximum(size, 0, out=size)
    size[values < 0] *= -1
    size += SIDE
    return size


class Quantiles:
    """Exact percentiles of the values of groups: the buckets are counted first, then those are collected that hold one."""

    def __init__(self, fractions: Iterable[float]) -> None:
        self.fractions = list(fractions)
        self.counts = np.zeros(0, np.int64)
        self._wanted = np.zeros(0, np.bool_)
        self._parts: list[tuple[Int64s, Int64s]] = []

    def count(self, groups: "Int64s", values: "Int64s", most: int) -> None:
        """First walk. `most`: groups so far."""
        found = np.bincount(groups * BUCKETS + buckets(values), minlength=most * BUCKETS)
        found[: len(self.counts)] += self.counts
        self.counts = found

    def want(self) -> None:
        """Between the walks: which buckets hold a value that a percentile needs."""
        table = self.counts.reshape(-1, BUCKETS)
        self._before = np.cumsum(table, axis=1)
        self.totals: Int64s = self._before[:, -1] if len(table) else np.zeros(0, np.int64)
        self._wanted = np.zeros(len(self.counts), np.bool_)
        for group in np.flatnonzero(self.totals).tolist():
            for place, _ in self._places(group):
                self._wanted[group * BUCKETS + self._bucket(group, place)] = True

    def _places(self, group: int) -> Iterator[tuple[int, float]]:
        """Each fraction's place in the order of the values, and how far it lies towards the next one."""
        last = int(self.totals[group]) - 1
        for fraction in self.fractions:
            at = last * fraction
            low = int(at)
            yield low, at - low
            yield min(low + 1, last), 0.0

    def _bucket(self, group: int, place: int) -> int:
        return int(np.searchsorted(self._before[group], place, "right"))

    def collect(self, groups: "Int64s", values: "Int64s") -> None:
        """Second walk."""
        at = groups * BUCKETS + buckets(values)
        here = self._wanted[at]
        if here.any():
            self._parts.append((at[here], values[here]))

    def settle(self) -> None:
        """After the walks."""
        at, values = (np.concatenate(parts) for parts in zip(*self._parts)) if self._parts else (self.totals[:0],) * 2
        order = np.lexsort((values, at))
        self._at, self._values, self._parts = at[order], values[order], []

    def of(self, group: int) -> list[float] | None:
        """The percentiles of a group, None where it has no value."""
        if group >= len(self.totals) or not self.totals[group]:
            return None
        found = []
        for place, part in self._places(group):
            bucket = self._bucket(group, place)
            start = int(np.searchsorted(self._at, group * BUCKETS + bucket))
            before = int(self._before[group, bucket - 1]) if bucket else 0
            found.append((float(self._values[start + place - before]), part))
        return [low + (high - low) * part for (low, part), (high, _) in zip(found[::2], found[1::2])]


class GroupNumbers:
    """Numbers for the combinations of values of some columns, in the order in which they occur."""

    def __init__(self, names: Sequence[str], most: int) -> None:
        self.names, self._most = names, most
        self._numbers: dict[tuple[Any, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, batch: "pa.RecordBatch", codes: "Mapping[str, tuple[NDArray[np.int32], list[Any]]]") -> "Int64s":
        """The number of each row's combination."""
        sizes = [max(1, len(codes[name][1])) for name in self.names]
        if reduce(lambda one, other: one * other, sizes, 1) >= LESS:
            raise TooMuch
        code = np.zeros(batch.num_rows, np.int64)
        for name, size in zip(self.names, sizes):
            code = code * size + codes[name][0]
        most = int(np.prod(sizes))
        if most <= DENSE:
            there = np.flatnonzero(np.bincount(code, minlength=most))
            places = np.zeros(most, np.int64)
            places[there] = np.arange(len(there))
            local = places[code]
        else:
            there = np.unique(code)
            local = np.searchsorted(there, code)
        numbers = np.zeros(len(there), np.int64)
        for at, one in enumerate(there.tolist()):
            values = []
            for name, size in zip(reversed(self.names), reversed(sizes)):
                one, place = divmod(one, size)
                values.append(codes[name][1][place])
            numbers[at] = self._numbers.setdefault(tuple(reversed(values)), len(self._numbers))
        if len(self._numbers) > self._most:
            raise TooMuch
        found: Int64s = numbers[local]
        return found

    def items(self) -> list[tuple[tuple[Any, ...], int]]:
        """The combinations and their numbers."""
        return list(self._numbers.items())


class Sorted:
    """Rows by group: what sums of several columns are made of."""

    def __init__(self, groups: "Int64s") -> None:
        self.order = np.argsort(groups.astype(np.uint16), kind="stable")  # 16 bits are sorted by counting
        ordered = groups[self.order]
        self.starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self.groups: list[int] = ordered[self.starts].tolist()


class Sums:
    """Exact sums by group."""

    def __init__(self) -> None:
        self.values: defaultdict[int, int] = defaultdict(int)

    def take(self, by: Sorted, values: "Int64s") -> None:
        """Adds values. Raises TooMuch where those of a batch may be beyond 64 bits."""
        if not len(values):
            return
        if max(abs(int(values.min())), abs(int(values.max()))) * len(values) >= LESS:
            raise TooMuch
        for group, value in zip(by.groups, np.add.reduceat(values[by.order], by.starts).tolist()):
            self.values[group] += value

    def of(self, group: int) -> int:
        """The sum of a group, as `kcap.reports.definition.added` has it."""
        value = self.values.get(group, 0)
        return value if abs(value) < FAR else LARGEST if value > 0 else -LARGEST


class Extremes:
    """The smallest and the largest value by group."""

    def __init__(self) -> None:
        self.low, self.high = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def take(self, groups: "Int64s", values: "Int64s", most: int) -> None:
        """Looks at values. `most`: groups so far."""
        bounds = np.iinfo(np.int64)
        self.low = np.concatenate([self.low, np.full(most - len(self.low), bounds.max)])
        self.high = np.concatenate([self.high, np.full(most - len(self.high), bounds.min)])
        np.minimum.at(self.low, groups, values)
        np.maximum.at(self.high, groups, values)

    def of(self, group: int) -> tuple[int | None, int | None]:
        """Those of a group, None where it has no value."""
        if group >= len(self.low) or self.low[group] > self.high[group]:
            return None, None
        return int(self.low[group]), int(self.high[group])


class Columns:
    """What the report needs of some rows, as numpy arrays."""

    def __init__(self, batch: "pa.RecordBatch", names: Iterable[str], *, long_polls: bool) -> None:
        self.batch = batch
        self.codes = {name: codes_of(batch.column(name)) for name in dict.fromkeys(["outcome", *names])}
        latency, self.timed = self.number("latency_ns")
        self.polls = self.number("long_poll_ns")[0]
        self.timed = self.timed & self.outcome("answered")
        self.answered = latency[self.timed]
        self.values = self.answered if long_polls else self.answered - self.polls[self.timed]
        first, there = self.number(TIMES[0])
        second, either = self.number(TIMES[1])
        self.at, self.dated = np.where(there, first, second), there | either

    def number(self, name: str) -> "tuple[Int64s, Bools]":
        """A column of integers with 0 for null, and where there is a value."""
        array: Any = whole(self.batch.column(name))
        valid = validity(array)
        values = raw(array, array.type.to_pandas_dtype()).astype(np.int64, copy=False)
        return (values, np.ones(len(values), np.bool_)) if valid is None else (np.where(valid, values, 0), valid)

    def equal(self, values: Mapping[str, Any]) -> "Bools":
        """The rows that have these values."""
        found = np.ones(self.batch.num_rows, np.bool_)
        for name, value in values.items():
            found &= same(self.batch.column(name), value)
        return found

    def outcome(self, name: str) -> "Bools":
        """The rows of an outcome."""
        numbers, known = self.codes["outcome"]
        found: Bools = np.array([one == name for one in known] or [False], np.bool_)[numbers]
        return found


def whole(array: Any) -> Any:
    """An array that starts at its buffers' beginning."""
    if not array.offset:
        return array
    import pyarrow as pa

    made: Any = pa.concat_arrays([array, array.slice(0, 0)])
    return made


def codes_of(array: Any) -> "tuple[NDArray[np.int32], list[Any]]":
    """Entries as numbers of the distinct ones, null among them."""
    return coded(whole(array), nulls_too=True)


class Walks:
    """Both walks over the rows."""

    def __init__(self, keys: Sequence[Key], request: ReportRequest, batches: Batches) -> None:
        self._keys, self._polls, self._batches = [key.column for key in keys], request.long_polls, batches
        self.groups = GroupNumbers(self._keys, COLUMNAR_GROUPS)
        self.sources = GroupNumbers(SOURCE, COLUMNAR_SOURCES)
        self.timed, self.answered = Quantiles(PERCENTILES.values()), Quantiles([PERCENTILES["p99_ns"]])
        self.at_least, self.steps = Quantiles(BESIDE.values()), Quantiles(BESIDE.values())
        self.sums = {name: Sums() for name in ("timed", *PARTS)}
        self.source_sums, self.source_parts, self.source_steps = Sums(), {name: Sums() for name in PARTS}, Sums()
        self.extremes, self.with_polls, self.ages = Extremes(), Extremes(), Extremes()
        self.step_extremes = Extremes()
        self.counters: dict[str, Counter[int]] = {name: Counter() for name in ("unanswered", "long_polls", "source")}
        self.classes: Counter[int] = Counter()
        self.left: Counter[str] = Counter()
        self.span: tuple[int, int] | None = None
        self.source: int | None = None
        self.names: tuple[Any, ...] = ()

    def columns(self, texts: Sequence[str] = (), others: Sequence[str] = ()) -> Iterator[Columns]:
        """The rows, some at a time. `texts`: columns whose entries are numbered."""
        names = list(dict.fromkeys([*TIMED, *texts, *others]))
        for batch in pieces(batch.select(names) for batch in self._batches()):
            yield Columns(batch, texts, long_polls=self._polls)

    def run(self) -> None:
        """All of it. Raises TooMuch."""
        for columns in self.columns():
            at = columns.at[columns.timed & columns.dated]
            if len(at):
                low, high = int(at.min()), int(at.max())
                self.span = (low, high) if self.span is None else (min(low, self.span[0]), max(high, self.span[1]))
        if self.span is not None and self.span[1] - self.span[0] >= 1 << 46:
            raise TooMuch  # steps have another unit then (`kcap.reports.latency.steps`)
        for columns in self.columns([*self._keys, *SOURCE], ["age_ns", "flags", *PARTS]):
            self.first(columns)
        for quantiles in (self.timed, self.answered, self.at_least, self.steps):
            quantiles.want()
        self.choose()
        for columns in self.columns(self._keys, ["age_ns", *SOURCE, *PARTS]):
            self.second(columns)
        for quantiles in (self.timed, self.answered, self.at_least, self.steps):
            quantiles.settle()

    def _step(self, columns: Columns) -> "tuple[Bools, Int64s]":
        """Which of the timed rows have a time, and their steps."""
        dated = columns.dated[columns.timed]
        first, last = self.span or (0, 0)
        return dated, (columns.at[columns.timed][dated] - first) * STEPS // (last - first + 1)

    def first(self, columns: Columns) -> None:
        """Counts, sums, extremes."""
        group, source = self.groups.of(columns.batch, columns.codes), self.sources.of(columns.batch, columns.codes)
        most, timed, values = len(self.groups), columns.timed, columns.values
        of, waiting = group[timed], columns.outcome("unanswered")
        age, aged = columns.number("age_ns")
        self.timed.count(of, values, most)
        self.answered.count(of, columns.answered, most)
        self.at_least.count(of, values, most)
        self.at_least.count(group[waiting & aged], age[waiting & aged], most)
        dated, step = self._step(columns)
        self.steps.count(step, values[dated], STEPS)
        self.step_extremes.take(step, values[dated], STEPS)
        self.extremes.take(of, values, most)
        self.with_polls.take(of, columns.answered, most)
        self.ages.take(group[waiting & aged], age[waiting & aged], most)
        by = Sorted(of)
        self.sums["timed"].take(by, values)
        for name in PARTS:
            self.sums[name].take(by, columns.number(name)[0][timed])
        self.source_sums.take(Sorted(source[timed]), values)
        counted(self.counters["source"], source[timed])
        counted(self.counters["unanswered"], group[waiting])
        counted(self.counters["long_polls"], group[timed & (columns.polls > 0)])
        counted(self.classes, of * (len(EDGES) + 1) + np.searchsorted(EDGES, values, "right"))
        self._leave_out(columns)

    def _leave_out(self, columns: Columns) -> None:
        for name in ("unanswered", "one_way", "orphan"):
            self.left[name] += int(columns.outcome(name).sum())
        self.left["no_latency"] += int((columns.outcome("answered") & ~columns.timed).sum())
        flags: Any = whole(columns.batch.column("flags"))
        codes, known = codes_of(flattened(flags))
        rows = parents(flags)
        for number, flag in enumerate(known):
            if flag in INEXACT:  # a row has a flag once
                self.left[f"flag_{flag}"] += int(columns.timed[rows[codes == number]].sum())

    def choose(self) -> None:
        """The source with the largest sum, the first of equal ones by name."""
        found = [
            (-self.source_sums.of(number), [(value is None, value if value is not None else 0) for value in values], number)
            for values, number in self.sources.items()
            if self.counters["source"][number]
        ]
        self.source = min(found)[2] if found else None
        self.names = next((values for values, number in self.sources.items() if number == self.source), ())

    def second(self, columns: Columns) -> None:
        """What lies beside the percentiles, and the parts of the source's time."""
        group, timed, values = self.groups.of(columns.batch, columns.codes), columns.timed, columns.values
        of, waiting = group[timed], columns.outcome("unanswered")
        age, aged = columns.number("age_ns")
        self.timed.collect(of, values)
        self.answered.collect(of, columns.answered)
        self.at_least.collect(of, values)
        self.at_least.collect(group[waiting & aged], age[waiting & aged])
        dated, step = self._step(columns)
        self.steps.collect(step, values[dated])
        if self.source is None:
            return
        here = columns.equal(dict(zip(SOURCE, self.names)))[timed]
        if here.any():
            alone = Sorted(np.zeros(int(here.sum()), np.int64))
            for name in PARTS:
                self.source_parts[name].take(alone, columns.number(name)[0][timed][here])
            self.source_steps.take(Sorted(step[here[dated]]), values[dated][here[dated]])


def pieces(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The same rows in batches of about `AT_ONCE`."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        for start in range(0, batch.num_rows, AT_ONCE):
            held.append(batch.slice(start, AT_ONCE))
            if sum(one.num_rows for one in held) >= AT_ONCE:
                yield from joined(held, batch.schema)
                held = []
    if held:
        yield from joined(held, held[0].schema)


def counted(counter: Counter[int], numbers: "Int64s") -> None:
    """Counts small numbers."""
    found = np.bincount(numbers)
    for number in np.flatnonzero(found).tolist():
        counter[number] += int(found[number])


def results(batches: Batches, keys: Sequence[Key], request: ReportRequest) -> Results | None:
    """The rows of each expression of the report, for `finish`; None where the engine has to make them.

    `batches` gives the batches of the exchanges, as often as it is called.
    """
    if any(key.step_ns or key.entry or key.column in ("topics", "topic_ids") for key in keys) or request.listed:
        return None
    walks = Walks(keys, request, batches)
    try:
        walks.run()
    except TooMuch:
        return None
    by = [f"by_{key.name}" for key in keys]
    rows, shapes = [], []
    for values, number in walks.groups.items():
        name = dict(zip(by, values))
        rows.append(name | row_of(walks, number))
        counts = [walks.classes[number * (len(EDGES) + 1) + at] for at in range(len(EDGES) + 1)]
        shapes += [name | {"class_": at, "values": count} for at, count in enumerate(counts) if count]
    left: Row = {name: walks.left[name] for name in ("unanswered", "one_way", "orphan", "no_latency")}
    left |= {f"flag_{flag}": walks.left[f"flag_{flag}"] for flag in INEXACT}
    oldest = [age for _, number in walks.groups.items() if (age := walks.ages.of(number)[1]) is not None]
    left |= {"age_ns_max": max(oldest, default=None), "all_ns": total(walks.source_sums)}
    first, last = walks.span or (0, 0)
    span = {"first_ns": first, "last_ns": last}
    over_time = [
        {"step": step, **span, "count": int(walks.steps.totals[step]), "percentiles": walks.steps.of(step),
         "max_ns": walks.step_extremes.of(step)[1]}
        for step in np.flatnonzero(walks.steps.totals).tolist()
    ]  # fmt: skip
    return {
        "rows": rows, "histograms": shapes, "left_out": [left], "over_time": over_time, "source": source_of(walks),
        "source_steps": [{"step": step, **span, "sum_ns": walks.source_steps.of(step)} for step in walks.source_steps.values],
    }  # fmt: skip


def total(sums: Sums) -> int:
    """The sum of all groups."""
    whole_sum = Sums()
    whole_sum.values[0] = sum(sums.values.values())
    return whole_sum.of(0)


def row_of(walks: Walks, number: int) -> Row:
    """The figures of a group."""
    low, high = walks.extremes.of(number)
    return {
        "count": int(walks.timed.totals[number]) if number < len(walks.timed.totals) else 0,
        "unanswered": walks.counters["unanswered"][number],
        "min_ns": low, "percentiles": walks.timed.of(number), "max_ns": high, "sum_ns": walks.sums["timed"].of(number),
        "with_polls_p99_ns": walks.answered.of(number), "with_polls_max_ns": walks.with_polls.of(number)[1],
        **{f"{part}_sum": walks.sums[part].of(number) for part in PARTS},
        "unanswered_age_ns_max": walks.ages.of(number)[1], "long_polls": walks.counters["long_polls"][number],
        "with_unanswered": walks.at_least.of(number),
    }  # fmt: skip


def source_of(walks: Walks) -> list[Row]:
    """The source with the largest sum."""
    if walks.source is None:
        return []
    figures = {"count": walks.counters["source"][walks.source], "sum_ns": walks.source_sums.of(walks.source)}
    return [dict(zip(SOURCE, walks.names)) | figures | {f"{part}_sum": walks.source_parts[part].of(0) for part in PARTS}]
