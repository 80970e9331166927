"""A report as a document of sentences and tables, and its formats: text for terminals, Markdown, HTML, CSV.

In: a document that `report_views` makes of a report, or the report's plain values. Out: text. Law: text, Markdown and HTML
render one document, so each has every sentence and figure of the others; only text on a terminal omits columns and rows, and it
says so. CSV has every value of the JSON form in one rectangular table, whose column `section` names the part of the report.
"""

import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kcap.cli.output import colored, is_terminal
from kcap.output.escaping import csv_safe, html_text, markdown_text, visible
from kcap.output.grid import ELLIPSIS, call, duration, endpoint, result
from kcap.reports.definition import Row
from kcap.reports.names import OTHERS
from kcap.reports.text import BARS as LEVELS
from kcap.reports.text import UNLIMITED, Aim, Style, Target, TextColumn, clock, lines, size, words, wrapped

HEIGHT: Final = 40
LONG, NAMES, DENSE = 40, 25, 14
"""Lengths from which cells of an HTML table are wrapped, and from which they may also be wrapped within a name; number of
columns from which its type is small."""
LEADS: Final = 200
"""Number of rows of a page, from the first on, whose numbers link to their exchanges."""
TITLE: Final = 100
"""Number of characters of a row's names in the heading of its exchanges."""
BARS: Final = {**{bar: (1.0, level) for level, bar in enumerate(LEVELS)}, "\u258f": (0.125, 8)}
"""Block characters -> width of the bar, of one, and its height, of eight."""
BARRED: Final = " class=m"
"""HTML class of a column of bars."""
BAR: Final = re.compile(f"\\|([{''.join(BARS)}]+)\\|")
ROWS: Final = "rows"
"""Section of the report's own rows in CSV."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Some sentences, each on a line of its own."""

    texts: Sequence[str]
    title: str = ""
    tone: str = ""
    """Style of the title on a terminal, or of the sentences if there is no title: `bold`, `red`, `dim`."""
    most: int | None = None
    """Maximum number of sentences on a terminal."""


@dataclass(frozen=True, slots=True)
class Section:
    rows: Sequence[Row]
    columns: Sequence[TextColumn]
    title: str = ""
    empty: str = ""
    """The sentence for no rows; if it is empty, a table without rows is omitted."""
    red: Callable[[Row], bool] | None = None
    """Rows that are red on a terminal and have a red edge on a page."""
    most: int | None = None
    """Maximum number of rows on a terminal."""
    narrow: int = 0
    """Width of a terminal below which text shows `narrow_columns` and, on separate lines, `narrow_text`."""
    narrow_columns: Sequence[TextColumn] = ()
    narrow_text: Callable[[Row], str] = str
    listed: Callable[[Row], Sequence[Row]] = lambda _row: ()
    """Returns exchanges of a row, to which the row's numbers link on a page (`kcap.reports.listing`)."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to copy into a shell; never wrapped."""

    texts: Sequence[str]
    title: str = ""


def figure(name: str, text_of: Callable[[int | None], str], row: Row) -> str:
    """A figure of an exchange; empty for 0."""
    return text_of(row[name] or None)


def began(row: Row) -> str:
    """The time of day at which an exchange began."""
    return clock(row["request_first_ns"] if row["request_first_ns"] is not None else row["response_first_ns"])


Block = Sentences | Section | Commands
LISTING: Final = (
    TextColumn("exchange", lambda row: row["name"], right=False), TextColumn("time", began, right=False),
    TextColumn("api", lambda row: call(row["api"], row["api_version"]), right=False),
    TextColumn("client", lambda row: words(row["client_id"]), right=False),
    TextColumn("broker", lambda row: endpoint(row["server_ip"], row["server_port"]), right=False),
    TextColumn("result", lambda row: result(row["outcome"], row["reason"], row["error"]), right=False),
    *(
        TextColumn(head, partial(figure, name, duration), rank=1)
        for head, name in (
            ("latency", "latency_ns"), ("waited", "age_ns"), ("long poll", "long_poll_ns"), ("queue", "queue_ns"),
            ("network", "rtt_ns"), ("service", "service_ns"), ("throttle", "throttle_ns"), ("mute", "muted_ns"),
        )
    ),
    *(
        TextColumn(head, partial(figure, name, size), rank=1)
        for head, name in (("request", "request_bytes"), ("response", "response_bytes"))
    ),
)  # fmt: skip
"""Columns of the exchanges to which numbers link."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report for people."""

    title: str
    blocks: Sequence[Block]
    files: Sequence[str] = ()
    """The captures, for commands that show more of them; for a comparison one per side, empty for saved tables."""
    only: str = ""
    """The display filter of the report."""


