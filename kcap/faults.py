"""Descriptions of failures of kcap's own code: the exception's type and place, never its message.

In: an exception that a guard caught. Out: a `Fault`. Law: a guard surrounds the reading of one exchange, one connection or one
body, so that a failure costs only that one. The failure is reported as `decoder_failed`, and as the reason in `undecoded`.
"""

from typing import Final


class Fault(str):
    """The place where kcap's own code failed to read something: `struct.error in records/legacy.py:33`.

    Reasons for damaged data are plain `str`; this type distinguishes the two wherever reasons are stored.
    """

    __slots__ = ()


def fault_of(error: Exception) -> Fault:
    """Returns the exception's type and its innermost line in kcap; never the message, which may quote payloads."""
    place, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        if path.startswith(FOLDER):
            place = f" in {path.removeprefix(FOLDER)}:{trace.tb_lineno}"
        trace = trace.tb_next
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    return Fault(name + place)


FOLDER: Final = fault_of.__code__.co_filename.replace("\\", "/").rpartition("/")[0] + "/"
"""The folder of kcap's modules as their code names it, whatever the folders above it are called."""
