"""Sequence numbers, acknowledgements and round trips of streams in order, compiled.

In: numbers of a packet and the row of a stream. Out: the row with the values that `net.tcp.Stream` would have. Importing this
module imports numba.
"""

from typing import Any

from kcap import limits
from kcap.fastpath import layout as at
from kcap.kafka.frames import FLAG
from kcap.kernels import compiled
from kcap.net.tcp import MASK

TWICE_NS = limits.DUPLICATE_NS
FAR = limits.SEQUENCE_FAR
ROUND_TRIPS_NS, CLOSED_WINDOW_NS = limits.ROUND_TRIPS_NS, limits.CLOSED_WINDOW_NS
RETRANSMISSION, DUPLICATE = FLAG["retransmitted"], FLAG["duplicated"]


@compiled
def distance(ahead: int, behind: int) -> Any:
    """As `signed32` of the difference of two sequence numbers."""
    value = (ahead - behind) & MASK
    return value - (1 << 32) if value & 0x80000000 else value


@compiled
def round_trip(streams: Any, place: int, sample: int) -> None:
    """As `Stream.round_trip`."""
    if 0 <= sample <= ROUND_TRIPS_NS - streams[place, at.RTT_SUM]:
        if streams[place, at.RTT_MIN] == at.NONE or sample < streams[place, at.RTT_MIN]:
            streams[place, at.RTT_MIN] = sample
        streams[place, at.RTT_SUM] += sample
        streams[place, at.RTT_COUNT] += 1


@compiled
def acknowledged(streams: Any, place: int, ack: int, time_ns: int) -> None:
    """As `Stream.acknowledged`, for a stream whose next sequence number is known."""
    streams[place, at.ACKED_RAW] = ack
    offset = streams[place, at.NEXT] + distance(ack, streams[place, at.NEXT_RAW])
    if streams[place, at.ACKED] != at.NONE and offset <= streams[place, at.ACKED]:
        return
    streams[place, at.ACKED] = offset
    if streams[place, at.TIMED_END] != at.NONE and offset >= streams[place, at.TIMED_END]:
        streams[place, at.TIMED_END] = at.NONE
        round_trip(streams, place, time_ns - streams[place, at.TIMED_NS])


@compiled
def heard(streams: Any, place: int, ack: int, length: int, time_ns: int) -> bool:
    """Takes a plain segment's acknowledgement, as `ConnectionTable.segments`; False if it is too far away to belong here."""
    if ack == streams[place, at.ACKED_RAW]:
        return True
    if (
        streams[place, at.NEXT_RAW] == ack
        and streams[place, at.ACKED] != at.NONE
        and streams[place, at.ACKED] < streams[place, at.NEXT]
    ):
        streams[place, at.ACKED_RAW] = ack
        streams[place, at.ACKED] = streams[place, at.NEXT]
        if streams[place, at.TIMED_END] != at.NONE:
            streams[place, at.TIMED_END] = at.NONE
            round_trip(streams, place, time_ns - streams[place, at.TIMED_NS])
    elif not length and abs(distance(ack, streams[place, at.NEXT_RAW])) >= FAR:
        return False
    else:
        acknowledged(streams, place, ack, time_ns)
    return True


@compiled
def shut(streams: Any, place: int, time_ns: int) -> None:
    """The sender of this stream announces a zero window, as in `Connection.segment`."""
    if streams[place, at.SHUT] == at.NONE:
        streams[place, at.SHUT] = time_ns
        streams[place, at.STALLS] += 1


@compiled
def reopened(streams: Any, place: int, time_ns: int) -> None:
    """The sender of this stream announces a window again, as in `Stream.opens_window`."""
    if streams[place, at.SHUT] != at.NONE:
        closed = min(max(time_ns - streams[place, at.SHUT], 0), CLOSED_WINDOW_NS - streams[place, at.SHUT_NS])
        streams[place, at.SHUT_NS] += closed
        streams[place, at.SHUT] = at.NONE


@compiled
def selective(streams: Any, place: int, reported: int) -> None:
    """Counts what a selective acknowledgement reports, given as the bits `SACKED` and `SPURIOUS` beside the flags."""
    streams[place, at.SACKED] += reported & 1
    streams[place, at.SPURIOUS] += reported >> 1


@compiled
def repeat_of(streams: Any, place: int, start: int, end: int, time_ns: int) -> int:
    """The flag of a row whose bytes a segment repeats; 0 for a keep-alive probe (RFC 9293 section 3.8.4)."""
    if end - start <= 1 and end == streams[place, at.NEXT]:
        return 0
    if (
        start == streams[place, at.LAST_START]
        and end == streams[place, at.NEXT]
        and time_ns - streams[place, at.LAST_NS] <= TWICE_NS
    ):
        return DUPLICATE
    return RETRANSMISSION


@compiled
def repeated(streams: Any, place: int, start: int, end: int, flag: int, time_ns: int) -> None:
    """Counts a repeat, as `Stream._repeated` does for a stream without holes."""
    if flag == DUPLICATE:
        streams[place, at.DUPLICATED] += 1
        return
    streams[place, at.RETRANSMITTED] += 1
    if streams[place, at.TIMED_END] != at.NONE and start < streams[place, at.TIMED_END]:
        streams[place, at.TIMED_END] = at.NONE
    after = time_ns - streams[place, at.LAST_NS]
    if streams[place, at.ACKED] != at.NONE and end > streams[place, at.ACKED] and after > streams[place, at.RESENT_NS]:
        streams[place, at.RESENT_NS], streams[place, at.RESENT_AT] = after, time_ns
