"""Places are used once."""

from kcap.decode.opcodes import COUNTERS
from kcap.fastpath import layout


def test_places_of_a_table_are_distinct() -> None:
    assert layout.TOUCHED == layout.CONNECTION_WIDTH - 1
    assert layout.FLOW_SIZE == layout.STREAM_WIDTH - 1
    assert layout.REQUEST_WIDTH == layout.Q_FRAME + layout.FRAME
    assert layout.ROW_WIDTH == layout.R_REQUEST + 2 * layout.FRAME
    assert layout.M_EXCERPTS == layout.META_WIDTH - 1
    assert layout.O_POSITION == layout.ODD_WIDTH - 1
    assert layout.G_TAKEN == layout.LOG_WIDTH - 1
    assert layout.P_HIGH == layout.PIECE_WIDTH - 1
    assert layout.D_LAST == layout.RECORD_WIDTH - 1
    assert layout.LARGE_WIDTH == layout.L_ENDS + COUNTERS
    assert layout.ENDS[layout.FREE] == "open"


def test_reasons_are_in_the_order_of_ends() -> None:
    first = layout.OUTCOMES.index("unanswered")
    assert layout.REASONS[first : first + 3] == ("capture_end", *layout.ENDS[1:])
    assert set(layout.OUTCOMES[first:]) == {"unanswered"}
