"""How a report looks on the place it goes to; the tables themselves are made in kcap.reports.text.

In: where a report is written. Out: the style. Law: colors only where a terminal is, and wants them.
"""

import os
import sys
from typing import Final

from kcap.cli.output import colored, is_terminal
from kcap.reports.text import Style

WIDTH: Final = 100
"""Of what goes to no terminal."""


def style_of(output: str | None) -> Style:
    """The style for a place."""
    import shutil

    width = shutil.get_terminal_size((WIDTH, 40)).columns if is_terminal(output) or os.environ.get("COLUMNS") else WIDTH
    encoding = "utf-8" if output is not None else (sys.stdout.encoding or "ascii")
    return Style(width, colored(output), encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32"))
