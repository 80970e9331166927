"""Connections that carried no bytes, in compact form. A scan or a flood has millions of them, with two or three packets each.

In: a connection without payload, open or closed. Out: its numbers in some 150 bytes, and the connection again. Law: what is
restored equals what was stored. A connection is stored only while nothing but numbers is known of it.
"""

import marshal
from collections.abc import Sequence
from operator import attrgetter
from struct import Struct
from typing import Any, Final

from kcap.net.tcp import Connection, Stream, WeirdReporter

HEAD: Final = Struct("<qqqB")
"""Number, time of the last packet, reference of the first one, whether closing it decides nothing. The others follow."""
CONNECTION_FIELDS: Final = (
    "began", "ended", "first_ns", "first_position", "in_order", "syn_ns", "syn_repeated", "rst_ns", "closing_ns",
    "closing_order",
)  # fmt: skip
STREAM_FIELDS: Final = (
    "isn", "anchored", "started", "next_raw", "acked", "acked_raw", "fin_at", "fin_ns", "packets", "zero_since", "zero_stalls",
    "zero_ns", "sacked", "spurious",
    "timed_end", "timed_ns", "rtt_min", "rtt_sum", "rtt_count",
)  # fmt: skip
"""What can be known of a stream without payload; `speechless` verifies that everything else has its initial value."""
UNTOUCHED: Final = (
    "captured", "counted", "data_segments", "duplicated", "held", "last_ns", "last_start", "lost", "missing",
    "next", "out_of_order", "recovered", "repeats", "resent_at", "resent_ns", "retransmitted",
)  # fmt: skip

_connection_values = attrgetter(*CONNECTION_FIELDS)
_stream_values = attrgetter(*STREAM_FIELDS)
_untouched_values = attrgetter(*UNTOUCHED)


class _NoReporter:
    held_bytes = 0

    def report(self, *_: Any, **__: Any) -> None: ...

    def failed(self, *_: Any) -> None: ...

    def searched(self, *_: Any) -> None: ...


_FRESH: Final = Connection(b"", b"", 0, 0, 0, 0, _NoReporter())
_FRESH_STREAM: Final = _stream_values(_FRESH.streams[0])
_UNTOUCHED: Final = _untouched_values(_FRESH.streams[0])


def speechless(connection: Connection) -> bool:
    """Whether the connection can be stored: it has no payload, holds nothing, and no older connection had its ports."""
    first, second = connection.streams
    return connection.older is None and _untouched_values(first) == _UNTOUCHED and _untouched_values(second) == _UNTOUCHED


def pack(connection: Connection) -> bytes:
    """Returns the numbers of a `speechless` connection in compact form."""
    first, second = connection.streams
    sides = [_place(one, second) for one in (connection.client, connection.rst_by)]
    values: list[Any] = [_connection_values(connection), *sides]
    for stream in connection.streams:
        numbers = _stream_values(stream)
        values.append(None if numbers == _FRESH_STREAM else numbers)
    nothing_left = not (first.acked or second.acked)  # else more than the SYN was acknowledged: bytes in no packet
    head = HEAD.pack(connection.number, connection.last_ns, connection.first_ref, nothing_left)
    return head + marshal.dumps(values)


def _place(stream: Stream | None, second: Stream) -> int:
    """Index of a stream among the two, -1 for None."""
    return -1 if stream is None else int(stream is second)


def number_of(packed: bytes) -> int:
    return int.from_bytes(packed[:8], "little")


def last_ns_of(packed: bytes) -> int:
    """Time of its last packet, ns."""
    return HEAD.unpack_from(packed)[1]  # type: ignore[no-any-return]


def ref_of(packed: bytes) -> int:
    """Reference of its first packet."""
    return HEAD.unpack_from(packed)[2]  # type: ignore[no-any-return]


def nothing_left(packed: bytes) -> bool:
    """Whether closing it decides no hole."""
    return bool(packed[HEAD.size - 1])


def unpack(packed: bytes, flows: Sequence[bytes], reporter: WeirdReporter) -> Connection:
    """Restores the connection. Its owner makes its sinks and its conversation."""
    number, last_ns, ref, _ = HEAD.unpack_from(packed)
    values, client, reset, *streams = marshal.loads(packed[HEAD.size :])  # noqa: S302 - made by `pack` in this process
    connection = Connection(flows[0], flows[1], number, 0, ref, 0, reporter)
    connection.last_ns = last_ns
    for name, value in zip(CONNECTION_FIELDS, values):
        setattr(connection, name, value)
    for stream, numbers in zip(connection.streams, streams):
        for name, value in zip(STREAM_FIELDS, numbers or ()):
            setattr(stream, name, value)
    if client >= 0:
        connection.client = connection.streams[client]
    if reset >= 0:
        connection.rst_by = connection.streams[reset]
    return connection
