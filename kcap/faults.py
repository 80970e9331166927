"""Words for what kcap's own code failed on: the exception's type and place, never its message.

In: an exception that a guard caught. Out: a `Fault`. Law: a guard stands where one exchange, one connection or one body is
read, and costs that one; what it caught is reported, as `decoder_failed` and where the thing itself says that it is
`undecoded`.
"""


class Fault(str):
    """Why something was not read, where kcap's own code failed on it: `struct.error in records/legacy.py:33`.

    Damage has words of its own; this type tells the two apart wherever such words are kept.
    """

    __slots__ = ()


def fault_of(error: Exception) -> Fault:
    """The exception's type and the innermost line of kcap on its way; never the message, which may quote payloads."""
    place, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        if "/kcap/" in path:
            place = f" in {path.rpartition('/kcap/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    return Fault(name + place)
