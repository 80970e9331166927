"""The columns of the fast path's arrays. Pure data.

Law: every number of a connection that the kernel changes has one column here, which import and export carry over.
"""

from typing import Final

NONE: Final = -(1 << 62)
"""Stands for None where any other number may occur."""

SLOT_BASE: Final = 1 << 40
"""Slots of bodies in the fast path's own arena are numbered from here, beside those of `BodyCollector`."""

# A connection: one row of `connections`.
(
    LAST, FLAGS, CLIENT, IDENTITY, NAME, NUMBER, ROWS, CORRELATION, ANSWERED, ID_LENGTH, HEAD, TAIL, COUNT, TAKEN,
    REQUEST_FRAMES, REQUEST_BYTES, RESPONSE_FRAMES, RESPONSE_BYTES,
    OWN, HOLED, PLACE, FIRST_NS, FIRST_REF, FIRST_POSITION, SYN_NS, RST_NS, CLOSING_NS, ENDED, LIVE,
) = range(29)  # fmt: skip
CONNECTION_WIDTH: Final = 29
"""OWN: it has no objects, since it began in the fast path; HOLED: bytes of it were given up; PLACE: its number among all
connections; ENDED: place in `ENDS`.
"""

FREE, TALKING, OPEN, CALLED, HALF, CLOSING = range(6)
"""Values of LIVE: free slot; requests and responses; a handshake and no data yet; a SYN alone; one FIN; ended."""
ENDS: Final = ("open", "fin", "rst")

# A stream: row 2 * slot, plus 1 for the second of its connection.
(
    NEXT, NEXT_RAW, ACKED, ACKED_RAW, PACKETS, SEGMENTS, CAPTURED, LAST_START, LAST_NS, TIMED_END, TIMED_NS, RTT_MIN, RTT_SUM,
    RTT_COUNT, RETRANSMITTED, DUPLICATED, SHUT, STALLS,
    OPEN_START, OPEN_SIZE, OPEN_NS, OPEN_REF, OPEN_LOW, OPEN_HIGH, OPEN_LEFT, OPEN_SLOT, OPEN_AT, ISN, FIN_AT, FIN_NS,
    FLOW_SIZE,
) = range(31)  # fmt: skip
STREAM_WIDTH: Final = 31
"""SHUT: its sender announced a zero window; STALLS: how often."""

# A request that waits: an entry of its connection's chain, from HEAD to TAIL.
Q_NEXT, Q_NUMBER, Q_KEY, Q_VERSION, Q_CORRELATION, Q_SLOT, Q_DONE, Q_FRAME = range(8)
FRAME: Final = 8
"""start, size, first_ns, first_ref, last_ns, last_ref, low, high: a frame as in `kafka.frames.Frame`."""
F_START, F_SIZE, F_FIRST_NS, F_FIRST_REF, F_LAST_NS, F_LAST_REF, F_LOW, F_HIGH = range(FRAME)
REQUEST_WIDTH: Final = Q_FRAME + FRAME

# A decided exchange.
(
    R_ORDER, R_IDENTITY, R_NAME, R_NUMBER, R_KEY, R_VERSION, R_CORRELATION, R_RTT, R_PREVIOUS, R_FLAGS, R_REQUEST_SLOT,
    R_RESPONSE_SLOT,
    R_REQUEST,
) = range(13)  # fmt: skip
R_RESPONSE: Final = R_REQUEST + FRAME
ROW_WIDTH: Final = R_RESPONSE + FRAME

# Counters that kernel and engine share.
(
    M_ROWS, M_BODIES, M_TOP, M_ORDER, M_REF, M_LEFT, M_GONE, M_FRESH, M_IDENTITIES, M_FREE, M_SPARE, M_SLOTS, M_GROWS, M_OPENS,
    M_OPENED, M_ENDED, M_BLIND, M_NAMES, M_FULL,
) = range(19)  # fmt: skip
META_WIDTH: Final = 19
"""M_FREE: the first entry that is in no chain, of M_SPARE in all; M_SLOTS: free slots, M_GROWS: more can be made; M_OPENS: new
connections are taken; M_BLIND: a packet was left whose flow the kernel cannot read; M_FULL: why it stopped.
"""
FULL_ROOM, FULL_SLOTS = 1, 2
"""No room for rows, bodies or bytes; no free slot."""

ID_BYTES: Final = 64
"""Connections with longer client ids stay on the reference path."""
FLOW_BYTES: Final = 36
KEYS, VERSIONS = 128, 32
"""API keys and versions the tables have room for; others stay on the reference path."""
STEPS: Final = 16
"""Steps up to the acks of a Produce request that the table has room for."""
STEP_NONE, STEP_FIXED, STEP_STRING, STEP_COMPACT_STRING, STEP_TAGS, STEP_OTHER = range(6)

DONE, LEAVE = -2, -1
"""Results of the kernel for a packet: taken, or left to the reference path from its beginning; from 0 on: left to it from this
offset.
"""
