"""Shows the report `diff` as sheets: differences, and figures of both captures by client, broker, topic. Free of widgets.

In: the result of the report. Out: sheets. Law: what chance explains is not listed as a difference; a class leads to its
exchanges in the capture on the screen, which is the later one.
"""

from typing import Any, Final

from kcap.filter.fields import fields
from kcap.output.grid import clean, duration
from kcap.reports import drill_down
from kcap.reports.common_columns import bold
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, figures, number, words
from kcap.tui.views.sheet import Down, Line, Sheet, paragraph

SIDES: Final = ("before", "after")
FIGURES: Final = (
    ("count", "count", number, 0), ("failed", "failed", number, 3), ("p50_ns", "p50", duration, 1),
    ("p99_ns", "p99", duration, 2), ("service_p50_ns", "broker p50", duration, 4),
)  # fmt: skip
"""Name, heading, text and rank of the figures of a class."""
WORDS: Final = {f"service_{quantile}_ns": f"broker {quantile}" for quantile in ("p50", "p95", "p99")}
"""Words of the table for figures whose name differs."""


def sheets(result: Row) -> list[Sheet]:
    from kcap.reports.diff.summaries import SCOPES

    found = [row for row in result["rows"] if row["significant"]]
    return [differing(found), *(classes(scope, result["classes"]) for scope in SCOPES)]


def down(row: Row) -> Down:
    """The exchanges that a row concerns, in the later capture; None if it has none."""
    if row["after"] is None:
        return None
    parts = []
    for name, value in row["who"].items():
        if name == "topic":
            parts.append(drill_down.topic(value))
        elif name in fields():
            parts.append(drill_down.equals(name, value))
        else:
            return None
    return drill_down.every(*parts) or None


def differing(rows: list[Row]) -> Sheet:
    """One line per difference."""
    columns = [
        TextColumn("what", lambda row: row["what"], right=False, whole=True, tone=lambda _row: "care"),
        TextColumn("difference", lambda row: clean(row["sentence"]), right=False, tone=bold, least=50),
        TextColumn("effect", lambda row: f"{row['effect']:+.3g}" if row["effect"] is not None else "", rank=2,
                   key=lambda row: row["effect"]),
        TextColumn("p", lambda row: f"{row['p_adjusted']:.1g}" if row["p_adjusted"] is not None else "", rank=1,
                   key=lambda row: row["p_adjusted"]),
    ]  # fmt: skip
    return Sheet("differences", columns, rows, down, "no difference beyond what chance explains", detail=detail)


def detail(row: Row, width: int) -> list[Line]:
    out: list[Line] = paragraph(clean(row["sentence"]), width, "bold")
    if row["p_adjusted"] is not None:
        out += paragraph(f"p {row['p_adjusted']:.2g} after Holm's correction", width)
    for side in SIDES:
        shown = figures(row[side] or {}, WORDS)
        out += paragraph(clean(f"{side}: {shown or 'none'}"), width, indent="  ")
    return out


def classes(scope: str, rows: list[Row]) -> Sheet:
    """Figures of each class of a grouping, before and after."""

    def figure(side: str, name: str, head: str, text: Any, rank: int) -> TextColumn:
        return TextColumn(
            f"{head} {side}", lambda row: text(row[side][name]) if row[side] else "", True, rank,
            key=lambda row: row[side][name] if row[side] else None,
        )  # fmt: skip

    found = [row for row in rows if row["scope"] == scope]
    found.sort(key=lambda row: -sum((row[side] or {"count": 0})["count"] for side in SIDES))
    columns = [
        TextColumn("api", lambda row: words(row["who"]["api"]), right=False, whole=True, tone=bold),
        *([TextColumn(scope, lambda row: clean(":".join(words(v) for n, v in row["who"].items() if n != "api")), right=False)]
          if scope != "api" else []),
        TextColumn("only", lambda row: "" if row["in"] == "both" else row["in"], right=False, tone=lambda _row: "care"),
        *(figure(side, name, head, text, rank) for name, head, text, rank in FIGURES for side in SIDES),
    ]  # fmt: skip
    return Sheet(f"by {scope}", columns, found, down, "no exchanges")
