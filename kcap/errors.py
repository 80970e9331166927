"""The exceptions that kcap raises, one class for each kind of fault, each with the exit code of the command line.

The bytes of a capture never raise an exception: an odd packet or frame is reported as a `WeirdKind`, and a message body that
cannot be read has a reason in `undecoded`. These classes are for requests of the caller that cannot be met.
"""

from collections.abc import Iterable, Mapping
from typing import Final

SUGGESTED: Final = 2
"""Largest number of similar names that a message suggests in place of an unknown one."""
MUCH_LESS_ALIKE: Final = 0.15
"""A second name is not suggested if its similarity to the given one (0 to 1) is lower than the first one's by this much."""
CONTAINED_LEAST: Final = 3
"""Least characters of a name for which known names that contain it are suggested; nearly all contain a shorter one."""


class KcapError(Exception):
    """Base class of all exceptions that kcap raises on purpose; `except kcap.KcapError` catches every one of them.

    The message is fit for a terminal. kcap raises the subclasses only, and each of them has an `exit_code` of its own; the 1 of
    this class is the command line's fallback for a subclass that a caller defines.
    """

    exit_code = 1


class UsageError(KcapError):
    """The request is wrong: an unknown table or column, options that contradict each other, a pipe that is read twice.

    `FilterError` is the subclass for a display filter that cannot be parsed. Exit code 2.
    """

    exit_code = 2


class CaptureError(KcapError):
    """A capture cannot be read: the file is missing or not readable, is no capture, or ends inside its header.

    `kcap.open` raises it for a path that does not exist, and a pass raises it if none of the files can be read. If only some
    files cannot be read, or if a file is damaged after its header, the tables `captures` and `weirds` report it instead.
    Exit code 3.
    """

    exit_code = 3


class OutputError(KcapError):
    """The result cannot be written: no permission, no space, or the target exists and would be overwritten.

    Functions that write files raise it; a closed pipe is no error. Exit code 4.
    """

    exit_code = 4


class MissingExtraError(KcapError):
    """The request needs a package or program that is not installed; the message names it.

    Raised when the part is first used, not on import of kcap. Exit code 5.
    """

    exit_code = 5


def said(error: Exception) -> str:
    """Text for an error in a message; for one of the operating system its description, without number and path."""
    words = error.strerror if isinstance(error, OSError) else None
    return words.lower() if words else str(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean ...?` with the known names that are most similar to `name`, or an empty text. Case does not
    count.

    In: names, or a mapping from names to the text that is shown for each.
    """
    from difflib import SequenceMatcher, get_close_matches  # only messages need it

    shown = {word.lower(): word for word in known}
    if isinstance(known, Mapping):
        shown |= {word.lower(): text for word, text in known.items() if isinstance(text, str)}
    word = name.lower()
    close = get_close_matches(word, shown, SUGGESTED)
    alike = [SequenceMatcher(None, other, word).ratio() for other in close]
    close = [other for other, ratio in zip(close, alike) if ratio > alike[0] - MUCH_LESS_ALIKE]
    if len(word) >= CONTAINED_LEAST:
        close += [other for other in shown if word in other and other not in close]
    return f"; did you mean {' or '.join(dict.fromkeys(shown[one] for one in close[:SUGGESTED]))}?" if close else ""
