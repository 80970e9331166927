"""Shared parts of the commands that write captures: progress over several passes, formats, messages.

In: passes as they begin. Out: one line of progress at a time, on a terminal only.
"""

import os
from types import TracebackType
from typing import Final

from kcap.cli.progress import Progress, Watched
from kcap.errors import UsageError

FORMS: Final = ("pcap", "pcapng")
COMPRESSED: Final = (".gz", ".zst", ".lz4")
SECRETS_STAY: Final = "TLS secrets of the input are left out; --keep-secrets writes them too"


class Passes:
    """Shows the progress of the current pass."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._reading: Watched | None = None

    def __enter__(self) -> "Passes":
        return self

    def step(self, reading: Watched) -> None:
        if reading is not self._reading:
            self._end()
            self._reading, self._progress = reading, Progress(reading, shown=True)
        assert self._progress is not None
        self._progress.step()

    def _end(self) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
        self._progress = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()


def only_plain(output: str, form: str | None = None) -> None:
    """Raises UsageError for a name that implies compression, a format of tables, or another format than `form`."""
    from kcap.output.formats import ADVICE, CAPTURES
    from kcap.output.formats import SUFFIXES as TABLES

    suffix = os.path.splitext(output)[1].lower()
    if suffix in COMPRESSED:
        raise UsageError(f"{output}: captures are written uncompressed; name a .pcap or .pcapng")
    if suffix in TABLES or (suffix in ADVICE and suffix not in CAPTURES):
        raise UsageError(f"{output}: {suffix} is no capture; name a .pcap or .pcapng (kcap rows writes tables)")
    if form is not None and suffix.removeprefix(".") in FORMS and suffix != f".{form}":
        raise UsageError(f"{output}: the suffix {suffix} contradicts -F {form}")
