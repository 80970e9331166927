"""The columns of the list of exchanges: the text of a cell, its width, its filter.

In: rows of `exchanges`. Out: texts. Law: every column of the table can be shown; combined columns are formatted as on the
command line (`kcap.output.grid`); control characters never reach the terminal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.filter.row_predicate import EPOCH, MICROSECOND
from kcap.output.grid import ELLIPSIS, call, clean, duration, endpoint, result, topics
from kcap.reports import drill_down
from kcap.reports.slow import RETRANSMITTED, largest, reason

Row = Mapping[str, Any]
GAP: Final = 1
"""Blanks between columns."""
NEEDED_MOST: Final = 36
"""Cells of an error or a reason that are shown before others are cut: the longest names of errors."""
WHY_COLUMN: Final = "why"
CUT_LAST: Final = frozenset({"result", "call"})
"""Columns that are cut last, and that keep their width if their cells are short."""
READABLE, RECOGNIZED, TELLING = 12, 14, 10
"""Widths: in which most client ids and topics still differ; in which an API is recognizable by its beginning; below which
topics and groups are omitted."""
NARROWEST: Final = 8
"""Minimum number of characters of a column that is cut."""
SHORTENED: Final = 18
SHORTEST: Final = 12
"""Cells of an API and its version before topics and groups are omitted, and after."""
SORTED: Final = ("▲", "▼")
"""Signs in the heading of the sorted column, ascending and descending."""
TIME_FORMS: Final = ("clock", "relative", "delta", "date")


@dataclass(frozen=True, slots=True)
class Head:
    """A column of the list."""

    name: str
    title: str
    columns: tuple[str, ...]
    """The columns that it is made from; rows are sorted by the first."""
    width: int
    text: Callable[[Row], str]
    right: bool = False
    rank: int = 0
    """Columns with the highest rank are omitted first; 0 is never omitted."""
    ends: bool = False
    """Whether its last word, such as a version, remains when it is cut."""
    grows: int = 0
    """Its share of the remaining width."""
    by: Callable[[Row], str | None] | None = None
    """The filter of its value; None if it has none."""


def equals(column: str, value: Any) -> str:
    """A filter for one value of a column; for a list, for all of its entries."""
    if isinstance(value, datetime):
        return f"time == {drill_down.moment((value - EPOCH) // MICROSECOND * 1000)}"
    if isinstance(value, list):
        return drill_down.every(*(drill_down.equals(column, entry) for entry in value if entry is not None)) or f"!{column}"
    return drill_down.equals(column, value)


def _nothing(_row: Row) -> str:
    """Times are formatted by `moment`, since they may depend on other rows."""
    return ""


def _client(row: Row) -> str:
    name = row["client_id"]
    return clean(name) if name else str(row["client_ip"])


def _api(row: Row) -> str:
    found = equals("api", row["api"]) if row["api"] is not None else equals("api_key", row["api_key"])
    return found if row["api_version"] is None else f"{found} && api_version == {row['api_version']}"


def _size(count: int | None) -> str:
    """Bytes in at most four characters and a unit."""
    if count is None:
        return ""
    if count < 10_000:
        return str(count)
    for unit in ("k", "M", "G"):
        count_ = count / 1000
        if count_ < 999.5 or unit == "G":
            return f"{count_:.0f}{unit}" if count_ >= 99.5 else f"{count_:.1f}{unit}"
        count = int(count_)
    return str(count)


def _latency(row: Row) -> str:
    if row["latency_ns"] is not None:
        return duration(row["latency_ns"])
    return f">{duration(row['age_ns'])}" if row["age_ns"] is not None else ""


def _bound(row: Row) -> str | None:
    """A filter for exchanges at least as slow."""
    return f"latency_ns >= {row['latency_ns']}" if row["latency_ns"] is not None else "!latency_ns"


def _result(row: Row) -> str | None:
    if row["outcome"] == "answered":
        return equals("error", row["error"]) if row["error"] is not None else "outcome == answered && !error"
    return f"outcome == {row['outcome']}" + (f" && reason == {row['reason']}" if row["reason"] else "")


def topics_filter(row: Row) -> str | None:
    """A filter for exchanges that concern all named topics of the row; None if there are none."""
    names = [name for name in row["topics"] or () if name is not None]
    return drill_down.every(*map(drill_down.topic, names)) or None


def client_filter(row: Row) -> str:
    """A filter for the exchanges of the row's client: by its id, else by its address."""
    return equals("client_id", row["client_id"]) if row["client_id"] else f"client_ip == {row['client_ip']}"


