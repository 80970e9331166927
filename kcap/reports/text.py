"""Tables of a report for people: columns that fit the terminal, durations and sizes with units, bars of text.

In: rows of plain values and descriptions of their columns. Out: lines. Law: no line is wider than the given width; on a narrow
terminal the least important columns are omitted first, then the longest names are shortened; omissions are reported. Without a
terminal (`UNLIMITED`) nothing is omitted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, Final

from kcap.output.grid import BOLD, CUT_LEAST, DIM, ELLIPSIS, GAP, PLAIN, RED, clean, duration, not_shown, taken

Row = dict[str, Any]
BARS: Final = " ▁▂▃▄▅▆▇█"
ASCII_BARS: Final = " .:-=+*#@"
UNLIMITED: Final = 1 << 20
"""Width of text that does not go to a terminal: nothing is cut, wrapped or omitted."""
NAME_LEAST: Final = 18
"""Names are cut to this length before a column is omitted, and further only if no more column can be omitted."""
SENTENCE_LEAST: Final = 24
"""Sentences are wrapped to no less than this width before a column is omitted."""
COLUMN_LEAST: Final = 4
"""Minimum width of columns in a table of which nothing may be omitted."""
UNCOUNTED: Final = ("id", "port", "epoch", "partition", "version")
"""Last words of the names of numbers that are not counts."""
LISTED: Final = 8
"""Number of a list's values that a line shows."""
SIZES: Final = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Aim:
    """A link to exchanges of one side of a comparison."""

    filter: str
    at: int
    """Position of its capture among those of the report."""


Target = str | tuple[str, int] | Aim
"""The link of a number: the display filter of the exchanges that it counts, or the name of its exchange."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a table for people."""

    head: str
    text: Callable[[Row], str]
    right: bool = True
    rank: int = 0
    """Columns with the highest rank are omitted first on a narrow terminal; 0 is never omitted."""
    whole: bool = False
    """Whether it is never cut; numbers never are."""
    least: int = 0
    """Minimum number of its characters that take precedence over columns with a rank."""
    wraps: bool = False
    """Whether it is a sentence in the last column, which is wrapped if it is too long."""
    down: Callable[[Row], Target | None] | None = None
    """Returns the link of the value; None for that of the row, if rows have one."""
    key: Callable[[Row], Any] | None = None
    """Returns the sort key of a row where rows can be sorted; None sorts by the text."""
    counts: Callable[[Row], int | None] | None = None
    """For a number of exchanges: returns the number, which its link selects."""
    tone: Callable[[Row], str] | None = None
    """Returns the tone of the value in the terminal UI, one of `kcap.tui.views.sheet.TONES`."""


@dataclass(frozen=True, slots=True)
class Style:
    """What the terminal can do."""

    width: int
    color: bool
    unicode: bool

    @property
    def whole(self) -> bool:
        """Whether everything is shown, since the text does not go to a terminal."""
        return self.width >= UNLIMITED

    def bold(self, text: str) -> str:
        """Style of a heading."""
        return f"{BOLD}{text}{PLAIN}" if self.color else text

    def red(self, text: str) -> str:
        """Style of what is bad."""
        return f"{RED}{text}{PLAIN}" if self.color else text

    def dim(self, text: str) -> str:
        """Style of minor text."""
        return f"{DIM}{text}{PLAIN}" if self.color else text


def count(many: int, noun: str, plural: str | None = None) -> str:
    """`1 packet`, `2,000 packets`."""
    return f"{many:,} {noun if many == 1 else plural or noun + 's'}"


def size(count: int | None) -> str:
    """`1.2 kB`. Units are powers of ten, as is usual for network traffic, although Kafka's own limits are powers of two."""
    if count is None:
        return ""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {SIZES[unit]}" if unit == 0 or value >= 99.95 else f"{value:.1f} {SIZES[unit]}"


def number(value: float | None) -> str:
    """`12,345`, or an empty string for None."""
    return "" if value is None else f"{value:,}"


