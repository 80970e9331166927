"""What stands beside an exchange: the rows of its own tables, whatever is filtered, and whatever waits."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.filter.parse import parse
from kcap.table import children, partition_pairs
from kcap.table.backfill import PARTS_OF_EXCHANGES as CHILDREN
from kcap.table.backfill import Backfill
from kcap.table.builder import Table
from kcap.table.children import columns_of_child


def beside(path: Path, text: str, columns: list[str], backfill: Backfill) -> dict[tuple[str, int], dict[str, Any]]:
    capture = kcap.open(str(path))
    table = Table(capture.read, "exchanges", columns, backfill=backfill, only=parse(text), children=CHILDREN)
    rows = table.to_arrow().to_pylist()
    assert table.schema.names == [*columns, *CHILDREN]
    return {(row["connection"], row["exchange"]): row for row in rows}


@pytest.mark.parametrize("backfill", Backfill)
@pytest.mark.parametrize("text", ["", "api in {Produce, Fetch} and exchange > 6", "broker_id == 2"])
def test_children_are_the_rows_of_their_tables(pcaps: Path, text: str, backfill: Backfill) -> None:
    path = pcaps / "java-transactions.pcap"
    rows = beside(path, text, ["connection", "exchange", "broker_id"], backfill)
    filled = dict.fromkeys(CHILDREN, 0)
    for name in CHILDREN:
        names = [column.name for column in columns_of_child(name)]
        wanted: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
        for row in kcap.open(str(path)).table(name).to_arrow().to_pylist():
            wanted[row["connection"], row["exchange"]].append({key: row[key] for key in names})
        for key, row in rows.items():
            assert row[name] == wanted[key]
            filled[name] += bool(row[name])
    assert all(filled.values()) or backfill is Backfill.AS_KNOWN
    assert not {"key", "value"} & {column.name for column in columns_of_child("records")}


@pytest.mark.parametrize("text", ["", "api in {Produce, Fetch} and exchange > 6"])
def test_children_are_made_a_few_at_a_time(pcaps: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Law: how many partitions and records are made at once changes no row."""
    path, columns = pcaps / "java-transactions.pcap", ["connection", "exchange", "topics", "outcome"]
    whole = beside(path, text, columns, Backfill.WAIT)
    made: list[int] = []
    gathered = children.gathered

    def counted(counts: Any, entries: Any, where: Any) -> Any:
        made.append(len(entries) - max(counts, default=0))
        return gathered(counts, entries, where)

    monkeypatch.setattr(children, "gathered", counted)
    monkeypatch.setattr(partition_pairs, "PARTITIONS_AT_ONCE", 8)
    assert beside(path, text, columns, Backfill.WAIT) == whole
    assert len(made) > 2 * len(CHILDREN)
    assert max(made) <= 8


def test_a_row_has_no_more_than_it_may(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more the row has the first, and that is reported."""
    path, columns = pcaps / "java-transactions.pcap", ["connection", "exchange"]
    whole = beside(path, "", columns, Backfill.WAIT)
    said: list[str] = []
    monkeypatch.setattr(children, "NESTED_MAX", 2)
    monkeypatch.setattr(children, "report_row", lambda _report, _batch, _at, kind, what, _words: said.append(f"{kind} {what}"))
    few = beside(path, "", columns, Backfill.WAIT)
    assert few == {key: row | {name: row[name][:2] for name in CHILDREN} for key, row in whole.items()}
    more = [f"nested_limit {name}" for row in whole.values() for name in CHILDREN if len(row[name]) > 2]
    assert more
    assert sorted(said) == sorted(more)
