"""Tables for people: aligned columns of text in a terminal, a pipe or a page.

In: record batches. Out: lines. Law: the header and the first rows determine the width of a column, so that rows can be written
as they come. Text that does not fit is cut with an ellipsis if the width is limited, and overflows otherwise. Ports, versions
and errors are cut last. Columns that do not fit a terminal are named at the end. No line is wider than the terminal.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kcap.output.escaping import visible
from kcap.output.sink import OutputSink
from kcap.output.text_columns import is_nested, readable_column
from kcap.output.time_format import by_second

ELLIPSIS: Final = "…"
GAP: Final = "  "
LONG: Final = (("s", 10**9), ("m", 60 * 10**9), ("h", 3600 * 10**9), ("d", 86_400 * 10**9))
"""Units of durations of a minute and more, which are shown with two units."""
UNITS: Final = (("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
RED, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
RESULT_TAIL: Final = 7
"""Number of characters at the end of an error that remain when everything else is cut."""
CUT_LEAST: Final = 8
"""Minimum width to which columns are cut."""

DEFAULTS: Final = {
    "exchanges": (
        "time", "client_ip", "client_port", "server_ip", "server_port", "client_id", "api", "api_version", "request_bytes",
        "response_bytes", "latency_ns", "outcome", "reason", "error", "topics", "topic_ids", "flags",
    ),
    "connections": (
        "connection", "client_ip", "client_port", "server_ip", "server_port", "phase", "detail", "began", "ended", "packets",
        "exchanges", "rtt_min_ns", "retransmitted", "spurious", "client_captured", "client_missing", "server_captured",
        "server_missing", "client_id",
    ),
}  # fmt: skip
"""Columns shown by default; other tables are shown with all columns."""


@dataclass(frozen=True, slots=True)
class GridStyle:
    """Properties of the output."""

    width: int | None = None
    """Columns of the terminal; None for unlimited lines."""
    color: bool = False
    composed: bool = False
    """Whether related columns are combined, since the user did not choose the columns."""


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    right: bool = False
    least: int = 0
    """Width that later rows are likely to need."""
    rank: int = 0
    """Columns with the highest rank are omitted first on a narrow terminal; 0 is never omitted."""
    tail: int = 0
    """Number of characters at the end of a text that remain when it is cut, which happens after columns were omitted."""

    def cut_to(self, width: int) -> int:
        """The minimum width of this column, of natural `width`, before columns with a rank are omitted."""
        whole = self.right or self.tail or self.name in WHOLE
        return width if whole else min(width, max(CUT_LEAST, self.least, len(self.name)))

    @property
    def floor(self) -> int:
        """The minimum width of a text with a tail before other columns are omitted."""
        return self.least if self.tail == RESULT_TAIL else CUT_LEAST


RANKS: Final = {
    "flags": 3, "request_bytes": 5, "response_bytes": 5, "ended": 5, "detail": 6, "began": 6, "client_missing": 6,
    "server_missing": 6, "packets": 7, "retransmitted": 7, "spurious": 8, "client_captured": 7, "server_captured": 7,
    "exchanges": 5, "rtt_min_ns": 7,
}  # fmt: skip
OF_CONNECTIONS: Final = {"client_id": 5}
"""Ranks in the table of connections, whose rows are mainly about addresses; rows of exchanges are about clients."""
WHOLE: Final = ("connection", "time", "client_ip", "server_ip", "api", "error", "versions")
"""Columns whose texts are useless if they are cut."""
STAYS: Final = (
    "connection", "exchange", "error", "kind", "why", "reason", "outcome", "result", "api", "api_version", "version",
    "versions", "chosen", "verdict", "port", "server_port", "client_port", "server", "client", "topic", "partition",
)  # fmt: skip
"""Columns that are omitted last on a narrow terminal, the first of these last of all; others go from the right."""


def duration(nanoseconds: int | None) -> str:
    """A duration of any length: three digits and a unit, or two units from a minute on. `1.25ms`, `2m 5s`, `3d 4h`."""
    if nanoseconds is None:
        return ""
    size, sign = abs(nanoseconds), "-" if nanoseconds < 0 else ""
    for (lower, part), (unit, scale) in zip(LONG[-2::-1], LONG[:0:-1]) if size >= LONG[1][1] else ():
        if size >= scale:
            return f"{sign}{size // scale}{unit} {size % scale // part}{lower}"
    unit, scale = next(((unit, scale) for unit, scale in reversed(UNITS) if size >= scale), UNITS[0])
    value = size / scale
    text = f"{value:.0f}" if scale == 1 or value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    return f"{sign}{text}{unit}"


clean = visible
"""Makes control characters visible: names on the wire may have any characters."""


def endpoint(ip: str, port: int) -> str:
    """`10.0.0.1:9092`, `[::1]:9092`."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def counts(found: Mapping[str, int]) -> str:
    """`8 tls, 1 http`: a counter, the most frequent first."""
    return ", ".join(f"{n:,} {name}" for name, n in (found.most_common() if isinstance(found, Counter) else found.items()))


