"""The boundary between TCP and the protocol above it: a sink that fails costs its connection, not the run.

In: a stream and the arguments for its sink. Out: the sink's call, or a report of its failure. Law: no exception of a sink
propagates. The stream's own state is updated before the call, so that its connection can be followed to its end.
"""

from typing import Any, Protocol


class StreamSink(Protocol):
    """Receives a stream's bytes in order."""

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes `length` stream bytes from `offset`. Those that were captured are `captured` bytes at `buffer[at:]`. `ref` and
        `position` identify the packet."""

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """`length` stream bytes from `offset` are not in the capture, which became known at `time_ns`."""


class Guarded(Protocol):
    """The source of stream bytes: a `kcap.net.tcp.Stream`."""

    sink: StreamSink
    connection: Any


def data(
    stream: Guarded, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
) -> None:
    """Calls `StreamSink.data` of a stream's sink."""
    try:
        stream.sink.data(offset, buffer, at, captured, length, time_ns, ref, position)
    except Exception as error:  # noqa: BLE001 - the owner reports it
        failed(stream, error, ref, position)


def gap(stream: Guarded, offset: int, length: int, time_ns: int, ref: int, position: int) -> None:
    """Calls `StreamSink.gap` of a stream's sink. `ref` and `position` identify the packet behind the gap."""
    try:
        stream.sink.gap(offset, length, time_ns)
    except Exception as error:  # noqa: BLE001 - the owner reports it
        failed(stream, error, ref, position)


def failed(stream: Guarded, error: Exception, ref: int, position: int) -> None:
    """Reports the failure to the owner of the connection."""
    connection = stream.connection
    connection.oddities.failed(connection, error, ref or connection.first_ref, position)
