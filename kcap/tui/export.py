"""Saves rows as files and packets as captures.

In: rows and columns, or a filter and the paths. Out: files, which appear when they are complete. Law: rows are those of the
list in its order; packets are those that `kcap cut` selects, in a process of its own, so that keys keep working.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.columns import EXCHANGES
from kcap.errors import KcapError, OutputError, UsageError
from kcap.inputs import reading, refuse_input
from kcap.output.formats import SUFFIXES, compression, format_of
from kcap.output.sink import compressed, new_file, output_errors
from kcap.reports.text import count

if TYPE_CHECKING:
    from kcap.tui.reader_main import ReadRequest
    from kcap.tui.row_index import Numbers, RowIndex

ROWS: Final = {suffix: form for suffix, form in SUFFIXES.items() if form != "table"}
"""Suffix of a file's name -> format of rows."""
PACKETS: Final = (".pcapng", ".pcap")
STEP: Final = 8192
START: Final = "import sys; from kcap.tui.export import main; main(sys.argv[1:])"


def write_rows(rows: "RowIndex", order: "Numbers | None", path: str) -> int:
    """Writes all columns of rows in an order; returns their number.

    Raises UsageError for a name that implies no format, OutputError if the file cannot be written.
    """
    from kcap.output.writers import writer_of
    from kcap.table.schema import arrow_schema

    path = os.path.expanduser(path)
    form = format_of(None, path, ROWS, default="")
    if not form:
        raise UsageError(f"{os.path.basename(path)}: rows go to {', '.join(ROWS)}")
    names = [column.name for column in EXCHANGES]
    numbers = order if order is not None else rows.numbers
    with new_file(path) as file, output_errors(path), compressed(file, compression(path)) as sink:
        writer = writer_of(form, sink, arrow_schema("exchanges", EXCHANGES))
        for at in range(0, len(numbers), STEP):
            part: Any = rows.take(numbers[at : at + STEP].astype(np.int64), names).combine_chunks()
            for batch in part.to_batches():
                writer.write(batch)
        writer.close()
    return len(numbers)


def protected(order: "ReadRequest") -> AbstractContextManager[None]:
    """A block in which no export replaces a displayed capture or the settings."""
    from kcap.capture.paths import expand
    from kcap.tui.config import config_path

    return reading([*order.paths, *order.keylogs, *order.private_keys, str(config_path())], expand)


def cut(order: "ReadRequest", only: str, path: str, spools: dict[int, Any] | None = None, comments: Sequence[str] = ()) -> str:
    """Writes the packets of the exchanges that a filter selects; returns what was written, in words. Blocking: call it in a
    thread.

    `spools`: the retained bytes of pipes, by file; `comments`: lines for the comment of the file. Raises OutputError with the
    reason.
    """
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.splitext(path)[1].lower() not in PACKETS:
        raise UsageError(f"{os.path.basename(path)}: packets go to {' or '.join(PACKETS)}")
    with protected(order):
        refuse_input(path)
    paths, handed = list(order.paths), []
    for at, name in enumerate(paths):
        if name == "-":
            spool = (spools or {}).get(at)
            if spool is None or not spool.kept:
                raise OutputError("the packets of the pipe were not retained")
            paths[at] = f"/dev/fd/{spool.number}"
            handed.append(spool.number)
    argument = json.dumps(
        asdict(order) | {"paths": [os.path.abspath(name) if os.path.exists(name) else name for name in paths]}
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", START, argument, only, path, "\n".join(comments)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, pass_fds=handed, start_new_session=True,
    )  # fmt: skip
    lines = (done.stdout if not done.returncode else done.stderr).strip().splitlines()
    if done.returncode:
        raise OutputError(lines[-1] if lines else f"{path} was not written")
    return lines[-1] if lines else path


def main(words: Sequence[str]) -> None:
    """The process that cuts."""
    from kcap.runtime import load_arrow
    from kcap.tui.reader_main import ReadRequest

    load_arrow()
    order = ReadRequest(**json.loads(words[0]))
    try:
        with protected(order):
            os.write(1, (_cut(order, words[1], words[2], words[3]) + "\n").encode())
    except KcapError as error:
        os.write(2, (str(error) + "\n").encode())
        os._exit(1)


def _cut(order: "ReadRequest", only: str, path: str, comments: str) -> str:
    from kcap.export import cut
    from kcap.export.scratch import hand_over, kept, scratch
    from kcap.session import Capture

    with scratch(path) as folder:
        capture = Capture(kept(order.paths, folder), order.options()).filter(only)
        made = os.path.join(folder, "cut")
        done = cut.cut(capture, made, None, named=path, whole=False, comment=f"kcap, {only}\n{comments}".strip())
        if not done.packets:
            raise OutputError("no exchange passes the filter; no file was written")
        with new_file(path) as sink, output_errors(path):
            hand_over(made, sink)
    rows = done.picked.rows
    left = "; TLS secrets are left out: `kcap cut --keep-secrets` writes them" if done.left_secrets else ""
    return f"{os.path.basename(path)}: {count(done.packets, 'packet')} of {count(rows, 'exchange')}{left}"