def style_of(output: str | None) -> Style:
    """The style of text for standard output (None) or a file; colors only on a terminal that wants them."""
    width = screen_width(is_terminal(output) or (output is None and bool(os.environ.get("COLUMNS"))))
    encoding = "utf-8" if output is not None else (sys.stdout.encoding or "ascii")
    return Style(width, colored(output), encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32"))


def screen_width(limited: bool | None = None) -> int:
    """Columns of the terminal; `UNLIMITED` if text is not `limited` to it, by default if there is no terminal."""
    import shutil

    limited = is_terminal(None) if limited is None else limited
    return shutil.get_terminal_size((UNLIMITED, HEIGHT)).columns if limited else UNLIMITED


def blocks_of(document: Document) -> Iterator[Block]:
    """The blocks that are not empty."""
    for block in document.blocks:
        if block.rows or block.empty if isinstance(block, Section) else any(block.texts):
            yield block


# -- text -------------------------------------------------------------------------------------------------------------
def text(document: Document, style: Style) -> list[str]:
    """Lines, no wider than the terminal except for commands; with a blank line between blocks."""
    tones: dict[str, Callable[[str], str]] = {"bold": style.bold, "red": style.red, "dim": style.dim, "": str}
    out: list[str] = []
    for block in blocks_of(document):
        out += [""] if out else []
        if isinstance(block, Sentences):
            tone = tones[block.tone]
            out += [tone(line) for line in wrapped(block.title, style.width)]
            indent = "  " if block.title else ""
            most = None if style.whole else block.most
            for sentence in list(filter(None, block.texts))[:most]:
                some = [indent + line for line in wrapped(sentence, style.width - len(indent), "  ")]
                out += some if block.title else map(tone, some)
            out += more(block.texts, most)
            continue
        out += [style.bold(visible(block.title))] if block.title else []
        if isinstance(block, Section):
            out += table(block, style) if block.rows else [block.empty]
        else:
            out += [("  " if block.title else "") + visible(line) for line in block.texts]
    return out


def table(section: Section, style: Style) -> list[str]:
    """The table, with as many rows as a terminal shows."""
    most = None if style.whole else section.most
    rows = section.rows[:most]
    if style.width < section.narrow:
        out = []
        for line, row in zip(lines(rows, section.narrow_columns, style)[1:], rows):
            out += [style.bold(line), *(f"  {part}" for part in wrapped(section.narrow_text(row), style.width - 4, "  "))]
    else:
        out = lines(rows, section.columns, style, section.red)
    return [*out, *more(section.rows, most)]


def more(entries: Sequence[object], most: int | None) -> list[str]:
    """Number of entries that are not shown."""
    rest = 0 if most is None else max(0, len(entries) - most)
    return [f"  and {rest:,} more"] if rest else []


# -- Markdown and HTML ------------------------------------------------------------------------------------------------
def filled(section: Section) -> list[tuple[TextColumn, list[str]]]:
    """The columns with a text in any row, or that a terminal never omits, with their texts."""
    found = [(column, [column.text(row) for row in section.rows]) for column in section.columns]
    return [(column, texts) for column, texts in found if any(texts) or not column.rank]


def markdown(document: Document) -> str:
    """Headings, lists and tables of GitHub Flavored Markdown."""
    out = [f"# {markdown_text(document.title)}", ""]
    for block in blocks_of(document):
        if isinstance(block, Sentences):
            texts = [markdown_text(sentence) for sentence in block.texts if sentence]
            out += [f"**{markdown_text(block.title)}**", "", *(f"- {sentence}" for sentence in texts)] if block.title else texts
        elif isinstance(block, Commands):
            out += [f"## {markdown_text(block.title)}", ""] if block.title else []
            out += ["```", *(visible(line).replace("```", "`\u200b``") for line in block.texts), "```"]
        else:
            out += [f"## {markdown_text(block.title)}", ""] if block.title else []
            columns = filled(block)
            if block.rows:
                out.append("| " + " | ".join(markdown_text(column.head) for column, _ in columns) + " |")
                out.append("|" + "|".join("---:" if column.right else "---" for column, _ in columns) + "|")
                out += ["| " + " | ".join(map(markdown_text, cells)) + " |" for cells in zip(*(texts for _, texts in columns))]
            else:
                out.append(block.empty)
        out.append("")
    return "\n".join(out)


def html(document: Document, pictures: Sequence[str] = ()) -> str:
    """A self-contained page without a script; `pictures` are SVG and follow the verdict, before the first table."""
    from kcap.output.pages import STYLE  # most reports are not pages

    title = html_text(document.title)
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width">', f"<title>kcap {title}</title>",
           f"<style>{STYLE}</style></head><body><h1>kcap {title}</h1>"]  # fmt: skip
    waiting, leads = list(pictures), Leads(document)
    for block in blocks_of(document):
        if not isinstance(block, Sentences):
            out, waiting = out + waiting, []
        if isinstance(block, Sentences):
            texts = [barred(sentence) for sentence in block.texts if sentence]
            if block.title:
                out += [f"<p><b>{html_text(block.title)}</b></p>", "<ul>", *(f"<li>{text_}</li>" for text_ in texts), "</ul>"]
            else:
                out += [f"<p>{text_}</p>" for text_ in texts]
            continue
        out += [f"<h2>{html_text(block.title)}</h2>"] if block.title else []
        if isinstance(block, Commands):
            out.append("<pre>" + html_text("\n".join(block.texts)) + "</pre>")
        elif block.rows:
            out += html_table(block, leads)
        else:
            out.append(f"<p>{html_text(block.empty)}</p>")
    return "\n".join([*out, *waiting, *leads.html(), "</body></html>", ""])