def words(value: Any) -> str:
    """Any value of a grouping."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def milliseconds(value: float | None) -> str:
    """Milliseconds of Kafka as a duration."""
    return "" if value is None else duration(round(value * 1_000_000)) if value else "0ms"


TIMES: Final[dict[str, Callable[[int], str]]] = {"ns": duration, "ms": milliseconds}
"""Last word of a name with a unit of time -> how the value is written."""


def listed(value: Any) -> str:
    """A value in a line of text; of a long list, the first entries and the number of further ones."""
    if isinstance(value, list):
        return ", ".join(map(words, value[:LISTED])) + (f" and {len(value) - LISTED:,} more" if len(value) > LISTED else "")
    return words(value)


NO_LABELS: Final[Mapping[str, str]] = {}


def figures(values: Mapping[str, Any], labels: Mapping[str, str] = NO_LABELS) -> str:
    """Named values in a line: `p95 318ms; requests 1,160; apis Produce, Fetch`. A time has its unit after it instead of in its
    name. Numbers that are not counts, such as ids and ports, have no thousands separators. Empty lists are omitted. `labels`:
    replacements for some names."""
    parts = []
    for name, value in values.items():
        if value == []:
            continue
        base, _, last = name.rpartition("_")
        label = labels.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and base and last in TIMES:
            name, text = base, TIMES[last](value)
        else:
            text = number(value) if whole and last not in UNCOUNTED else listed(value)
            name = name.removesuffix("s") if isinstance(value, list) and len(value) == 1 else name
            label = f"{label}:" if label else None
        parts.append(f"{label or name.replace('_', ' ')} {text}")
    return "; ".join(parts)


def spark(values: Sequence[float | None], style: Style) -> str:
    """One bar per value, none for None; a value above zero always has a visible bar."""
    bars = BARS if style.unicode else ASCII_BARS
    most = max((value for value in values if value is not None), default=0)
    out = []
    for value in values:
        level = 0 if not value or most <= 0 else max(1, round(value / most * (len(bars) - 1)))
        out.append(bars[level])
    return "".join(out)


def spark_log(values: Sequence[int | None], style: Style) -> str:
    """One bar per value by its order of magnitude, which keeps a slow second and fast ones visible together."""
    from math import log10

    there = [value for value in values if value is not None and value > 0]
    if not there:
        return ""
    low, high = log10(min(there)), log10(max(there))
    span = max(high - low, 0.3)
    return spark([None if value is None or value <= 0 else 1 + 7 * (log10(value) - low) / span for value in values], style)


def lines(
    rows: Sequence[Row], columns: Sequence[TextColumn], style: Style, red: Callable[[Row], bool] | None = None
) -> list[str]:
    """The lines of the table, and the columns that do not fit."""
    texts = [[clean(column.text(row)) for column in columns] for row in rows]
    widths = fitted(columns, texts, style.width)
    out = [style.bold(line([column.head for column in columns], columns, widths))]
    for row, cells in zip(rows, texts):
        tone = style.red if red is not None and red(row) else str
        out += [tone(line(part, columns, widths)) for part in on_lines(cells, columns, widths)]
    gone = [column.head for at, column in enumerate(columns) if not widths[at] and any(row[at] for row in texts)]
    return out + [style.dim(text) for text in wrapped(not_shown(gone), style.width)]


def fitted(columns: Sequence[TextColumn], texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of the columns; 0 for omitted ones."""
    widths = [max([len(column.head), *(len(row[at]) for row in texts)]) for at, column in enumerate(columns)]
    fixed = [column.right or column.whole for column in columns]
    least = [
        min(width, SENTENCE_LEAST) if column.wraps else width if stays
        else min(width, max(NAME_LEAST, len(column.head), column.least))
        for column, width, stays in zip(columns, widths, fixed)
    ]  # fmt: skip
    for at in range(len(columns)):
        if not any(row[at] for row in texts) and columns[at].rank:
            widths[at] = least[at] = 0  # an empty column
    given, gone = list(zip(widths, least)), []
    for at in sorted((at for at, column in enumerate(columns) if column.rank), key=lambda at: -columns[at].rank):
        if taken(least) <= room:
            break
        gone.append(at)
        widths[at] = least[at] = 0
    for at in reversed(gone):  # if a wide column was omitted, narrow ones that matter less may fit again without a cut
        if given[at][1] and taken([*widths[:at], given[at][0], *widths[at + 1 :]]) <= room:
            widths[at], least[at] = given[at]
    while taken(widths) > room:
        able = [at for at, width in enumerate(widths) if width > least[at]]
        cut = [at for at, width in enumerate(widths) if not fixed[at] and width > CUT_LEAST]
        able = able or [at for at in cut if not columns[at].least] or cut
        if able:
            widths[max(able, key=lambda at: widths[at])] -= 1
            continue
        shown = [at for at, width in enumerate(widths) if width]
        goes = [at for at in shown[1:] if columns[at].right] or shown[1:]
        if not goes:
            widths[shown[0]] = room
            break
        widths[goes[-1]] = 0
    return widths


