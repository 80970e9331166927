"""Laws of a batch's parts: tuples, the columns of the fast path, or both give what `RowBatch.rows` gives."""

import numpy as np
import pytest

from kcap.analyzer import RowBatch
from kcap.batch.rows import TEXTS, RowColumns
from kcap.fastpath import layout
from kcap.fastpath.rows import FastPathRows
from kcap.model import ROW
from tests.table.handmade import NO_BODIES, batch, row, unanswered


def fast_rows(orders: list[int]) -> FastPathRows:
    columns = np.arange(layout.ROW_WIDTH * len(orders), dtype=np.int64).reshape(layout.ROW_WIDTH, len(orders))
    columns[layout.R_ORDER] = orders
    columns[layout.R_NAME] = np.arange(len(orders)) % 2
    columns[layout.R_PREVIOUS, :1] = layout.NONE
    columns[layout.R_OUTCOME] = np.arange(len(orders)) % 2
    return FastPathRows(columns, ["fast", None])


@pytest.mark.parametrize("many", [False, True])
def test_parts_of_tuples(many: bool) -> None:
    made = batch(row(), unanswered(client_id=None), row(identity=1))
    check(made, RowColumns(made, many=many))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("fast", "slow"), [([1, 2, 3], []), ([4, 1, 3], []), ([5, 1, 3], [2, 4])])
def test_parts_of_both_kinds_of_rows(fast: list[int], slow: list[int], many: bool) -> None:
    tuples = [row(exchange=100 + at, client_id=f"slow{at}") for at in slow]
    made = RowBatch(tuples, [], NO_BODIES, fast_rows(fast), slow)
    check(made, RowColumns(made, many=many))


def check(made: RowBatch, parts: RowColumns) -> None:
    assert parts.size == len(made.rows)
    for at, entry in enumerate(made.tuples):
        assert made.rows[parts.place_of(at)] is entry
    assert parts.place_of(len(made.tuples)) == parts.size
    for at, name in enumerate(ROW):
        want = [entry[at] for entry in made.rows]
        assert parts.array(name).to_pylist() == want, name
        if name not in TEXTS:
            found = parts.number(name)
            assert [v if here else None for v, here in zip(found.values.tolist(), found.mask().tolist())] == want, name