def html_table(section: Section, leads: "Leads | None" = None) -> list[str]:
    """The table; `leads`: collects the links of its numbers."""
    from kcap.output.pages import breaking

    columns = filled(section)
    classes = [" class=n" if column.right else wrapping(texts) for column, texts in columns]
    heads = "".join(f"<th{kind}>{html_text(column.head)}</th>" for kind, (column, _) in zip(classes, columns))
    dense = " class=d" if len(columns) > DENSE else ""
    out = [f"<div class=t><table{dense}><thead><tr>{heads}</tr></thead>", "<tbody>"]
    for row, *texts in zip(section.rows, *(texts for _, texts in columns)):
        cells = [drawn(text) if kind == BARRED else breaking(text) for kind, text in zip(classes, texts)]
        if leads is not None:
            cells = leads.linked(section, row, [column for column, _ in columns], texts, cells)
        mark = "<tr class=b>" if section.red is not None and section.red(row) else "<tr>"
        out.append(mark + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(classes, cells)) + "</tr>")
    return [*out, "</tbody></table></div>"]


def barred(sentence: str) -> str:
    """A sentence as HTML, with bars between two strokes drawn as a picture."""
    return BAR.sub(lambda found: drawn(found[1]), html_text(sentence))


def drawn(bars: str) -> str:
    """Bars as a picture: many fonts lack block characters, and the substitute fonts give them other widths."""
    outline = "".join(f"V{8 - BARS[bar][1]}H{at + BARS[bar][0]:g}V8H{at + 1}" for at, bar in enumerate(bars))
    shape = f'style="width:{len(bars) * 0.6:.1f}em" viewBox="0 0 {len(bars)} 8" preserveAspectRatio="none"'
    return f'<svg class=m {shape} aria-hidden="true"><path d="M0 8{outline}Z"/></svg>' if bars else ""


def wrapping(texts: Sequence[str]) -> str:
    """How a column of words is wrapped: long ones always, others if the table is wider than the page, bars never."""
    if BARS.keys() >= set("".join(texts)):
        return BARRED
    wordy = [text_ for text_ in texts if any(map(str.isalnum, text_))]
    longest = max(map(len, wordy), default=0)
    spaced = any(" " in text_ for text_ in wordy)
    return " class=w" if longest > LONG else " class=u" if longest > NAMES else " class=v" if spaced else ""


