"""Shows the messages of a connection in both directions, one after the other, as text or as bytes.

In: the uid of a connection, the capture model. Out: a screen, filled page by page while the user scrolls. Law: messages are in
the order of their first packets; secrets are masked as in the tree.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np
from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import RichLog, Static

import kcap.records.batch_nodes  # noqa: F401 - the trees of messages open their records fields with it
from kcap.capture.frame_bytes import SIDES, FrameBytes, why_not
from kcap.decode.secrets import masked, secret_spans, shown_as
from kcap.filter.parse import parse
from kcap.output.grid import call, clean, duration, endpoint
from kcap.reports.text import count
from kcap.tui.beside import beside
from kcap.tui.exchange_tree import message
from kcap.tui.hex_dump import WIDE, Dump
from kcap.tui.key_map import ExplainsKeys
from kcap.tui.keys import Keys
from kcap.tui.list_columns import moment
from kcap.tui.views.home import Home

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel

PART: Final = 60
"""Number of exchanges read at once."""
SHOWN: Final = 4000
"""Maximum characters of a message as text, and bytes of one as hex."""
WAYS: Final = ("text", "hex")
BOTH: Final = ("both directions", "client", "broker")


def numbers_of(book: "CaptureModel", uid: str) -> list[int]:
    """Rows of a connection, by number within it."""
    tree = parse(f'connection == "{uid}"')
    assert tree is not None
    rows = book.snapshot()
    found = rows.passing(tree)
    order = np.argsort(rows.values("exchange", found), kind="stable")
    return [int(number) for number in found[order]]


def named(exchange: int) -> str:
    """How the heading of a message names its exchange: without the connection, which is that of the screen."""
    return f"exchange {exchange}"


def stream_lines(found: list[FrameBytes], way: str, side: str, *, show_secrets: bool = False) -> Iterator[Text]:
    """Messages of some exchanges, in the order of their first packets."""
    messages = [
        (frames.row[f"{name}_first_ns"], name, frames)
        for frames in found
        for name in SIDES
        if frames.row[f"{name}_first_ns"] is not None
        and side in ("both directions", "client" if name == "request" else "broker")
    ]
    for ns, name, frames in sorted(messages, key=lambda entry: entry[0]):
        yield from _message(ns, name, frames, way, show_secrets)


def _message(ns: int, side: str, frames: FrameBytes, way: str, show_secrets: bool) -> Iterator[Text]:
    row, client = frames.row, side == "request"
    tone = "cyan" if client else "green"
    head = Text(no_wrap=True)
    head.append("→ " if client else "← ", f"bold {tone}")
    head.append(f"{moment(ns, 'clock', 0, None)}  ", "dim")
    head.append(clean(call(row["api"], row["api_version"])) or "response", f"bold {tone}")
    size = row[f"{side}_bytes"]
    head.append(f"  {count(size, 'byte')}" if size is not None else "")
    head.append(f"  {duration(row['latency_ns'])}" if not client and row["latency_ns"] is not None else "")
    head.append(f"  packet {row[f'{side}_first_packet']}  {named(row['exchange'])}", "dim")
    yield head
    decoded = message(frames, side)
    data = frames.request if client else frames.response
    name = None if decoded is None else shown_as(decoded, size)
    if decoded is None:
        yield Text(f"  {why_not(row, changed=frames.changed)}", "dim")
    elif way == "hex":
        hidden = [] if show_secrets else [(start + 4, end + 4) for start, end in secret_spans(name, decoded.tree())]
        dump = Dump(data[:SHOWN], hidden=hidden)
        for at in range(dump.height(WIDE)):
            yield Text("  " + "".join(part for part, _ in dump.line(at, WIDE, focused=False)), tone)
        if len(data) > SHOWN:
            yield Text(f"  … {count(len(data) - SHOWN, 'more byte')}", "dim")
    else:
        body = decoded.to_json("size")
        if body is None:
            yield Text(f"  {clean(decoded.undecoded or '')}", "dim")
            return
        text = json.dumps(body if show_secrets else masked(name, body), ensure_ascii=False, default=str)
        more = len(text) - SHOWN
        yield Text("  " + clean(text[:SHOWN]) + (f" … {count(more, 'more character')}" if more > 0 else ""), tone)


class FollowedStream(ExplainsKeys):
    DEFAULT_CSS = """
    FollowedStream #head { height: 1; background: $primary-muted; color: $text; text-style: bold; }
    FollowedStream RichLog { height: 1fr; padding: 0 1; scrollbar-size: 1 1; background: $background; }
    """
    PATIENCE_SECONDS: ClassVar[float] = 1.0
    """Maximum time for which keys wait for messages."""
    BINDING_GROUP_TITLE = "The followed connection"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "bytes", "Bytes or text"),
        Binding("f", "side", "Direction"),
        Binding("left_curly_bracket", "part_of_time(-1)", "Earlier", key_display="{"),
        Binding("right_curly_bracket", "part_of_time(1)", "Later", key_display="}"),
        Binding("g", "end(False)", "First message that was read", show=False),
        Binding("G", "end(True)", "Last message that was read", show=False),
        Binding("escape,q", "app.pop_screen", "Back", key_display="Esc"),
        Binding("f1,question_mark", "app.help", "Help", key_display="F1"),
    ]

    def __init__(self, uid: str, number: int) -> None:
        super().__init__()
        self.uid, self.number = uid, number
        self.way, self.side = "text", "both directions"
        self.numbers: list[int] = []
        self.first = self.read = 0
        """Positions among `numbers`: of the first exchange that is shown, and after the last."""
        self._busy = False
        self._width = 0
        self._sought = named(number)
        """The exchange to scroll to; empty once it is visible."""

    @property
    def home(self) -> Home:
        return cast(Home, self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield RichLog(wrap=True, auto_scroll=False, max_lines=200_000, min_width=1)
        yield Keys()

    def on_mount(self) -> None:
        """Begins with the exchange that was under the cursor."""
        self.numbers = numbers_of(self.home.book, self.uid)
        exchanges = self.home.book.snapshot().values("exchange", np.array(self.numbers, np.int64))
        at = int(np.searchsorted(exchanges, self.number)) if self.number in exchanges else 0
        self.first = self.read = at - at % PART
        self.query_one(RichLog).focus()
        self._again(self.number)

    def on_resize(self, event: events.Resize) -> None:
        """Wraps lines again for another width."""
        if self._width not in (0, event.size.width):
            self.call_after_refresh(self._again, self.number)
        self._width = event.size.width

    @property
    def ready(self) -> bool:
        """Whether the requested messages are there."""
        return not self._busy

    def _exchange(self, at: int) -> int:
        """The number of the exchange at a position."""
        return self.home.book.snapshot().key(self.numbers[at])[1]

    def _again(self, exchange: int) -> None:
        """Reads the same part again, at least `PART` exchanges, and scrolls to one of them."""
        size, self._sought = max(PART, self.read - self.first), named(exchange)
        self.read = self.first
        self.query_one(RichLog).clear()
        self._more(size)

    def _head(self) -> None:
        """The client and broker, the part that is shown and its form, and the connection's name, as far as there is room."""
        parts = []
        if self.numbers:
            row = self.home.book.snapshot().row(self.numbers[0])
            parts = [f"{endpoint(row['client_ip'], row['client_port'])} → {endpoint(row['server_ip'], row['server_port'])}"]
        parts += [f"exchanges {self.first + 1:,} to {self.read:,} of {len(self.numbers):,}", self.way, self.side, self.uid]
        while len(parts) > 1 and cell_len("  ".join(parts)) > self.app.size.width - 2:
            parts.pop()
        self.query_one("#head", Static).update(f" {'  '.join(parts)}")

    def action_part_of_time(self, by: int) -> None:
        """Reads the following exchanges, or those before the first that is shown."""
        if by > 0:
            self._more(PART)
            return
        if not self.first:
            self.say_once("the connection has no earlier exchanges")
            return
        here = self._exchange(self.first)
        self.first = max(0, self.first - PART)
        self._again(here)

    def _more(self, size: int) -> None:
        some = self.numbers[self.read : self.read + size]
        if not some:
            self.say_once("the connection has no more exchanges")
        self.read += len(some)
        self._head()
        if some:
            self._busy = True
            book, way, side, secrets = self.home.book, self.way, self.side, self.home.show_secrets
            beside(
                self, lambda: list(stream_lines([book.frames(number) for number in some], way, side, show_secrets=secrets)),
                self._show, self._not_read, group="stream",
            )  # fmt: skip

    def _show(self, lines: list[Text]) -> None:
        """Shows a part that was read."""
        self._busy = False
        log, place = self.query_one(RichLog), None
        for line in lines:
            if self._sought and line.plain.endswith(f" {self._sought}"):
                place, self._sought = len(log.lines), ""
            log.write(line)
        if place is not None:
            log.scroll_to(y=place, animate=False)

    def _not_read(self, error: Exception) -> None:
        self._busy = False
        self.notify(f"these messages cannot be read: {clean(str(error))}", severity="error", markup=False)

    def action_end(self, last: bool) -> None:
        """Scrolls to the first or the last message."""
        log = self.query_one(RichLog)
        (log.scroll_end if last else log.scroll_home)(animate=False)

    def action_bytes(self) -> None:
        """Switches between text and bytes."""
        self.way = WAYS[(WAYS.index(self.way) + 1) % len(WAYS)]
        self._again(self.number)

    def action_side(self) -> None:
        """Switches between one side and both."""
        self.side = BOTH[(BOTH.index(self.side) + 1) % len(BOTH)]
        self._again(self.number)