def end_filter(row: Row, side: str) -> str:
    """A filter for the exchanges with the same address and port on a side."""
    return f"{side}_ip == {row[f'{side}_ip']} && {side}_port == {row[f'{side}_port']}"


def _about(row: Row) -> str:
    """The subject of the exchange: topics, else a group."""
    found = topics(row["topics"], row["topic_ids"])
    return clean(found or row["group_id"] or row["transactional_id"] or "")


def _about_filter(row: Row) -> str | None:
    if row["topics"]:
        return topics_filter(row)
    for name in ("group_id", "transactional_id"):
        if row[name]:
            return equals(name, row[name])
    return None


WHY: Final = {
    "queue": ("queued", "queue_ns"), "network": ("network", "rtt_ns"), "service": ("broker", "service_ns"),
    "long_poll": ("poll", "long_poll_ns"), "throttle": ("throttle", "throttle_ns"), "muted": ("muted", "muted_ns"),
}  # fmt: skip
"""Part of the latency -> its name, its column."""


def _largest(row: Row) -> tuple[str, int]:
    """The largest part of the latency, and its length in ns, 0 if it is not known."""
    return largest(dict(row), long_polls=True) if row["latency_ns"] is not None else ("unknown", 0)


def _why(row: Row) -> str:
    """The largest part of the latency, a retransmission, and what the broker did; other oddities of the exchange."""
    flags = row["flags"] or ()
    lost = RETRANSMITTED in flags
    rest = ", ".join(flag.replace("_", " ") for flag in flags if flag != RETRANSMITTED)
    cause, length = _largest(row)
    if not length:
        return "; ".join(filter(None, (RETRANSMITTED * lost, rest)))
    said = f"{WHY[cause][0]} {duration(length)}"
    if cause == "service":
        said = f"{'resent, or ' * lost}{said}{reason(dict(row))}"
    elif lost:
        said += f", {RETRANSMITTED}"
    return f"{said}; {rest}" if rest else said


def reason_width(text: str) -> int:
    """Cells of a reason without its explanation: the largest part of the time, and its length."""
    said, more, _ = text.partition(":")
    return cell_len(said + more)


def _why_filter(row: Row) -> str | None:
    cause, length = _largest(row)
    if not length:
        return equals("flags", row["flags"]) if row["flags"] else None
    return f"{WHY[cause][1]} >= {row[WHY[cause][1]]}"


