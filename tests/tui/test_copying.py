"""What goes to the clipboard."""

import json

from kcap.tui.anatomy import anatomy
from kcap.tui.book import Book
from kcap.tui.copying import item_text, row_json, span_hex, tree_text
from kcap.tui.dump import Dump
from kcap.tui.outline import Outline


def test_a_row_is_a_json_line(book: Book) -> None:
    row = json.loads(row_json(book.snapshot(), 7))
    assert (row["api"], row["exchange"]) == tuple(book.snapshot().row(7)[name] for name in ("api", "exchange"))
    assert row["time"].endswith("Z")


def test_a_tree_as_text(book: Book) -> None:
    outline = Outline()
    outline.show(anatomy(book.frames(0)))
    outline.right()
    text = tree_text(outline.lines)
    assert text.splitlines()[0] == item_text(outline.lines[0])
    assert "\n  client           127.0.0.1" in text


def test_bytes_as_hex() -> None:
    dump = Dump(b"\x01\x02\x03", start=1, end=3, hidden=[(2, 3)])
    assert span_hex(dump) == "02 **"
    assert span_hex(Dump(b"\x01\x02")) == "01 02"
