"""What goes to the clipboard."""

import json

from kcap.tui.capture_model import CaptureModel
from kcap.tui.clipboard import item_text, row_json, span_hex, tree_text
from kcap.tui.exchange_tree import anatomy
from kcap.tui.hex_dump import Dump
from kcap.tui.tree_lines import Outline


def test_a_row_is_a_json_line(book: CaptureModel) -> None:
    row = json.loads(row_json(book.snapshot(), 7))
    assert (row["api"], row["exchange"]) == tuple(book.snapshot().row(7)[name] for name in ("api", "exchange"))
    assert row["time"].endswith("Z")


def test_a_tree_as_text(book: CaptureModel) -> None:
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