class Leads:
    """Collects the links of a page's numbers: for each row, commands that show what they count, and some exchanges."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parts: list[str] = []
        self._places: dict[str, int] = {}
        """Heading and commands of each target, and its number."""

    def linked(
        self, section: Section, row: Row, columns: Sequence[TextColumn], texts: Sequence[str], cells: list[str]
    ) -> list[str]:
        """The cells of a row; those with a link point to one target, which `html` writes."""
        targets: dict[Target, list[str]] = {}
        leading: set[int] = set()
        for at, (column, text_) in enumerate(zip(columns, texts)):
            nothing = text_.rstrip("Bkmnsu %") in ("", "0") or OTHERS in row.values()  # no filter selects these names
            target = None if column.down is None or nothing else column.down(row)
            if target:
                targets.setdefault(target, []).append(column.head)
                leading.add(at)
        names = ", ".join(text_ for column, text_ in zip(columns, texts) if text_ and not column.right and not column.rank)
        place = self._place(section, row, names, targets) if targets else None
        return (
            cells
            if place is None
            else [f'<a href="#x{place}">{cell}</a>' if at in leading else cell for at, cell in enumerate(cells)]
        )

    def _place(self, section: Section, row: Row, names: str, targets: Mapping[Target, Sequence[str]]) -> int | None:
        """The number of the target for a row; rows with the same heading and commands share it. None if there are enough."""
        names = names if len(names) <= TITLE else names[: TITLE - 1] + ELLIPSIS
        commands = "\n".join(self._command(target, heads) for target, heads in targets.items())
        content = f"{html_text(names)}</h3><pre>{html_text(commands)}</pre>"
        if content not in self._places:
            if len(self._places) == LEADS:
                return None
            self._places[content] = len(self._places)
            rows = section.listed(row)
            self._parts += [
                f'<h3 id="x{self._places[content]}">{content}',
                *(html_table(Section(rows, LISTING)) if rows else []),
            ]
        return self._places[content]

    def _command(self, target: Target, heads: Sequence[str]) -> str:
        """The command that shows what some numbers count; the display filter if the report is of saved rows."""
        some = self._document.files
        if isinstance(target, Aim):
            some, target = [file for file in some[target.at : target.at + 1] if file], target.filter
        files, what = shell(some), ", ".join(heads)
        if isinstance(target, tuple):
            return f"kcap show {files} {target[0]}.{target[1]}  # {what}" if files else f"{target[0]}.{target[1]}  # {what}"
        filter_ = f"({self._document.only}) && ({target})" if self._document.only else target
        return f"kcap rows -Y {shell([filter_])} {files}  # {what}" if files else f"-Y {shell([filter_])}  # {what}"

    def html(self) -> list[str]:
        """The targets, under a heading of their own."""
        return ["<h2>the exchanges behind the numbers</h2>", *self._parts] if self._parts else []


def shell(words: Sequence[str]) -> str:
    """Paths and other words, quoted for a shell."""
    from shlex import quote

    return " ".join(quote(word) if word.isprintable() else escaped(word) for word in words)


def escaped(word: str) -> str:
    """A word with control or invisible characters, in the shell's escape quotes."""
    text = word.encode(errors="surrogateescape").decode("latin-1")
    return "$'" + "".join(c if " " <= c <= "~" and c not in "'\\" else f"\\x{ord(c):02x}" for c in text) + "'"


# -- CSV --------------------------------------------------------------------------------------------------------------
def sections(name: str, value: Any) -> Iterator[tuple[str, Row]]:
    """A key of the JSON form as rows: section, values by column. Nested objects become columns `outer.inner`."""
    if isinstance(value, dict):
        inner = [(key, entry) for key, entry in value.items() if is_rows(entry)]
        row = flat({key: entry for key, entry in value.items() if not is_rows(entry)})
        if row:
            yield name, row
        for key, entry in inner:
            yield from sections(f"{name}.{key}", entry)
    elif is_rows(value):
        for entry in value:
            yield name, flat(entry)
    elif value is not None and value != []:
        yield name, {name: value}


def is_rows(value: Any) -> bool:
    """Whether a value is a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def flat(row: Row) -> Row:
    """A row without nested objects: `with_unanswered.p99_ns`."""
    out: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out |= {f"{name}.{inner}": entry for inner, entry in flat(value).items()}
        else:
            out[name] = value
    return out


def csv_text(result: Row, *, safe: bool = False) -> str:
    """RFC 4180 with a header: first the report's own rows, then the other parts; entries of lists are joined by semicolons.

    `safe`: no spreadsheet evaluates a cell.
    """
    others = {name: value for name, value in result.items() if name not in (ROWS, "report")}
    rows = [*sections(ROWS, result[ROWS]), *(row for name, value in others.items() for row in sections(name, value))]
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["section", *names])
    for section, row in rows:
        cells = [plain(row.get(name)) for name in names]
        writer.writerow([section, *(csv_safe(cell) if safe and isinstance(cell, str) else cell for cell in cells)])
    return file.getvalue()


def plain(value: Any) -> Any:
    """A value in its CSV form."""
    if isinstance(value, list):
        return ";".join("" if entry is None else str(entry) for entry in value)
    return str(value).lower() if isinstance(value, bool) else value
