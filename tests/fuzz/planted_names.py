"""Names that a stranger chose, in damaged captures: what a terminal, a browser or a spreadsheet obeys is raw in no output for
people. Mutants are those of mutate_captures.py.

usage: python tests/fuzz/planted_names.py [--seed N] [--seconds N] [--keep FOLDER] [PATH...]

In: the capture of `tests/laws/test_injection.py`; captures that are given are mixed with it. Out: one line per mutant and
command whose output is not harmless, with the number that makes it again (`--seed N --seconds 0`).
"""

import random
import re
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cli.running import run_here
from tests.fuzz.planted_secrets import TABLES, exchanges_of, shown, sweep
from tests.laws.test_injection import PEOPLE, REPORTS, harmless, hostile_stories

NAME = "e\x1b[31m\u202e<img src=x>|`a`_b_.pcap"
FORMS = {"table": "text", "markdown": "markdown", "html": "html"}
DETAILED = ("check", "groups", "transactions")
FORMULA = re.compile(r"(^|,)\"?[=+\-@\t](?![0-9.,\"\n]|$)", re.MULTILINE)
"""The beginning of a CSV cell that a spreadsheet evaluates; negative numbers are none."""


def commands(path: str, rng: random.Random) -> list[tuple[str, list[str]]]:
    """Form of the output, command."""
    found: list[tuple[str, list[str]]] = []
    for form in PEOPLE:
        found += [(form, ["rows", path, "--table", name, "--format", form]) for name in rng.sample(TABLES, 2)]
        found += [(form, [report, path, "--format", form]) for report in rng.sample((*REPORTS, "versions"), 1)]
        found += [(form, [report, path, "--format", FORMS[form]]) for report in rng.sample(DETAILED, 1)]
    found += [("table", words) for words in (["health", path], ["connections", path], ["rows", path, "-T", "ek"])]
    found.append(
        ("table", ["rows", path, "-T", "fields", *(f"-ekafka.{name}" for name in ("client_id", "group_id", "topics"))])
    )
    found.append(("csv", ["rows", path, "--format", "csv", "--csv-safe"]))
    return found


def written_by(form: str, words: list[str]) -> str:
    """What a command writes; of a page the file, for what it says beside that is for a terminal."""
    if form not in ("markdown", "html"):
        return run_here(*words)[1]
    page = Path(words[1]).with_suffix(".page")
    harmless(run_here(*words, "-o", str(page))[1], "table")
    text = page.read_text() if page.exists() else ""
    page.unlink(missing_ok=True)
    return text


def odd(path: str, rng: random.Random, _twin: Callable[[], bytes]) -> list[str]:
    """What is not harmless, and of which command."""
    found = []
    outputs = [(form, " ".join(words), partial(written_by, form, words)) for form, words in commands(path, rng)]
    try:
        for exchange in exchanges_of(path):
            outputs += [("table", name, partial(str, written)) for name, written in shown(exchange)]
    except Exception:  # noqa: BLE001 - a find, whatever it is
        found.append(traceback.format_exc())
    for form, command, write in outputs:
        try:
            written = write()
            if form == "csv":
                assert not FORMULA.search(written), FORMULA.search(written)
            else:
                harmless(written, form)
        except Exception:  # noqa: BLE001 - a find, whatever it is
            found.append(f"{command.replace(path, 'FILE')}: {traceback.format_exc(limit=1)}")
    return found


if __name__ == "__main__":
    sys.exit(sweep(__doc__, hostile_stories(), NAME, odd))
