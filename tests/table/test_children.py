"""What stands beside an exchange: the rows of its own tables, whatever is filtered, and whatever waits."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.filter.parse import parse
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