COMPOSED: Final = (
    Head("time", "Time", ("time",), 12, _nothing, by=lambda row: equals("time", row["time"])),
    Head("client", "Client", ("client_id", "client_ip"), 15, _client, grows=1, by=client_filter),
    Head("source", "Client address", ("client_ip", "client_port"), 21, lambda r: endpoint(r["client_ip"], r["client_port"]),
         rank=7, by=lambda row: end_filter(row, "client")),
    Head("broker", "Broker", ("server_ip", "server_port"), 21, lambda row: endpoint(row["server_ip"], row["server_port"]),
         rank=4, by=lambda row: end_filter(row, "server")),
    Head("call", "Request", ("api", "api_version", "api_key"), 18, lambda row: clean(call(row["api"], row["api_version"])),
         ends=True, by=_api),
    Head("latency", "Latency", ("latency_ns", "age_ns"), 8, _latency, right=True, by=_bound),
    Head(WHY_COLUMN, "Why", ("service_ns", "latency_ns", "queue_ns", "rtt_ns", "long_poll_ns", "throttle_ns", "muted_ns",
                        "flags", "api", "error", "acks", "cluster_brokers", "request_bytes", "response_bytes"),
         14, _why, rank=5, grows=2, by=_why_filter),
    Head("sent", "Out", ("request_bytes",), 5, lambda row: _size(row["request_bytes"]), right=True, rank=6,
         by=lambda row: equals("request_bytes", row["request_bytes"])),
    Head("received", "In", ("response_bytes",), 5, lambda row: _size(row["response_bytes"]), right=True, rank=6,
         by=lambda row: equals("response_bytes", row["response_bytes"])),
    Head("result", "Result", ("error", "outcome", "reason"), 12, lambda r: clean(result(r["outcome"], r["reason"], r["error"])),
         grows=1, by=_result),
    Head("about", "Topics, group", ("topics", "topic_ids", "group_id", "transactional_id"), 18, _about, grows=3,
         by=_about_filter),
    Head("packet", "Packet", ("request_first_packet", "response_first_packet"), 7,
         lambda row: str(row["request_first_packet"] or row["response_first_packet"] or ""), right=True, rank=8,
         by=lambda row: f"frame.number == {row['request_first_packet'] or row['response_first_packet']}"),
    Head("flags", "Flags", ("flags",), 10, lambda row: ",".join(row["flags"] or ()), rank=9,
         by=lambda row: equals("flags", row["flags"])),
)  # fmt: skip
DEFAULTS: Final = tuple(head.name for head in COMPOSED)


def _plain(name: str, kind: str) -> Head:
    """A column of the table as it is."""
    number = kind.startswith("int")
    if name.endswith("_ns") and not name.endswith(("first_ns", "last_ns")):
        return Head(name, name.removesuffix("_ns"), (name,), max(8, len(name) - 3), lambda row: duration(row[name]), right=True,
                    by=lambda row: equals(name, row[name]))  # fmt: skip

    def text(row: Row) -> str:
        value = row[name]
        if value is None:
            return ""
        if isinstance(value, list):
            return clean(",".join("" if entry is None else str(entry) for entry in value))
        return clean(str(value).lower() if isinstance(value, bool) else str(value))

    return Head(
        name, name, (name,), max(len(name), 8 if number else 14), text, right=number, by=lambda r: equals(name, r[name])
    )


HEADS: Final[dict[str, Head]] = {
    **{column.name: _plain(column.name, column.type) for column in (*EXCHANGES, *ON_REQUEST["exchanges"])},
    **{head.name: head for head in COMPOSED},
}
"""Every column that the list may show."""


def _give_way(
    heads: Sequence[Head], narrowed: dict[str, int], widths: Mapping[str, int], needs: Mapping[str, int], over: int
) -> list[Head]:
    """Narrows columns (`narrowed`: name -> width) until the line is `over` cells shorter; returns the columns to omit.

    First, text that is not needed is cut as far as rows can still be distinguished, then names of APIs (not their versions),
    which make room for a reason first, then text that is not needed once more; then topics and groups are omitted; errors are
    cut last. The latency is never cut, since without its unit it would be wrong.
    """

    def narrow(names: Sequence[str], least: int) -> None:
        nonlocal over
        while over > 0 and names:
            widest = max(names, key=narrowed.__getitem__)
            if narrowed[widest] <= least:
                return
            narrowed[widest] -= 1
            over -= 1

    calls = [head for head in heads if head.ends and head.name not in widths]
    others = [name for name in narrowed if name not in needs]
    for head in calls:
        narrowed[head.name] = widths.get(head.name, needs.get(head.name, head.width))
    if WHY_COLUMN in narrowed:
        narrow([head.name for head in calls], SHORTENED)
    narrow(others, READABLE)
    narrow([head.name for head in calls], RECOGNIZED)
    narrow(others, TELLING)
    gone = [head for head in heads if head.name == "about"] if over > 0 else []
    for head in gone:
        over -= narrowed.pop(head.name, widths.get(head.name, head.width)) + GAP
    narrow([head.name for head in calls], SHORTEST)
    narrow([name for name in others if name in narrowed], NARROWEST)
    narrow([name for name in narrowed if name in needs and not HEADS[name].ends], NARROWEST)
    return gone


