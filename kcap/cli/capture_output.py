"""What the commands that write captures share: progress over several passes, formats, words.

In: readings as they go by. Out: one line of progress at a time, on a terminal only.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Final

from kcap.cli.main import say
from kcap.cli.progress import Progress, Watched
from kcap.errors import UsageError

FORMS: Final = ("pcap", "pcapng")
COMPRESSED: Final = (".gz", ".zst", ".lz4")
UNREADABLE: Final = 3


class Passes:
    """The progress of whatever pass is under way."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._reading: Watched | None = None

    def __enter__(self) -> "Passes":
        return self

    def step(self, reading: Watched) -> None:
        """Some more of a pass was read."""
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


def only_plain(output: str) -> None:
    """Raises UsageError for a name that promises compression."""
    if output.lower().endswith(COMPRESSED):
        raise UsageError(f"{output}: captures are written uncompressed; name a .pcap or .pcapng")


def counted(count: int, thing: str) -> str:
    """`1 packet`, `2,000 packets`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def unreadable(failed: Sequence[str]) -> int:
    """Says which files could not be read; the exit code."""
    for error in failed:
        say(error)
    return UNREADABLE if failed else 0
