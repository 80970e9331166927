"""Rows of the fast path as columns and as tuples."""

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.rows import FastPathRows
from kcap.kafka.frames import FLAG
from kcap.model import ROW


def rows() -> FastPathRows:
    columns = np.arange(at.ROW_WIDTH * 3, dtype=np.int64).reshape(at.ROW_WIDTH, 3)
    columns[at.R_ORDER], columns[at.R_NAME] = [2, 5, 9], [0, 1, 0]
    columns[at.R_RTT], columns[at.R_OUTCOME] = [at.NONE, 7, 8], [0, 0, 1]
    columns[at.R_CUT] = [0, at.CUT_RESPONSE, at.CUT_REQUEST]
    columns[at.R_RESPONSE :, 2] = at.NONE
    return FastPathRows(columns, ["one", None])


def test_tuples_have_every_part() -> None:
    made = rows().tuples(ROW)
    assert [len(row) for row in made] == [len(ROW)] * 3
    assert [row[ROW.index("client_id")] for row in made] == ["one", None, "one"]
    assert [row[ROW.index("rtt_min_ns")] for row in made] == [None, 7, 8]
    assert [row[ROW.index("outcome")] for row in made] == ["answered", "answered", "one_way"]
    assert [row[ROW.index("response_bytes")] is None for row in made] == [False, False, True]
    assert {row[ROW.index("reason")] for row in made} == {None}
    assert [row[ROW.index("request_flags")] for row in made] == [0, 0, FLAG["snaplen"]]
    assert [row[ROW.index("response_flags")] for row in made] == [0, FLAG["snaplen"], 0]


def test_rows_stand_in_the_order_in_which_they_were_decided() -> None:
    """On the same packet the fast path's come first."""
    assert rows().merged([-1, 5, 9]).tolist() == [3, 0, 1, 4, 2, 5]


def test_rows_with_some_bodies() -> None:
    made = rows()
    whole, cut = made.columns[at.R_RESPONSE_SLOT, :2].tolist()
    assert made.among(ROW, {whole: "x", cut: "x"}, [("other",)], [1]) == [("other",), made.tuples(ROW)[0]]
