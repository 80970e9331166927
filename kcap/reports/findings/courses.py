"""How often what a finding is about happened over a capture: counts for bars beside it.

In: the display filters of findings, the span of the capture, its exchanges. Out: for each filter the exchanges that pass it in
each of PARTS equal parts of the span, by the time of their first byte. Law: on Parquet files (`of_files`) and by an engine
(`by_engine`) the counts are the same; a filter that looks at what the tables do not have gives none.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kcap.reports.findings.observed import Row

PARTS: Final = 24
"""Bars that fit beside a finding's times."""
TIMES: Final = ("request_first_ns", "response_first_ns")
Span = tuple[int, int]
Courses = list[list[int]]


def width_of(span: Span) -> int:
    """Nanoseconds of a part."""
    return max(1, -(-(span[1] - span[0] + 1) // PARTS))


def of_files(files: Sequence[str], filters: Sequence[str], span: Span) -> Courses:
    """The counts of exchanges in Parquet files, in one reading."""
    import numpy as np
    import pyarrow as pa
    from pyarrow.parquet import read_metadata

    from kcap.arrays.arrow import filled, parquet_file
    from kcap.filter.ast import columns_of
    from kcap.filter.parse import parse
    from kcap.table.arrow_filter import masks

    trees = [parse(text) if text else None for text in filters]
    counts = np.zeros((len(filters), PARTS), np.int64)
    wanted = {name for tree in trees if tree is not None for name in columns_of(tree)}
    for path in files if any(filters) else ():
        metadata: Any = read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        names = set(schema.names)
        texts = [name for name in wanted & names if schema.field(name).type == pa.string()]
        file = parquet_file(path, metadata=metadata, read_dictionary=texts)
        able = [at for at, tree in enumerate(trees) if tree is not None and names.issuperset(columns_of(tree))]
        for batch in file.iter_batches(columns=sorted((wanted | {*TIMES}) & names)):
            first, other = (filled(batch.column(name), -1).to_numpy(zero_copy_only=False) for name in TIMES)
            at = np.where(first >= 0, first, other)
            place = np.clip((at - span[0]) // width_of(span), 0, PARTS - 1)
            for number, passing in zip(able, masks((trees[number] for number in able), batch), strict=True):
                counts[number] += np.bincount(place[passing & (at >= 0)], minlength=PARTS)
    return [[int(count) for count in row] if text else [] for row, text in zip(counts, filters, strict=True)]


def by_engine(run: Callable[[Any], list[Row]], exchanges: Any, filters: Sequence[str], span: Span) -> Courses:
    """The same of an Ibis table."""
    from kcap.filter.ibis_filter import predicate
    from kcap.filter.parse import parse

    out: Courses = []
    for text in filters:
        counts = [0] * PARTS if text else []
        if text:
            chosen = exchanges.filter(predicate(parse(text), exchanges))
            at = chosen[TIMES[0]].fill_null(chosen[TIMES[1]])
            placed = chosen.filter(at.notnull()).select(
                part=((at - span[0]) // width_of(span)).clip(0, PARTS - 1).cast("int64")
            )
            for row in run(placed.group_by("part").aggregate(n=placed.count())):
                counts[row["part"]] = row["n"]
        out.append(counts)
    return out