def call(api: str | None, version: int | None) -> str:
    """`Fetch v17`; with a question mark for an API that no Kafka release has."""
    return (api or "") if version is None else f"{api or '?'} v{version}"


def result(outcome: str, reason: str | None, error: str | None) -> str:
    """`ok`, Kafka's name of the error, or the outcome."""
    if outcome == "answered":
        return "ok" if error == "NONE" else error or ""
    return outcome if reason is None else f"{outcome}: {reason}"


def topics(names: list[str | None] | None, ids: list[str | None] | None) -> str:
    """Topic names, or ids without a name, each once: the request may name what the response has by its id."""
    return ",".join(dict.fromkeys(name or uuid or "" for name, uuid in zip(names or (), ids or ())))


COMPOSED: Final[dict[str, tuple[Cell, int, Callable[..., str]]]] = {
    "client_ip": (Cell("client", least=15, rank=2, tail=6), 2, endpoint),
    "server_ip": (Cell("server", least=15, rank=4, tail=6), 2, endpoint),
    "api": (Cell("api", least=16, tail=4), 2, call),
    "outcome": (Cell("result", least=12, tail=RESULT_TAIL), 3, result),
    "topics": (Cell("topics", rank=1), 2, topics),
}
"""First of some columns -> name of the combined column, number of columns, function that combines them."""


def cells(batch: pa.RecordBatch, composed: bool) -> tuple[list[Cell], list[list[str]]]:
    """The columns of a batch as text."""
    heads: list[Cell] = []
    texts: list[list[str]] = []
    ranks = RANKS | OF_CONNECTIONS if "phase" in batch.schema.names else RANKS
    at = 0
    while at < batch.num_columns:
        field, column = batch.schema.field(at), batch.column(at)
        if composed and field.name in COMPOSED:
            head, count, join = COMPOSED[field.name]
            parts: list[list[Any]] = [other.to_pylist() for other in batch.columns[at : at + count]]
            heads.append(head)
            texts.append([clean(join(*values)) for values in zip(*parts)])
            at += count
            continue
        at += 1
        name, rank = field.name, ranks.get(field.name, 0)
        if name.endswith("_ns") and not name.endswith(("first_ns", "last_ns")):
            heads.append(Cell(name.removesuffix("_ns"), right=True, least=8, rank=rank))
            texts.append([duration(value) for value in column.to_pylist()])
        elif composed and pa.types.is_timestamp(field.type):
            heads.append(Cell(name, least=15))
            seconds, places, fractions = by_second(column, "%H:%M:%S")
            texts.append([f"{seconds[place]}.{fraction:06d}" for place, fraction in zip(places, fractions)])
        else:
            heads.append(Cell(name, pa.types.is_integer(field.type), rank=rank))
            texts.append([clean(str(text)) for text in readable_column(column).to_pylist()])
    return heads, texts


