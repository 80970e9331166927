"""A sink that fails is reported, with its connection and packet; the stream goes on."""

from typing import Any

from kcap.net import guard
from kcap.net.tcp import Connection


class Owner:
    """Notes what is reported to it."""

    held_bytes = 0

    def __init__(self) -> None:
        self.reported: list[tuple[Any, ...]] = []

    def report(self, *_: Any, **__: Any) -> None:
        """Nothing odd is looked at here."""

    def searched(self, *_: Any) -> None:
        """Neither is this."""

    def failed(self, *what: Any) -> None:
        """A sink failed."""
        self.reported.append(what)


class Failing:
    """A sink without a good day."""

    def data(self, *_: Any) -> None:
        raise KeyError("data")

    def gap(self, *_: Any) -> None:
        raise KeyError("gap")


def test_what_a_sink_raises_is_told_with_its_place_and_goes_no_further() -> None:
    owner = Owner()
    connection = Connection(b"a" * 12, b"b" * 12, 1, 0, 5, 24, owner)
    stream = connection.streams[0]
    stream.sink = Failing()
    guard.data(stream, 0, b"x", 0, 1, 1, 0, 7, 99)
    guard.gap(stream, 1, 4, 0, 0, 0)
    assert [(found, repr(error), ref, position) for found, error, ref, position in owner.reported] == [
        (connection, "KeyError('data')", 7, 99),
        (connection, "KeyError('gap')", 5, 0),
    ], "where no packet is meant, the connection's first is"
