"""The fast path gives the tables of the reference path, on real captures and from their first packet on.

Small captures end before the fast path would begin, so that the other tests of them see the reference path alone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap import limits
from kcap.analyzer import Analyzer
from kcap.columns import TABLES
from kcap.model import SegmentBatch
from kcap.net.segment_columns import columns_of
from kcap.table.builder import TableSet
from kcap.table.table_builders import TableRequest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "captures"
CAPTURES = sorted(path for path in ROOT.glob("pcaps/**/*.pcap*") if path.suffix != ".py")
OTHERS = sorted(SHARED.glob("*/*.pcap*")) if SHARED.is_dir() else []
MOST_BYTES = 400_000
"""Larger ones of the other folders take too long for a suite."""


def tables_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table of one reading."""
    requests = {name: TableRequest.of(name) for name in TABLES}
    tables, made = TableSet.of(requests), {name: [] for name in requests}  # type: dict[str, list[Any]]
    tables.begin(kcap.open(path).read())
    for name, batch in tables.rows():
        made[name].append(batch)
    finish = {name: tables.finisher(name) for name in requests}
    return {name: [row for batch in batches for row in finish[name](batch).to_pylist()] for name, batches in made.items()}


def agree(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compares all tables of the two paths; how many rows the fast path decided."""
    feeds, take, decided = Analyzer.feeds, Analyzer.take, []

    def as_columns(self: Analyzer, batch: Any) -> Iterator[None]:
        return feeds(self, columns_of(batch) if isinstance(batch, SegmentBatch) else batch)

    def counting(self: Analyzer, *args: Any) -> Any:
        made = take(self, *args)
        decided.append(0 if made.fast_rows is None else len(made.fast_rows))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 1 << 60)
        expected = tables_of(path)
        patch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
        patch.setattr(Analyzer, "feeds", as_columns)
        patch.setattr(Analyzer, "take", counting)
        found = tables_of(path)
    for name in TABLES:
        assert found[name] == expected[name], name
    return sum(decided)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_both_paths_give_the_same_tables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: every table, rows and their order included."""
    agree(path, monkeypatch)


def test_the_fast_path_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the law says nothing."""
    assert agree(ROOT / "pcaps" / "java-transactions.pcap", monkeypatch) > 50


@pytest.mark.parametrize("name", ["java-transactions.pcap", "pipelined.pcap", "aiokafka.pcap"])
def test_rows_that_leave_between_packets_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: where batches of rows are cut changes nothing, also in the middle of packets that were read at once."""
    path = ROOT / "pcaps" / name
    whole = tables_of(path)
    for bound, few in (("ROWS_PER_BATCH", 7), ("FEED_PACKETS", 5), ("FEED_PACKETS_MIN", 5)):
        monkeypatch.setattr(limits, bound, few)
    agree(path, monkeypatch)
    cut = tables_of(path)
    for table in TABLES:
        assert cut[table] == whole[table], table


@pytest.mark.slow
@pytest.mark.skipif(not OTHERS, reason="the captures beside the project are not there")
@pytest.mark.parametrize("part", range(4))
def test_both_paths_on_the_captures_beside_the_project(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of captures that are too many to be copied."""
    for path in OTHERS[part::4]:
        if path.stat().st_size <= MOST_BYTES:
            agree(path, monkeypatch)
