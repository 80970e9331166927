"""Rows of connections that lived and ended in the fast path."""

from collections.abc import Sequence

from kcap.analyzer import Analyzer, ClosedConnection
from kcap.columns import TABLES
from kcap.fastpath.closed_rows import COLUMNS, ClosedRow, gathered, plain
from kcap.model import CaptureFile
from kcap.net.segment_columns import columns_of
from kcap.reports.versions.profile import LINE
from kcap.table.side_tables import batch_of, connection_batch, connection_rows
from tests.fastpath.both import cut
from tests.fastpath.test_closed_connections import own_and_others, without_a_byte
from tests.support.wire import Segment


def closed_of(analyzer: Analyzer, segments: Sequence[Segment], size: int) -> tuple[list[ClosedConnection], list[ClosedRow]]:
    """The connections of these segments, all and those of the fast path alone."""
    for batch in cut(list(segments), size):
        analyzer.feed(columns_of(batch))
    analyzer.finish()
    taken = analyzer.take_connections()
    return taken, [one for one in taken if isinstance(one, ClosedRow)]


def columns_agree(*some: Sequence[ClosedConnection]) -> None:
    """Connections give the same table by columns and by rows."""
    files, columns = [CaptureFile("a.pcap", "a.pcap")] * 2, TABLES["connections"]
    for closed in some:
        made = connection_batch(closed, columns, files)
        assert made.equals(batch_of("connections", columns, connection_rows(closed, files)))
        assert [one.part(LINE) for one in closed] == [{name: one.values.get(name) for name in LINE} for one in closed]


def test_columns_agree_with_rows_in_any_order() -> None:
    """Own ones and others in turns."""
    taken, own = closed_of(Analyzer(), own_and_others(), 8)
    assert 0 < len(own) < len(taken)
    columns_agree(taken, taken[::-1], own)
    sides = gathered(own).sides()
    for name, make in COLUMNS.items():
        assert list(plain(make(sides))) == [one.values[name] for one in own]


def test_connections_without_a_byte_are_rows_too() -> None:
    """Columns equal rows."""
    taken, own = closed_of(Analyzer(), without_a_byte(), 8)
    columns_agree(taken, own)