def on_lines(cells: Sequence[str], columns: Sequence[TextColumn], widths: Sequence[int]) -> list[Sequence[str]]:
    """A row as rows of cells: text that wraps continues in rows whose other cells are empty."""
    import textwrap

    if not columns[-1].wraps or not 0 < widths[-1] < len(cells[-1]):
        return [cells]
    parts = textwrap.wrap(cells[-1], widths[-1])
    return [[*cells[:-1], parts[0]], *([*[""] * (len(cells) - 1), part] for part in parts[1:])]


def line(cells: Sequence[str], columns: Sequence[TextColumn], widths: Sequence[int]) -> str:
    """One line of the table."""
    parts = []
    for text, column, width in zip(cells, columns, widths):
        if width:
            text = text if len(text) <= width else text[: width - 1] + ELLIPSIS
            parts.append(text.rjust(width) if column.right else text.ljust(width))
    return GAP.join(parts).rstrip()


NO_PROXY_HEADER: Final = (
    "Brokers of Apache Kafka read no PROXY protocol header: turn it off at the load balancer (send-proxy of HAProxy, "
    "proxy_protocol of nginx, proxy_protocol_v2.enabled of an AWS target group), or put a server before the broker that reads "
    "it. A plaintext listener logs InvalidReceiveException, of size 1347571544 (version 1) or 218762506 (version 2)."
)
"""Advice for a server that closes connections which begin with such a header."""
REASONS: Final = {
    "unanswered": "unanswered request{s}", "one_way": "one-way request{s} (acks=0)", "orphan": "response{s} without a request",
    "no_latency": "response{s} whose times were not captured", "no_topic": "exchange{s} without a topic",
    "no_error": "exchange{s} without an error", "no_error_field": "response{s} without an error field",
    "no_throttle_time": "response{s} without a throttle_time_ms field",
    "never_throttled": "response{s} of groups that were never throttled", "no_partitions": "exchange{s} without a partition",
    "group_changes": "request{s} of groups, after the first ones",
    "transaction_steps": "request{s} of transactions, after the first ones",
    "transaction_partitions": "partition{s} of transactions, after the first ones",
    "no_exchange": "connection{s} without an exchange, after the first ones",
    "unnamed_findings": "finding{s} about names that are not distinguished",
    "offsets_standing": "period{s} in which a last stable offset did not advance, after the longest ones",
    "recreated_topics": "id{s} of topics that were created again, after the first",
    "connection_groups": "group{s} of connections, after those with the most exchanges",
    "fenced_members": "member{s} that groups refused for their instance, after the first ones",
    "fenced_connections": "connection{s} of such members, after those that ended first",
    "static_joins": "JoinGroup request{s} of static members, after the first ones",
    "members_that_leave": "request{s} of members that leave groups, after the first ones",
    "members_that_move": "heartbeat{s} with which members join or leave, after the first ones",
    "group_sessions": "client{s} whose session timeout was not examined",
    "silent_members": "period{s} in which group members sent nothing, after the first ones",
    "generations": "generation{s} of groups, after the first ones",
    "heartbeats": "heartbeat{s} of group members, after the first ones",
    "share_acknowledgements": "refused acknowledgement{s} of share groups, after the first ones",
    "share_fetches": "ShareFetch response{s} that delivered records again, after the first ones",
    "servers_that_refuse": "server{s} that refuse connections, after the first ones",
    "servers_that_close": "server{s} that close connections at once, after the first ones",
    "servers_of_short_connections": "server{s} with short TLS connections, after the first ones",
    "servers_without_kafka": "server{s} that do not respond to Kafka requests, after the first ones",
    "partitions_read_again": "partition{s} that groups read again, after the first ones",
    "stalled_connections": "connection{s} without acknowledgements, after the first ones",
    "interrupted_connections": "connection{s} whose data had no acknowledgement for a while, after the first ones",
    "late_polls": "Fetch response{s} that were overdue, after the first ones",
    "stalls": "period{s} in which a broker sent no response, after the first ones",
    "requests_given_up": "request{s} that clients gave up, after the first ones",
    "members_that_wait": "member{s} that wait in JoinGroup or SyncGroup when the capture ends, after the first ones",
    "members_of_waiting_groups": "member{s} of such groups, after the first ones",
    "absences": "period{s} in which brokers were away, after the longest ones",
    "unavailable_brokers": "broker{s} that accepted no connection for a while, after the first ones",
    "hosts_behind_queues": "host{s} whose packets were delayed in the network, after the first ones",
    "polls_left_behind": "Fetch request{s} that clients gave up, after the first ones",
    "quorum_gaps": "period{s} in which no controller led, after the first ones",
    "polls_cut": "Fetch request{s} cut off by the close of their connections, after the first ones",
    "sessions": "session{s} that servers closed, after the first ones",
    "slow_logins": "slow login request{s}, after the first ones",
    "other_hosts": "host{s} of brokers and of TLS, after those with the most retransmissions",
}  # fmt: skip
"""Reason -> the words for it."""


