"""Formats values, rows, bytes and filters as text for the clipboard. Free of widgets.

In: the value under the cursor. Out: text. Law: a secret that is masked on the screen is masked here; a row is the JSON line
that `kcap rows` writes.
"""

import io

import numpy as np

from kcap.columns import EXCHANGES
from kcap.tui.hex_dump import Dump
from kcap.tui.row_index import RowIndex
from kcap.tui.tree_lines import Item


def row_json(rows: RowIndex, number: int) -> str:
    from kcap.output.writers import JsonLines

    out = io.BytesIO()
    table = rows.take(np.array([number], np.int64), [column.name for column in EXCHANGES])
    for batch in table.to_batches():
        JsonLines(out, table.schema).write(batch)
    return out.getvalue().decode().strip()


def item_text(item: Item) -> str:
    """A line of the tree as shown."""
    return "".join(text for text, _ in item.line).strip()


def tree_text(items: list[Item]) -> str:
    """The visible lines, indented."""
    return "\n".join("  " * item.depth + item_text(item) for item in items)


def span_hex(dump: Dump) -> str:
    """The selected bytes; all of them if none are selected."""
    return dump.hex(dump.start, dump.end) if dump.end > dump.start else dump.hex(0, len(dump.data))
