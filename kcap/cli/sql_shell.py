"""The prompt of `kcap sql FILE...` without a query.

In: a capture or saved tables, lines of standard input. Out: results on standard output, errors on standard error. A query ends
with a semicolon and may have several lines. On a terminal, lines can be edited, the history is stored in the user's state
folder (readable for this user only), and Tab completes tables, columns and words of SQL. Law: a query that fails does not end
the prompt.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from kcap.cli.output import make_writer, report_failed
from kcap.cli.standard_streams import say, say_lines
from kcap.errors import KcapError, UsageError
from kcap.folders import state_folder

if TYPE_CHECKING:
    from kcap.capture_pass import CapturePass
    from kcap.reports.sql import Queries
    from kcap.session import Capture

PROMPT: Final = "kcap> "
MORE: Final = "  ... "
LEAVE: Final = frozenset((".quit", ".exit", ".q", "quit", "exit", "\\q"))
"""Words that end the prompt, as in the shells of DuckDB, SQLite, MySQL and PostgreSQL."""
HELP: Final = """\
select ... from exchanges ...;   any query of DuckDB, up to its semicolon
show tables;                     the tables
describe exchanges;              columns and types; kcap schema --columns exchanges says what they mean
.quit                            ends, as Ctrl-D does
"""
WORDS: Final = (
    "select", "from", "where", "group by all", "order by", "limit", "count(*)", "max(", "min(", "sum(", "avg(", "having",
    "quantile_cont(", "join", "using", "distinct", "unnest(", "show tables", "describe", "summarize",
)  # fmt: skip
TABLES_BEHIND: Final = re.compile(r"\b(?:from|join|describe|summarize)\s+(?:\w+\s*,\s*)*\Z", re.IGNORECASE)
"""Text of a line that the name of a table follows."""
HISTORY: Final = "sql_history"
HISTORY_LINES: Final = 1000


def converse(capture: "Capture", form: str) -> int:
    """Runs queries until the input ends. Returns the exit code. Raises UsageError for an input that can be read only once."""
    from kcap.reports.sql import Queries

    if "-" in capture.paths:
        raise UsageError("standard input is for queries here, not for a capture; name a file")
    passes: list[CapturePass] = []

    def watch(reading: "CapturePass") -> Any:
        passes.append(reading)
        return lambda: None

    with tempfile.TemporaryDirectory(prefix="kcap-") as folder, closing(Queries(capture, folder, watch)) as queries:
        for query in statements(queries):
            known = len(passes)
            try:
                answer(queries, query, form)
            except KcapError as error:
                (say_lines if isinstance(error, UsageError) else say)(str(error))
            except KeyboardInterrupt:
                say("interrupted")
            for reading in passes[known:]:
                report_failed(reading)
    return 0


def answer(queries: "Queries", query: str, form: str) -> None:
    """Writes the result of one query to standard output. Raises UsageError for a query that fails."""
    schema, batches = queries.answer(query)
    writer = make_writer(form, sys.stdout.buffer, schema, None, composed=False)
    for batch in batches:
        writer.write(batch)
    writer.close()
    sys.stdout.buffer.flush()


def statements(queries: "Queries") -> Iterator[str]:
    """The typed queries, without semicolons. The text after the last semicolon counts as a query when the input ends."""
    terminal = sys.stdin.isatty()
    if terminal:
        print("Queries end with a semicolon; .help says more.", file=sys.stderr)
    waiting = ""
    with edited(queries) if terminal else nullcontext():
        while True:
            try:
                line = input(MORE if waiting else PROMPT) if terminal else input()
            except EOFError:
                break
            except KeyboardInterrupt:
                waiting = ""
                print(file=sys.stderr)
                continue
            if not waiting and line.strip().rstrip("; ").lower() in LEAVE:
                return
            if not waiting and line.strip().startswith("."):
                print(HELP, end="", file=sys.stderr)
                continue
            *whole, waiting = parts(f"{waiting}{line}\n")
            yield from filter(None, map(str.strip, whole))
            waiting = waiting if waiting.strip() else ""
    if waiting.strip():
        yield waiting.strip()


def parts(text: str) -> list[str]:
    """Text between semicolons, except those within quotes and comments; no semicolon follows the last part."""
    found, begin, at, quote = [], 0, 0, ""
    while at < len(text):
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif text.startswith("--", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif sign == ";":
            found.append(text[begin:at])
            begin = at + 1
        at += 1
    return [*found, text[begin:]]


@contextmanager
def edited(queries: "Queries") -> Iterator[None]:
    """Line editing, history and completion, if Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = state_folder() / HISTORY
    with suppress(OSError):
        readline.read_history_file(path)
    tables = queries.columns()
    words = completions(tables)

    def offer(text: str, at: int) -> str | None:
        before = readline.get_line_buffer()[: readline.get_begidx()]
        return next(iter(beginning(expected(tables, words, before), text)[at : at + 1]), None)

    readline.set_completer(offer)
    readline.set_completer_delims(" \t\n,;()=<>+-*/'\"")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LINES)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            os.chmod(path, 0o600)
            readline.write_history_file(path)


def completions(columns: dict[str, list[str]]) -> list[str]:
    """The words that Tab completes: tables, columns, columns with their table, words of SQL."""
    names = {name for some in columns.values() for name in some}
    return sorted({*columns, *names, *(f"{table}.{name}" for table, some in columns.items() for name in some), *WORDS})


def expected(tables: Iterable[str], words: Sequence[str], before: str) -> Sequence[str]:
    """The words that may follow the text of a line: only tables where the name of one is expected."""
    return sorted(tables) if TABLES_BEHIND.search(before) else words


def beginning(words: Sequence[str], text: str) -> list[str]:
    """The words with this beginning; names with a dot only if it has a dot."""
    return [word for word in words if word.startswith(text.lower()) and ("." in text or "." not in word)]
