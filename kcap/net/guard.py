"""The edge between TCP and the protocol above: a sink that fails costs its connection, not the run.

In: a stream and the arguments for its sink. Out: the sink's call, or a report of its failure. Law: no exception of a sink
passes; the stream's own state was settled before, so that its connection is followed to its end.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcap.net.tcp import Stream


def data(
    stream: "Stream", offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
) -> None:
    """`Sink.data` of a stream."""
    try:
        stream.sink.data(offset, buffer, at, captured, length, time_ns, ref, position)
    except Exception as error:  # noqa: BLE001 - the owner reports it
        failed(stream, error, ref, position)


def gap(stream: "Stream", offset: int, length: int, time_ns: int, ref: int, position: int) -> None:
    """`Sink.gap` of a stream; `ref` and `position` are those of the packet behind it."""
    try:
        stream.sink.gap(offset, length, time_ns)
    except Exception as error:  # noqa: BLE001 - the owner reports it
        failed(stream, error, ref, position)


def failed(stream: "Stream", error: Exception, ref: int, position: int) -> None:
    """Reports the failure to the owner of the connection."""
    connection = stream.connection
    connection.oddities.failed(connection, error, ref or connection.first_ref, position)
