"""Rows for reading outside the terminal: a table of Markdown, a page of HTML.

In: record batches of one schema. Out: UTF-8 text to an `OutputSink`, batch by batch. Law: text from a capture is never markup
on the page: HTML special characters are escaped, and those of Markdown are preceded by a backslash.
"""

import re
from collections.abc import Iterator
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Final

import pyarrow as pa

from kcap.output.escaping import html_text, markdown_text
from kcap.output.grid import Cell, cells
from kcap.output.sink import OutputSink
from kcap.output.verdict import Verdict

NAMES: Final = 20
"""Length from which a cell is broken within a name if the table is wider than the page; an exchange's name is shorter."""
WORDS: Final = 12
"""Length from which a cell in a table of rows, which has more columns than others, may be broken between words."""
WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
"""Boundary between two words of an API's name."""
DAY: Final = re.compile(r"(?<=\d-\d\d)T(?=\d\d:)")
"""Boundary between the day and the time of ISO 8601."""
STYLE: Final = """
:root { color-scheme: light dark }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; overflow-wrap: anywhere }
h1 { font-size: 1.5em } p, li { max-width: 70em } p b, li { white-space: pre-wrap }
table { border-collapse: collapse; margin: .6em 0; font-size: 13px }
th, td { padding: .2em .4em; text-align: left; border-bottom: 1px solid #ddd; white-space: nowrap }
th { position: sticky; top: 0; background: #f4f4f4; vertical-align: bottom }
.t { overflow-x: auto; overflow-wrap: normal } .t th { white-space: normal } .t td { white-space: pre }
.t td.v { white-space: pre-wrap }
svg.m { height: 1em; max-width: none; vertical-align: text-bottom } svg.m path { fill: currentColor }
.t td.u { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 7em }
.d { font-size: 12px } .d th, .d td { padding: .2em }
.s { overflow: auto; max-height: 94vh } .s .n { white-space: nowrap }
.f { overflow-wrap: normal; font-size: 11px } .f th, .f td { padding: .2em } .f th, .f td:not(.n) { white-space: normal }
.f td.u { overflow-wrap: anywhere; min-width: 6em }
.t td.w { white-space: normal; overflow-wrap: anywhere; min-width: 9em }
tr.b td:first-child { box-shadow: inset 4px 0 #c0392b; padding-left: .7em }
.n { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto } svg .b { fill: none } svg text { fill: currentColor }
@media (max-width: 1400px) { table { font-size: 12px } .d { font-size: 11px } .f { font-size: 10px } }
pre { white-space: pre-wrap; padding: .6em; background: #f4f4f4 }
a { color: inherit; text-decoration: underline dotted } h3:target { background: #fd6; color: #222 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } th, pre { background: #2a2a2a }
th, td { border-color: #444 } svg line.g { stroke: #444 } }
"""


def breaking(text: str, longest: int = NAMES) -> str:
    """Text as HTML; long text may be broken after the underscores of a name and between a day and its time."""
    return html_text(text) if len(text) <= longest else DAY.sub("T<wbr>", html_text(text).replace("_", "_<wbr>"))


def in_words(text: str) -> str:
    """The same for a cell in a table of rows; long text may also be broken between the words of an API's name."""
    return WORD.sub("<wbr>", breaking(text, WORDS)) if len(text) > WORDS else html_text(text)


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[str, ...]]:
    """The rows of a batch as text for people; empty for null."""
    return zip(*cells(batch, False)[1]) if batch.num_rows else iter(())


def heads_of(schema: pa.Schema) -> list[Cell]:
    """The headings for the values of `rows_of`."""
    return cells(pa.RecordBatch.from_pylist([], schema), False)[0]


class Markdown:
    """A table of GitHub Flavored Markdown (section 4.10)."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        heads = heads_of(schema)
        rule = "".join("---:|" if head.right else "---|" for head in heads)
        self._head = self._line(tuple(head.name for head in heads)) + f"|{rule}\n"

    @staticmethod
    def _line(texts: tuple[str, ...]) -> str:
        return f"| {' | '.join(map(markdown_text, texts))} |\n"

    def write(self, batch: pa.RecordBatch) -> None:
        self._begin()
        self._sink.write("".join(map(self._line, rows_of(batch))).encode("utf-8", "replace"))
        self._sink.flush()

    def _begin(self) -> None:
        if self._head:
            self._sink.write(self._head.encode("utf-8", "replace"))
            self._head = ""

    def close(self) -> None:
        """Writes the header if there were no rows."""
        self._begin()


class Html:
    """A self-contained page without a script. Rows wait in a temporary file, since a sentence about all of them comes first."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink, self._verdict = sink, Verdict(schema)
        self._rows = TemporaryFile(prefix="kcap-")  # noqa: SIM115 - `close` closes it
        heads = heads_of(schema)
        self._opens = ["<td class=n>" if head.right else "<td>" for head in heads]
        title = (schema.metadata or {}).get(b"kcap.table", b"rows").decode()
        names = "".join(f"<th>{breaking(head.name, 0)}</th>" for head in heads)
        self._head = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n<title>kcap {html_text(title)}</title>'
            f"<style>{STYLE}</style>\n</head><body><h1>kcap {html_text(title)}</h1>"
        )
        self._begins = f"<div class=s><table class=f><thead><tr>{names}</tr></thead><tbody>\n"

    def write(self, batch: pa.RecordBatch) -> None:
        self._verdict.take(batch)
        lines = (
            "<tr>"
            + "".join(
                f"{opens if len(text) <= NAMES or DAY.search(text) else '<td class=u>'}{in_words(text)}</td>"
                for opens, text in zip(self._opens, row)
            )
            + "</tr>\n"
            for row in rows_of(batch)
        )
        self._rows.write("".join(lines).encode("utf-8", "replace"))

    def close(self) -> None:
        verdict = f"<p>{html_text(self._verdict.sentence())}</p>"
        self._sink.write(f"{self._head}{verdict}{self._begins}".encode("utf-8", "replace"))
        self._rows.seek(0)
        copyfileobj(self._rows, self._sink)
        self._rows.close()
        self._sink.write(b"</tbody></table></div></body></html>\n")
        self._sink.flush()
