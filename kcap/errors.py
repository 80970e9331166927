"""The exceptions kcap raises, split by whose fault it is; each maps to one exit code of the command line.

Bytes never raise: an odd packet or frame is a `WeirdKind`, a damaged body is an `undecoded` node. What is left is the
caller's request that cannot be met.
"""


class KcapError(Exception):
    """Something kcap was asked for cannot be done; the message is one line fit for a terminal."""

    exit_code = 1


class UsageError(KcapError):
    """The request itself is wrong: an unknown column, a filter that does not parse, options that contradict."""

    exit_code = 2


class CaptureError(KcapError):
    """A capture cannot be read: missing, not a capture, or cut before its header ended."""

    exit_code = 3


class OutputError(KcapError):
    """The result cannot be written."""

    exit_code = 4


class MissingExtraError(KcapError):
    """A part that is installed separately is needed; the message says which and how to install it."""

    exit_code = 5
