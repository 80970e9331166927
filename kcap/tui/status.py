"""Formats the title and the status line: reading progress, cursor position, errors. Free of widgets.

In: a capture model, a list model. Out: texts of a given width. Law: a text is never wider than its line; an error is shown with
its remedy.
"""

import os
import time
from collections import deque
from typing import Final

from rich.text import Text

from kcap.output.grid import clean
from kcap.reports.text import count
from kcap.tui.capture_model import CaptureModel
from kcap.tui.hex_dump import Dump
from kcap.tui.list_columns import cut
from kcap.tui.list_model import ListModel
from kcap.tui.reader_main import ReaderStatus
from kcap.tui.tree_lines import Item
from kcap.tui.views.bars import lying_bar

BAR: Final = 14
RATE_SECONDS: Final = 2.0


class Pulse:
    """The rate of reading over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, count: int) -> float:
        """Bytes per second."""
        now = time.monotonic()
        self._seen.append((now, count))
        while len(self._seen) > 1 and now - self._seen[1][0] >= RATE_SECONDS:
            self._seen.popleft()
        (then, before) = self._seen[0]
        return (count - before) / (now - then) if now - then > 0.05 else 0.0


def names(paths: list[str], room: int) -> str:
    """The names of the files, as far as there is room."""
    files = ["standard input" if path == "-" else os.path.basename(path.rstrip("/")) or path for path in paths]
    text = ", ".join(files)
    if len(text) > room and len(files) > 1:
        text = f"{files[0]} and {len(files) - 1} more"
    return clean(text if len(text) <= room else text[: max(1, room - 1)] + "…")


def progress(pulse: Pulse, book: CaptureModel, width: int) -> Text:
    status = book.status
    right = ""
    if not book.done:
        rate = pulse.rate(status.bytes)
        speed = f" {rate / 1e6:.0f} MB/s" if rate >= 1e6 else f" {rate / 1e3:.0f} kB/s" if rate >= 1 else ""
        if status.following or (book.live and book.order.span_seconds):
            right = f"● live{speed}, {count(status.packets, 'packet')}  Ctrl+S stop"
        elif status.total:
            part = min(1.0, status.bytes / status.total)
            speed = speed if part < 1 else ""  # what remains is to make tables of what was read
            right = f"reading {lying_bar(round(part * BAR * 8)):<{BAR}} {part:4.0%}{speed}  Ctrl+S stop"
        else:
            right = f"reading {status.bytes / 1e6:.1f} MB{speed}  Ctrl+S stop"
    elif book.state != "done":
        right = {"stopped": "stopped", "failed": f"not read to the end: {clean(status.error or '')}"}[book.state]
    else:
        right = f"{count(status.packets, 'packet')}, {connected(book)}"
        right += "".join(f", {text}" for text in (book.truncation(), unread(status)) if text)
    left = " kcap "
    room = max(8, width - len(left) - len(right) - 4)
    if room < 12:
        right, room = cut(right, max(0, width - len(left) - 16), right=False), 12
    name = names([book.order.source or path for path in book.paths], room)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(left, "bold reverse")
    line.append(f" {name}", "bold")
    line.append(" " * max(1, width - line.cell_len - len(right) - 1) + right)
    return line


def connected(book: CaptureModel) -> str:
    """The number of connections that the view of conversations shows, and of those recognized as Kafka if there are others."""
    kafka, table = book.status.connections, book.table("connections")
    every = table.num_rows if table is not None else kafka
    return count(every, "connection") + (f" ({kafka:,} Kafka)" if kafka != every else "")


def unread(status: ReaderStatus) -> str:
    """Files of which nothing was read, and files with packets of an unsupported link type; truncated files are neither."""
    read = {file.path: file.packets - sum(file.unread_links.values()) for file in status.files}
    cut = {file.path for file in status.files if file.format and not file.complete}
    failed = {path for path, _ in status.failed} - cut
    partly = sum(read.get(path, 0) > 0 for path in failed)
    found = ((len(failed) - partly, "not read"), (partly, "read in part"))
    return ", ".join(f"{count(files, 'file')} {how}" for files, how in found if files)


def trouble(book: CaptureModel) -> str:
    """The message for an empty list."""
    status = book.status
    if not book.done:
        return "reading …" if not book.rows else ""
    if status.error is not None and not book.rows:
        return clean(status.error)
    if status.failed and not book.rows:
        path, why = status.failed[0]
        return clean(why if path in why else f"{path}: {why}")
    if not book.rows:
        reason = clean(status.said or "no Kafka found: nothing was read")
        return f"{reason[:1].upper()}{reason[1:]}. C shows the connections, H the capture's health."
    if book.looking:
        return "filtering …"
    if book.only is not None and not book.passed:
        return "No exchange passes the display filter. Esc clears it."
    return ""


def position(view: ListModel, item: Item | None, dump: Dump | None, width: int, cell: str = "") -> Text:
    """The status line: the position of the cursor, and the filter that the key `a` would apply. `cell`: the filter of the
    list's cell."""
    where = f"{view.cursor + 1:,}/{len(view):,}" if len(view) else "0/0"
    if view.marks:
        where += f"  {len(view.marks):,} marked"
    if view.annotations.ignored:
        where += f"  {len(view.annotations.ignored):,} ignored"
    if view.follow:
        where += "  auto scroll"
    if dump is not None:
        hint = dump.where()
    elif item is not None and item.node is not None:
        size = item.node.end - item.node.start
        hint = f"{item.name}  {count(size, 'byte')} at {item.node.start + (0 if item.node.buffer else 4):,}"
        hint += f"   a: {item.filter}" if item.filter else ""
    elif item is not None:
        hint = f"a: {item.filter}" if item.filter else ""
    else:
        hint = f"←→ column   a: {cell}" if cell else ""
    hint = cut(clean(hint), max(1, width - 3 - len(where)), right=False)
    return Text.assemble(hint, " ", (where, "bold"), no_wrap=True, overflow="ellipsis")