class Grid:
    """Writes rows as aligned lines."""

    def __init__(self, sink: OutputSink, schema: pa.Schema, look: GridStyle) -> None:
        self._sink = sink
        self._nested = [field.name for field in schema if is_nested(field.type)]
        self._schema = pa.schema([field for field in schema if field.name not in self._nested])
        self._look = look
        self._widths: list[int] | None = None
        """Widths of the columns; 0 for an omitted column."""
        self._day: str | None = None
        self._left_out: dict[str, None] = {}
        """Omitted columns that had a value."""

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        children = [(name, batch.column(name).to_pylist()) for name in self._nested]
        batch = batch.drop_columns(self._nested) if self._nested else batch
        heads, texts = cells(batch, self._look.composed)
        days = self._days(batch)
        out = []
        if self._widths is None:
            self._widths = self._settle(heads, texts)
            if days is None:
                out.append(self._head(heads))
        self._left_out |= dict.fromkeys(heads[at].name for at, width in enumerate(self._widths) if not width and any(texts[at]))
        shade = self._shade(batch)
        for at, row in enumerate(zip(*texts)):
            if days is not None and days[at] != self._day:
                self._day = days[at]
                out.append(self._head(heads))
            line = self._line(heads, row)
            out.append(f"{shade[at]}{line}{PLAIN}" if shade and shade[at] else line)
            out += [self._child(name, child) for name, lists in children for child in lists[at] or ()]
        self._sink.write(("\n".join(out) + "\n").encode(errors="replace"))
        self._sink.flush()

    def close(self) -> None:
        """Writes the header if there were no rows."""
        if self._widths is None:
            heads, texts = cells(pa.RecordBatch.from_pylist([], self._schema), self._look.composed)
            self._widths = self._settle(heads, texts)
            self._sink.write((self._head(heads) + "\n").encode())
        if self._left_out and self._look.width is not None:
            from textwrap import wrap

            for line in wrap(not_shown(list(self._left_out)), self._look.width):
                self._sink.write(f"{DIM}{line}{PLAIN}\n".encode() if self._look.color else f"{line}\n".encode())

    def _child(self, name: str, child: dict[str, Any]) -> str:
        """A nested row, on a line of its own with all of its values."""
        said = [f"{key}={clean(str(value))}" for key, value in child.items() if value not in (None, [], "")]
        line = GAP.join([f"    {name.removesuffix('s')}", *said])
        width = self._look.width
        return line if width is None or len(line) <= width else line[: width - 1] + ELLIPSIS

    def _days(self, batch: pa.RecordBatch) -> list[str] | None:
        """The day of each row, if only the time of day is shown: the header has the day."""
        shown = "time" in batch.schema.names and pa.types.is_timestamp(batch.schema.field("time").type)
        if not self._look.composed or not shown:
            return None
        days, places, _ = by_second(batch.column("time"), "%Y-%m-%d")
        return [days[place] for place in places]

    def _settle(self, heads: Sequence[Cell], texts: Sequence[Sequence[str]]) -> list[int]:
        """Determines the widths of all columns. On a narrow terminal some are omitted, and the widest texts are cut."""
        longest = (max(map(len, column), default=0) for column in texts)
        widths = [max(len(cell.name), cell.least, size) for cell, size in zip(heads, longest)]
        if self._look.width is None:
            return widths
        room = self._look.width
        least = [cell.cut_to(width) for cell, width in zip(heads, widths)]
        filled = [any(column) for column in texts]
        ranked = sorted((at for at, cell in enumerate(heads) if cell.rank), key=lambda at: (filled[at], -heads[at].rank))
        blank = [] if self._look.composed else [at for at, some in enumerate(filled) if not some]
        gone = leave_out([*blank, *ranked], least, room)
        floor = [min(size, cell.floor) if cell.tail else size for cell, size in zip(heads, least)]
        stay = {name: len(STAYS) - place for place, name in enumerate(STAYS)}
        others = sorted(range(1, len(heads)), key=lambda at: (stay.get(heads[at].name, 0), -at))
        out = leave_out([at for at in others if floor[at]], floor, room)
        least = [0 if at in out else size for at, size in enumerate(least)]
        for at in reversed([*gone, *out]):  # the last omitted column may leave room for smaller ones omitted before
            if taken([*least, widths[at]]) <= room:
                floor[at] = least[at] = widths[at]
        widths = [width if floor[at] else 0 for at, width in enumerate(widths)]
        while taken(widths) > room:
            able = [at for at, width in enumerate(widths) if width > (floor if heads[at].tail == 0 else least)[at]]
            able = able or [at for at, cell in enumerate(heads) if cell.tail < RESULT_TAIL and widths[at] > floor[at]]
            able = able or [at for at, width in enumerate(widths) if width > floor[at]] or [0]
            widths[max(able, key=lambda at: widths[at])] -= 1
        return widths

    def _head(self, heads: Sequence[Cell]) -> str:
        names = [f"time {self._day}" if self._day and cell.name == "time" else cell.name for cell in heads]
        line = self._line(heads, names)
        return f"{BOLD}{line}{PLAIN}" if self._look.color else line

    def _line(self, heads: Sequence[Cell], row: Sequence[str]) -> str:
        assert self._widths is not None
        parts = []
        for cell, width, text in zip(heads, self._widths, row):
            if not width:
                continue
            if self._look.width is not None and len(text) > width:
                text = text[: width - 1 - cell.tail] + ELLIPSIS + (text[-cell.tail :] if cell.tail else "")
            parts.append(text.rjust(width) if cell.right else text.ljust(width))
        return GAP.join(parts).rstrip()

    def _shade(self, batch: pa.RecordBatch) -> list[str] | None:
        """Color of each row: red if the broker refused, dim if there is no response."""
        names = batch.schema.names
        if not self._look.color or "outcome" not in names:
            return None
        outcomes = batch.column("outcome").to_pylist()
        errors = batch.column("error").to_pylist() if "error" in names else [None] * batch.num_rows
        return [
            RED if error not in (None, "NONE") else DIM if outcome in ("unanswered", "orphan") else ""
            for outcome, error in zip(outcomes, errors)
        ]


def leave_out(order: Sequence[int], widths: list[int], room: int) -> list[int]:
    """Sets widths to 0, in this order, until a line fits; returns the columns."""
    gone = []
    for at in order:
        if taken(widths) <= room:
            break
        widths[at] = 0
        gone.append(at)
    return gone


def not_shown(heads: Sequence[str]) -> str:
    """The sentence about omitted columns; empty for none."""
    return f"no room for the columns {', '.join(heads)}; a wider terminal, a pipe or a file has them" if heads else ""


def taken(widths: Sequence[int]) -> int:
    """Number of terminal columns that a line takes."""
    shown = [width for width in widths if width]
    return sum(shown) + len(GAP) * (len(shown) - 1)
