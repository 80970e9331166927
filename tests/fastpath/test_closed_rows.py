"""Rows of connections that lived and ended in the fast path."""

from kcap.analyzer import Analyzer
from kcap.columns import TABLES
from kcap.fastpath.closed_rows import COLUMNS, ClosedRow, gathered, plain
from kcap.model import CaptureFile
from kcap.net.segment_columns import columns_of
from kcap.table.side_tables import batch_of, connection_batch, connection_rows
from tests.fastpath.both import cut
from tests.fastpath.test_closed_connections import own_and_others


def test_columns_agree_with_rows_in_any_order() -> None:
    """Own ones and others in turns."""
    analyzer = Analyzer()
    for batch in cut(own_and_others(), 8):
        analyzer.feed(columns_of(batch))
    analyzer.finish()
    taken = analyzer.take_connections()
    files, columns = [CaptureFile("a.pcap", "a.pcap")] * 2, TABLES["connections"]
    own = [one for one in taken if isinstance(one, ClosedRow)]
    assert 0 < len(own) < len(taken)
    for closed in (taken, taken[::-1], own):
        made = connection_batch(closed, columns, files)
        assert made.equals(batch_of("connections", columns, connection_rows(closed, files)))
    sides = gathered(own).sides()
    for name, make in COLUMNS.items():
        assert list(plain(make(sides))) == [one.values[name] for one in own]