def fitted(
    names: Sequence[str],
    room: int,
    widths: Mapping[str, int],
    *,
    chosen: bool,
    needs: Mapping[str, int] | None = None,
    reason: int = 0,
) -> list[tuple[Head, int]]:
    """The columns that fit a width, and their widths.

    `chosen`: the user's choice, of which nothing is omitted. `needs`: column -> width of its longest cell; what a column does
    not need goes to others, and first to cells that would be cut. `reason`: cells of the longest reason without its
    explanation, for which others make room.
    """
    heads = [HEADS[name] for name in names if name in HEADS]
    longest = needs or {}
    needs = {name: max(HEADS[name].width, min(longest.get(name, 0), NEEDED_MOST)) for name in CUT_LAST}

    def base(head: Head) -> int:
        width = max(needs.get(head.name, head.width), min(reason, NEEDED_MOST) * (head.name == WHY_COLUMN))
        if head.name not in CUT_LAST and longest.get(head.name):
            width = min(width, max(longest[head.name], len(head.title) + len(SORTED[0]), NARROWEST))
        return widths.get(head.name, width)

    def need(call: int = room) -> int:
        """Cells of the line if names of APIs have at most `call` cells."""
        return sum((min(base(head), call) if head.ends else base(head)) + GAP for head in heads) - GAP

    while not chosen and need() > room:
        ranked = [head for head in heads if head.rank]
        if not ranked:
            break
        first = max(ranked, key=lambda head: head.rank)
        if first.name == WHY_COLUMN and need(SHORTENED) <= room:
            break  # names of APIs make room for the reason
        heads.remove(first)
    narrowed = {head.name: base(head) for head in heads if head.grows and head.name not in widths and not chosen}
    if not chosen:
        for place in _give_way(heads, narrowed, widths, needs, need() - room):
            heads.remove(place)
    given = {head.name: narrowed.get(head.name, base(head)) for head in heads}
    left = max(0, room - sum(width + GAP for width in given.values()) + GAP)
    for name in sorted((name for name in given if name not in widths), key=lambda name: longest.get(name, 0) - given[name]):
        more = max(0, min(left, longest.get(name, 0) - given[name]))
        given[name] += more
        left -= more
    shares = sum(head.grows for head in heads if head.name not in widths)
    made = []
    for head in heads:
        width = given[head.name]
        if head.grows and shares and head.name not in widths:
            more = left * head.grows // shares
            width += min(more, 25) if head.grows == 1 else more
        made.append((head, width))
    spare = room - sum(width + GAP for _, width in made) + GAP
    if made and spare > 0:
        at = max(range(len(made)), key=lambda at: made[at][0].grows)
        if made[at][0].grows and made[at][0].name not in widths:
            made[at] = (made[at][0], made[at][1] + spare)
    return made


def moment(ns: int | None, form: str, first_ns: int, before_ns: int | None) -> str:
    """A time in the form of the list."""
    if ns is None:
        return ""
    if form == "relative":
        return f"{(ns - first_ns) / 1e9:.6f}"
    if form == "delta":
        return "" if before_ns is None else f"{'+' if ns >= before_ns else ''}{(ns - before_ns) / 1e9:.6f}"
    whole, rest = divmod(ns, 1_000_000_000)
    if form == "clock":  # needed for each line of each page: takes a fifth of the time of a calendar
        minutes, second = divmod(whole % 86_400, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{rest // 1_000_000:03d}"
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1000:06d}"


TIME_WIDTHS: Final = {"clock": 12, "relative": 14, "delta": 14, "date": 26}


def cut(text: str, width: int, *, right: bool, ends: bool = False) -> str:
    """A cell cut to a width in terminal cells: a Chinese character or an emoji takes two.

    `ends`: the last word remains if there is room for it, such as the version of a request.
    """
    size = cell_len(text)
    if size > width:
        before, blank, last = text.rpartition(" ")
        kept = cell_len(last) + 1
        if ends and blank and width > kept + 1:
            return f"{cut(before, width - kept, right=False)} {last}"
        return set_cell_size(text, width - 1) + ELLIPSIS if width else ""
    blanks = " " * (width - size)
    return blanks + text if right else text + blanks