def left_out(counts: dict[str, int]) -> str:
    """`not counted: 12 unanswered requests, 1 response without an error field`."""
    if not counts:
        return ""
    found = []
    for reason, many in counts.items():
        words_ = REASONS.get(reason, "exchange{s} with " + reason.replace("_", " "))
        found.append(f"{many:,} {words_.format(s='' if many == 1 else 's')}")
    return "not counted: " + ", ".join(found)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A sentence on as many lines as it needs."""
    import textwrap

    text = clean(text.replace("\n", " "))
    width = max(width, len(indent) + 1)  # a terminal may have one column
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) if text else []


def in_columns(rows: Sequence[Sequence[str]], room: int) -> Iterator[str]:
    """Rows as columns of text without a heading; on a narrow terminal the longest texts are wrapped."""
    import textwrap

    widths = [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
    while taken(widths) > room and max(widths) > COLUMN_LEAST:
        widths[widths.index(max(widths))] -= 1
    for row in rows:
        if room >= UNLIMITED:
            parts = [[text] for text in row]
        else:
            parts = [textwrap.wrap(text, width) for text, width in zip(row, widths, strict=True)]
        for cells in zip_longest(*parts, fillvalue=""):
            yield GAP.join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()


def folded(values: Sequence[Any], width: int, join: Callable[[Any], Any]) -> list[Any]:
    """A series with at most `width` points."""
    if len(values) <= width:
        return list(values)
    cuts = [at * len(values) // width for at in range(width + 1)]
    groups = [[value for value in values[low:high] if value is not None] for low, high in pairwise(cuts)]
    return [join(group) if group else None for group in groups]


def duration_short(edge: int) -> str:
    """An edge of the histogram: `30ms`."""
    unit, scale = next((unit, scale) for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)) if edge >= scale)
    return f"{edge // scale}{unit}"


def instant(time_ns: int, step_ns: int = 1) -> str:
    """A time as RFC 3339 in UTC, with as many digits as its step needs."""
    from datetime import UTC, datetime

    seconds, rest = divmod(int(time_ns), 1_000_000_000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
    digits = 0 if step_ns % 1_000_000_000 == 0 else 3 if step_ns % 1_000_000 == 0 else 6 if step_ns % 1000 == 0 else 9
    return text + (f".{rest:09d}"[: digits + 1] if digits else "") + "Z"


def time_of_day(time_ns: int | None) -> str:
    """The time of day to the millisecond, in UTC."""
    return "" if time_ns is None else instant(time_ns, 1_000_000)[11:]


def clock(time_ns: int | None) -> str:
    """Time of day."""
    return time_of_day(time_ns)[:-1]


def assigned(assignment: Mapping[str, Any]) -> str:
    """An assignment in words: partitions (`orders 0,1; payments 3`), tasks of a streams group (`tasks 0_0,0_1`), or the
    assignment of a Kafka Connect worker (`connectors sink; tasks sink-0`)."""
    work = [f"{kind} {','.join(assignment[kind])}" for kind in ("connectors", "tasks") if assignment.get(kind)]
    if work:
        return "; ".join(work)
    return "; ".join(f"{topic} {','.join(map(str, some))}" for topic, some in assignment["topics"].items()) or "nothing"


def story(row: Row) -> str:
    """How a leadership error ended: the error, the Metadata request, the next successful response."""
    place = f"{row['topic']}-{row['partition']}" + (f" of cluster {words(row['cluster_id'])}" if "cluster_id" in row else "")
    text = f"{clock(row['at_ns'])} {words(row['client_id'])}: {row['api']} of {place} got {row['error']}"
    metadata, good = row["metadata_after_ns"], row["good_after_ns"]
    if metadata is not None and (good is None or metadata <= good):
        text += f", requested Metadata after {duration(metadata)}"
    if good is None:
        return text + "; no successful response in this capture"
    tries = "try" if row["tries"] == 1 else "tries"
    return text + f", got a successful response after {duration(good)} ({row['tries']:,} more {tries})"
