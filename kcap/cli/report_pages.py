"""A report as CSV, as Markdown, as a page of HTML.

In: the result of a report. Out: text. Law: CSV has every value as it is; Markdown and HTML have the same rows in words.
"""

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from kcap.output.grid import duration
from kcap.output.pages import STYLE
from kcap.reports.text import left_out, number, size, words

Row = dict[str, Any]
APART: Final = frozenset({"histogram", "with_long_polls", "with_unanswered"})
"""What has no place in a table for people."""
CLOCKS: Final = frozenset({"first_ns", "last_ns", "time_ns", "at_ns"})


def flat(row: Row) -> Row:
    """A row without rows in it: `with_long_polls.p99_ns`."""
    out: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out |= {f"{name}.{inner}": entry for inner, entry in value.items()}
        else:
            out[name] = value
    return out


def csv_text(result: Row) -> str:
    """RFC 4180 with a header; entries of lists are joined by semicolons, as in rows."""
    rows = [flat(row) for row in result["rows"]]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = list(rows[0]) if rows else []
    writer.writerow(names)
    for row in rows:
        writer.writerow([plain(row.get(name)) for name in names])
    return file.getvalue()


def plain(value: Any) -> Any:
    """A value as CSV has it."""
    if isinstance(value, list):
        return ";".join("" if entry is None else str(entry) for entry in value)
    return str(value).lower() if isinstance(value, bool) else value


def columns(result: Row) -> list[str]:
    """Names of the columns that people want: those that say something."""
    rows = result["rows"]
    names = [name for name in rows[0] if name not in APART] if rows else []
    return [name for name in names if any(row.get(name) not in (None, [], 0, False) for row in rows) or name == "count"]


def cell(name: str, value: Any) -> str:
    """A value in words."""
    if value is None or value == []:
        return ""
    if name in CLOCKS:
        from kcap.reports.definition import instant

        return instant(value, 1_000_000)
    if name.endswith(("_ns", "_ns_sum", "_ns_max")):
        return duration(value)
    if name.endswith("_bytes") or name in ("bytes_in", "bytes_out"):
        return size(value)
    if name == "share":
        return f"{100 * value:.1f}%"
    if isinstance(value, int | float) and not isinstance(value, bool) and name not in ("api_version", "api_key", "partition"):
        return number(value)
    return words(value)


def head(name: str) -> str:
    """A column's name without its unit, which stands with each value."""
    return name.removesuffix("_ns").replace("_ns_", "_")


def markdown(result: Row) -> str:
    """A table as GitHub draws it."""
    names = columns(result)
    out = [f"# {result['report']}: {', '.join(result['captures'])}", ""]
    if not names:
        return "\n".join([*out, "No rows.", ""])
    right = [numeric(result, name) for name in names]
    out.append("| " + " | ".join(map(head, names)) + " |")
    out.append("|" + "|".join("---:" if number_ else "---" for number_ in right) + "|")
    for row in result["rows"]:
        texts = (cell(name, row.get(name)).replace("|", "\\|").replace("`", "\\`") for name in names)
        out.append("| " + " | ".join(texts) + " |")
    told = left_out(result["left_out"])
    return "\n".join([*out, "", *([told[:1].upper() + told[1:] + ".", ""] if told else [])])


def numeric(result: Row, name: str) -> bool:
    """Whether a column holds numbers."""
    values = [row.get(name) for row in result["rows"]]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def html(result: Row, _keys: Sequence[str]) -> str:
    """A page of its own, with its charts and without a script."""
    from kcap.cli.report_charts import svg

    title = escape(f"kcap {result['report']}: {', '.join(result['captures'])}")
    names = columns(result)
    right = {name: numeric(result, name) for name in names}
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">', f"<title>{title}</title><style>{STYLE}</style>",
           f"</head><body><h1>{title}</h1>"]  # fmt: skip
    out += [svg(result)] if result["rows"] and "histogram_edges_ns" in result else []
    out.append("<table><thead><tr>" + "".join(f"<th>{escape(head(name))}</th>" for name in names) + "</tr></thead><tbody>")
    for row in result["rows"]:
        cells = (f"<td{' class=n' if right[name] else ''}>{escape(cell(name, row.get(name)))}</td>" for name in names)
        out.append("<tr>" + "".join(cells) + "</tr>")
    out.append("</tbody></table>")
    if result["left_out"]:
        out.append(f"<p>{escape(left_out(result['left_out']))}</p>")
    return "\n".join([*out, "</body></html>", ""])
