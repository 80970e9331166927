"""Timelines of groups and transactions as SVG, for HTML pages.

In: the plain values of a report. Out: pictures, one per group, or one of all transactional ids. Law: a picture has a line for
each of the first `LINES_MAX` members or ids, and says how many are omitted; all text is escaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kcap.limits import BARS_MAX, LINES_MAX
from kcap.output.escaping import html_text
from kcap.output.grid import duration
from kcap.reports.text import time_of_day

Row = dict[str, Any]
WIDTH: Final = 1000
LEFT: Final = 240
"""Part of the width for names, in pixels."""
LINE: Final = 22
COLORS: Final = {
    "member": "#4878a8", "committed": "#3a923a", "aborted": "#d08020", "open": "#c03030", "fenced": "#8040a0",
    "timed_out": "#805030", "rebalance": "#c03030",
}  # fmt: skip
OTHER: Final = "#888"
CROSSING: Final = 0.35
"""Opacity of marks that cross all lines."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of time on a line."""

    line: int
    first_ns: int
    last_ns: int
    kind: str
    """Key of `COLORS`."""
    title: str
    """Tooltip."""


def picture(title: str, names: Sequence[str], bars: Sequence[Bar], marks: Sequence[Bar] = ()) -> str:
    """Lines with bars, and marks that cross all lines; empty without bars."""
    if not bars:
        return ""
    times = [time for bar in (*bars, *marks) for time in (bar.first_ns, bar.last_ns)]
    begin, span = min(times), max(max(times) - min(times), 1)
    height = (len(names) + 3) * LINE

    def place(time: int) -> float:
        return LEFT + (time - begin) * (WIDTH - LEFT - 10) / span

    out = [
        f'<figure><figcaption>{html_text(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" '
        'font-size="12" fill="currentColor">'
    ]
    out += [f'<text x="0" y="{(at + 1) * LINE}">{html_text(name[:38])}</text>' for at, name in enumerate(names)]
    for bar in bars[:BARS_MAX]:
        left, right = place(bar.first_ns), place(bar.last_ns)
        out.append(
            f'<rect x="{left:.1f}" y="{bar.line * LINE + 10}" width="{max(right - left, 2):.1f}" height="12" '
            f'fill="{COLORS.get(bar.kind, OTHER)}"><title>{html_text(bar.title)}</title></rect>'
        )
    for mark in marks[:BARS_MAX]:
        left, right = place(mark.first_ns), place(mark.last_ns)
        out.append(
            f'<rect x="{left:.1f}" y="4" width="{max(right - left, 1):.1f}" height="{len(names) * LINE + 4}" '
            f'fill="{COLORS[mark.kind]}" fill-opacity="{CROSSING}"><title>{html_text(mark.title)}</title></rect>'
        )
    foot = (len(names) + 1) * LINE + 8
    out.append(f'<text x="{LEFT}" y="{foot}">{time_of_day(begin)}</text>')
    out.append(f'<text x="{WIDTH - 10}" y="{foot}" text-anchor="end">{duration(span)} later</text>')
    out += legend(foot + LINE, bars[:BARS_MAX], marks[:BARS_MAX])
    return "".join([*out, "</svg></figure>"])


def legend(y: int, bars: Sequence[Bar], marks: Sequence[Bar]) -> list[str]:
    """The colors of a picture and their meanings, on one line."""
    out, x = [], LEFT
    for kind, opacity in (dict.fromkeys((bar.kind for bar in bars), 1.0) | {mark.kind: CROSSING for mark in marks}).items():
        name = html_text(kind.replace("_", " "))
        out.append(
            f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{COLORS.get(kind, OTHER)}" fill-opacity="{opacity}"/>'
            f'<text x="{x + 18}" y="{y}">{name}</text>'
        )
        x += 18 + 8 * len(name) + 24
    return out


def left_out(names: Sequence[str]) -> str:
    """The part of a title about lines that are not drawn."""
    return f" (the first {LINES_MAX} of {len(names)})" if len(names) > LINES_MAX else ""


def of_groups(result: Row) -> list[str]:
    """A picture for each group: members from their first to their last request, with rebalances across."""
    out = []
    for row in result["rows"]:
        names = [member["client_id"] or member["member_id"] or "" for member in row["members"]]
        bars = [
            Bar(at, one["first_ns"], one["last_ns"], "member", f"{names[at]} {one['member_id'] or ''}")
            for at, one in enumerate(row["members"][:LINES_MAX])
        ]
        marks = [
            Bar(0, one["first_ns"], one["last_ns"] or one["first_ns"], "rebalance",
                f"{one['cause']}, {duration(one['duration_ns'])}")
            for one in row["rebalances"] if one["first_ns"] is not None
        ]  # fmt: skip
        title = f"group {row['group_id']}: members, and rebalances across them{left_out(names)}"
        out.append(picture(title, names[:LINES_MAX], bars, marks))
    return [one for one in out if one]


def of_transactions(result: Row) -> list[str]:
    """One picture: a line for each transactional id, a bar for each transaction, colored by its outcome."""
    names = [row["transactional_id"] for row in result["transactional_ids"]]
    lines = {name: at for at, name in enumerate(names[:LINES_MAX])}
    bars = []
    for row in result["rows"]:
        first = row["begin_ns"] if row["begin_ns"] is not None else row["end_ns"]
        last = row["end_ns"] if row["end_ns"] is not None else (first or 0) + (row["duration_ns"] or 0)
        if row["transactional_id"] in lines and first is not None:
            outcome = row["outcome"] or "ended"
            title = f"{outcome.replace('_', ' ')}, {duration(row['duration_ns'])}, {row['records'] or 0} records"
            bars.append(Bar(lines[row["transactional_id"]], first, last, outcome, title))
    found = picture(f"transactions by transactional id{left_out(names)}", names[:LINES_MAX], bars)
    return [found] if found else []
