"""The pane of one exchange: its tree and its bytes, whose cursors follow each other.

In: an exchange read again from its file. Out: a message when a cursor moves. Law: the bytes are those of the line under the
cursor; a byte leads to the innermost line that decodes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message

from kcap.output.grid import clean
from kcap.tui.hex_dump import Dump
from kcap.tui.panes.bytes import Bytes
from kcap.tui.panes.detail import Detail
from kcap.tui.splitters import Edges, SplitFrame
from kcap.tui.tree_lines import Item

if TYPE_CHECKING:
    from kcap.capture.frame_bytes import FrameBytes


@dataclass(frozen=True, slots=True)
class Opened:
    """An exchange that was read again."""

    number: int
    """Row number of the exchange."""
    found: "FrameBytes"
    connection: dict[str, Any] | None
    note: str = ""
    """The user's note about it."""
    findings: Sequence[dict[str, Any]] = ()
    """Problems of the capture that concern it."""


class ExchangePane(Edges, Container):
    """Tree and bytes."""

    class Moved(Message):
        """Posted when another line or byte is under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.detail, self.hexes = Detail(id="detail"), Bytes(id="bytes")
        self.opened: Opened | None = None
        self.show_secrets = False
        self._linking = False
        self._room = 0
        self._known: dict[tuple[str, ...], bool] = {}

    def compose(self) -> ComposeResult:
        with SplitFrame(id="tree") as tree:
            tree.border_title = "Exchange"
            yield self.detail
        with SplitFrame(id="dump") as dump:
            dump.border_title = "Bytes"
            yield self.hexes

    def clear(self, why: str = "") -> None:
        self.opened = None
        self.detail.empty = why
        self.detail.outline.show([])
        self.detail.renew()

    def show(self, opened: Opened) -> None:
        """Shows an exchange; lines that were expanded before stay expanded."""
        from kcap.tui.exchange_tree import NARROW, anatomy

        outline = self.detail.outline
        if outline.lines:
            self._known |= outline.opened()
        before = outline.current.name if outline.current is not None else None
        self.opened = opened
        self._room = self.detail.size.width or NARROW
        items = anatomy(
            opened.found, opened.connection, opened.findings, show_secrets=self.show_secrets, room=self._room
        )  # fmt: skip
        if opened.note:
            items.insert(0, Item([("note  ", "dim"), (clean(opened.note), "key")], "note", value=opened.note))
        outline.reopen(items, self._known)
        outline.cursor = next((at for at, item in enumerate(outline.lines) if item.name == before), 0)
        self.detail.renew()

    @on(Detail.Resized)
    def resized(self, _event: Detail.Resized) -> None:
        """Wraps sentences for the new width."""
        if self.opened is not None and self.detail.size.width != self._room:
            self.show(self.opened)

    @on(Detail.Moved)
    def walked(self, _event: Detail.Moved) -> None:
        """Shows the bytes of another line of the tree."""
        item = self.detail.outline.current
        if not self._linking:
            self._show_bytes(item)
        self.post_message(self.Moved())

    def _show_bytes(self, item: Item | None) -> None:
        """Shows the bytes of a line."""
        pane, opened = self.hexes, self.opened
        if opened is None:
            pane.dump = Dump()
            pane.renew()
            return
        side = item.side if item is not None and item.side else ""
        side = side or pane.dump.side or "request"
        data = opened.found.request if side == "request" else opened.found.response
        if not data and not (item is not None and item.side):
            side = "response" if side == "request" else "request"
            data = opened.found.request if side == "request" else opened.found.response
        node = item.node if item is not None else None
        if node is not None and node.buffer:
            entry = node.buffers.entries[node.buffer]
            dump = Dump(entry.data, side, node.buffer, entry.how)
        else:
            dump = Dump(data, side, 0, "frame", 4, hidden=self._hidden(side, data), spans=opened.found.spans.get(side, []))
        if node is not None:
            dump.choose(node.start, node.end)
        pane.dump = dump
        pane.empty = "the bytes were not retained"
        self.query_one("#dump").border_title = f"{side.capitalize()}{'' if not dump.buffer else ', ' + dump.how + ' inflated'}"
        pane.renew()

    def _hidden(self, side: str, data: bytes) -> list[tuple[int, int]]:
        """Spans of a frame that are secrets."""
        from kcap.decode.secrets import secret_spans, shown_as
        from kcap.tui.exchange_tree import message

        if self.show_secrets or self.opened is None:
            return []
        if self.opened.found.row["api"] == "SaslToken":
            return [(0, len(data))]
        decoded = message(self.opened.found, side)
        if decoded is None:
            return []
        name = shown_as(decoded, self.opened.found.row[f"{side}_bytes"])
        return [(start + 4, end + 4) for start, end in secret_spans(name, decoded.tree())]

    @on(Bytes.Moved)
    def pointed(self, _event: Bytes.Moved) -> None:
        """Selects the line that explains another byte."""
        dump = self.hexes.dump
        if self.detail.outline.find(dump.side, dump.buffer, dump.cursor - dump.shift):
            item = self.detail.outline.current
            if item is not None and item.node is not None and item.node.buffer == dump.buffer:
                at = dump.cursor
                dump.choose(item.node.start, item.node.end)
                dump.cursor = at
            self._linking = True
            self.detail.renew(notify=False)
            self._linking = False
            self.hexes.refresh()
        self.post_message(self.Moved())
