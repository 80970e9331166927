"""Tables for people: aligned columns of text in a terminal, a pipe or a page.

In: record batches. Out: lines. Law: a column's width is settled by the header and the first rows, so that rows can leave as
they come; what does not fit is cut with an ellipsis where there is a width to keep to, and stands out where there is none.
Ports, versions and errors are cut last; columns that a terminal has no room for are named at the end; no line is wider than
the terminal.
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
"""Units of a duration of a minute and more, of which two are shown."""
UNITS: Final = (("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
RED, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
RESULT_TAIL: Final = 7
"""Of an error this much of the end stays when all else is cut already."""
CUT_LEAST: Final = 8
"""Columns are not cut below this."""

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
"""Columns that are shown where none were requested; the other tables are shown whole."""


@dataclass(frozen=True, slots=True)
class GridStyle:
    """What the output is like."""

    width: int | None = None
    """Columns of the terminal, None where lines may be as long as they are."""
    color: bool = False
    composed: bool = False
    """Columns that belong together are put together: the choice was not the user's."""


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    right: bool = False
    least: int = 0
    """Width that later rows are likely to need."""
    rank: int = 0
    """On a narrow terminal the highest goes first; 0 stays."""
    tail: int = 0
    """Characters at the end of a text that stay when it is cut, which happens after all that can be left out is."""

    def cut_to(self, width: int) -> int:
        """The width below which columns with a rank go before this one of a natural `width` is cut."""
        whole = self.right or self.tail or self.name in WHOLE
        return width if whole else min(width, max(CUT_LEAST, self.least, len(self.name)))

    @property
    def floor(self) -> int:
        """The width of a text with a tail below which other columns go."""
        return self.least if self.tail == RESULT_TAIL else CUT_LEAST


RANKS: Final = {
    "flags": 3, "request_bytes": 5, "response_bytes": 5, "ended": 5, "detail": 6, "began": 6, "client_missing": 6,
    "server_missing": 6, "packets": 7, "retransmitted": 7, "spurious": 8, "client_captured": 7, "server_captured": 7,
    "exchanges": 5, "rtt_min_ns": 7,
}  # fmt: skip
OF_CONNECTIONS: Final = {"client_id": 5}
"""Ranks in the table of connections, whose rows are about addresses; a row of exchanges is about its client."""
WHOLE: Final = ("connection", "time", "client_ip", "server_ip", "api", "error", "versions")
"""Texts that say nothing once they are cut."""
STAYS: Final = (
    "connection", "exchange", "error", "kind", "why", "reason", "outcome", "result", "api", "api_version", "version",
    "versions", "chosen", "verdict", "port", "server_port", "client_port", "server", "client", "topic", "partition",
)  # fmt: skip
"""Columns that go last where a terminal has no room for all, the first of these last of all; of others the rightmost goes."""


def duration(nanoseconds: int | None) -> str:
    """A duration of any length: three digits and a unit, of a minute and more two units. `1.25ms`, `2m 5s`, `3d 4h`."""
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
"""What a terminal must not obey becomes visible: names on the wire may hold anything."""


def endpoint(ip: str, port: int) -> str:
    """`10.0.0.1:9092`, `[::1]:9092`."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def counts(found: Mapping[str, int]) -> str:
    """`8 tls, 1 http`: of a counter the most frequent first."""
    return ", ".join(f"{n:,} {name}" for name, n in (found.most_common() if isinstance(found, Counter) else found.items()))


def call(api: str | None, version: int | None) -> str:
    """`Fetch v17`; a question mark for an API that no Kafka release has."""
    return (api or "") if version is None else f"{api or '?'} v{version}"


def result(outcome: str, reason: str | None, error: str | None) -> str:
    """`ok`, Kafka's name of the error, or how it ended otherwise."""
    if outcome == "answered":
        return "ok" if error == "NONE" else error or ""
    return outcome if reason is None else f"{outcome}: {reason}"


def topics(names: list[str | None] | None, ids: list[str | None] | None) -> str:
    """Names, an id where there is no name, each once: the request may name what the response has by its id."""
    return ",".join(dict.fromkeys(name or uuid or "" for name, uuid in zip(names or (), ids or ())))


COMPOSED: Final[dict[str, tuple[Cell, int, Callable[..., str]]]] = {
    "client_ip": (Cell("client", least=15, rank=2, tail=6), 2, endpoint),
    "server_ip": (Cell("server", least=15, rank=4, tail=6), 2, endpoint),
    "api": (Cell("api", least=16, tail=4), 2, call),
    "outcome": (Cell("result", least=12, tail=RESULT_TAIL), 3, result),
    "topics": (Cell("topics", rank=1), 2, topics),
}
"""First of some columns -> what they become together, how many they are, and how."""


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
    """Writes aligned lines."""

    def __init__(self, sink: OutputSink, schema: pa.Schema, look: GridStyle) -> None:
        self._sink = sink
        self._nested = [field.name for field in schema if is_nested(field.type)]
        self._schema = pa.schema([field for field in schema if field.name not in self._nested])
        self._look = look
        self._widths: list[int] | None = None
        """0 for a column that is left out."""
        self._day: str | None = None
        self._left_out: dict[str, None] = {}
        """Columns of which the terminal does not show a value."""

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
        """A table without rows has its header all the same."""
        if self._widths is None:
            heads, texts = cells(pa.RecordBatch.from_pylist([], self._schema), self._look.composed)
            self._widths = self._settle(heads, texts)
            self._sink.write((self._head(heads) + "\n").encode())
        if self._left_out and self._look.width is not None:
            from textwrap import wrap

            for line in wrap(not_shown(list(self._left_out)), self._look.width):
                self._sink.write(f"{DIM}{line}{PLAIN}\n".encode() if self._look.color else f"{line}\n".encode())

    def _child(self, name: str, child: dict[str, Any]) -> str:
        """What belongs to a row, on a line below it: all that there is to say."""
        said = [f"{key}={clean(str(value))}" for key, value in child.items() if value not in (None, [], "")]
        line = GAP.join([f"    {name.removesuffix('s')}", *said])
        width = self._look.width
        return line if width is None or len(line) <= width else line[: width - 1] + ELLIPSIS

    def _days(self, batch: pa.RecordBatch) -> list[str] | None:
        """The day of each row, where only the time of day is shown: it stands in the header."""
        shown = "time" in batch.schema.names and pa.types.is_timestamp(batch.schema.field("time").type)
        if not self._look.composed or not shown:
            return None
        days, places, _ = by_second(batch.column("time"), "%Y-%m-%d")
        return [days[place] for place in places]

    def _settle(self, heads: Sequence[Cell], texts: Sequence[Sequence[str]]) -> list[int]:
        """Widths of all columns; on a narrow terminal some are left out, and the widest texts give way."""
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
        for at in reversed([*gone, *out]):  # the last one that went may have left room for smaller ones that went before
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
        """Color of each row: red where the broker refused, dim where there is no answer to speak of."""
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
    """Sets widths to 0, in this order, until a line fits; which these are."""
    gone = []
    for at in order:
        if taken(widths) <= room:
            break
        widths[at] = 0
        gone.append(at)
    return gone


def not_shown(heads: Sequence[str]) -> str:
    """The sentence about columns that a terminal has no room for, nothing for none."""
    return f"no room for the columns {', '.join(heads)}; a wider terminal, a pipe or a file has them" if heads else ""


def taken(widths: Sequence[int]) -> int:
    """Columns of the terminal that a line takes."""
    shown = [width for width in widths if width]
    return sum(shown) + len(GAP) * (len(shown) - 1)
