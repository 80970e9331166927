"""The columns of the fast path's arrays. Pure data.

Law: every number of a connection that the kernel changes has exactly one column here, which import and export carry over.
"""

from typing import Final

from kcap.decode.opcodes import COUNTERS

NONE: Final = -(1 << 62)
"""Represents None in columns where any other number may occur."""

SLOT_BASE: Final = 1 << 40
"""First slot of bodies in the fast path's own arena; smaller numbers are slots of `BodyCollector`."""

LARGE_BASE: Final = 1 << 41
"""First slot of large frames, which are read piece by piece."""

NO_NAME: Final = 0
"""The number of the null client id."""

# A connection: one row of `connections`.
(
    LAST, FLAGS, CLIENT, IDENTITY, NAME, NUMBER, ROWS, CORRELATION, ANSWERED, ID_LENGTH, HEAD, TAIL, COUNT, TAKEN, ONE_WAYS,
    WAITING, REQUEST_FRAMES, REQUEST_BYTES, RESPONSE_FRAMES, RESPONSE_BYTES, LOSSES, SKIPPED, SPENT, FALLING,
    PASSED, PASSED_HEAD, PASSED_TAIL,
    OWN, HOLED, PLACE, FIRST_NS, FIRST_REF, FIRST_POSITION, SYN_NS, RST_NS, RST_BY, CLOSING_NS, ENDED, LIVE, TLS, TOUCHED,
) = range(41)  # fmt: skip
CONNECTION_WIDTH: Final = 41
"""OWN: it has no objects, since it began in the fast path; HOLED: bytes of it were given up; PLACE: its number among all
connections; RST_BY: which stream reset it; ENDED: index in `ENDS`, or IDLE; ONE_WAYS: outstanding requests that expect no
response; WAITING: correlation id of the last request that does; LOSSES, SKIPPED, SPENT: as in the framer of the responses;
FALLING: some correlation id was not above the one before; PASSED: requests that were passed over, which have a chain of their
own; TOUCHED: for a connection with TLS, its row of `undo` in this walk, from 1, negative once the rest of the walk is left to
the reference path."""

FREE, TALKING, OPEN, CALLED, HALF, HALF_EMPTY, CLOSING = range(7)
"""Values of LIVE: free slot; requests and responses; a handshake, no data yet; only a SYN; one FIN; one FIN, no data; ended."""
CLEAR, SHAKING, SEALED = range(3)
"""Values of TLS: none; from the ClientHello up to the first request; requests and responses inside TLS."""
ENDS: Final = ("open", "fin", "rst")
IDLE: Final = len(ENDS)
"""ENDED of a connection that carried no bytes and has had no packet for long."""

# A stream: row 2 * slot, plus 1 for the second of its connection.
(
    NEXT, NEXT_RAW, ACKED, ACKED_RAW, PACKETS, SEGMENTS, CAPTURED, LAST_START, LAST_NS, TIMED_END, TIMED_NS, RTT_MIN, RTT_SUM,
    RTT_COUNT, RETRANSMITTED, DUPLICATED, SHUT, STALLS, SHUT_NS, SACKED, SPURIOUS, RESENT_NS,
    RESENT_AT,
    OPEN_START, OPEN_SIZE, OPEN_NS, OPEN_REF, OPEN_LOW, OPEN_HIGH, OPEN_LEFT, OPEN_SLOT, OPEN_AT, OPEN_FLAGS, REPEATS, HELD,
    ISN, FIN_AT, FIN_NS,
    FLOW_SIZE,
) = range(39)  # fmt: skip
STREAM_WIDTH: Final = 39
"""SHUT: since when its sender announces a zero window; STALLS: how often it did so; SHUT_NS: for how long before; OPEN_FLAGS:
flags of the open response, or the snapshot length flag of an open request; REPEATS: repeats of bytes since an undecided frame
was flagged; HELD: inside TLS, bytes of a record or of a frame's header that is incomplete."""

# A waiting request: an entry of its connection's chain, from HEAD to TAIL.
Q_NEXT, Q_NUMBER, Q_KEY, Q_VERSION, Q_CORRELATION, Q_SLOT, Q_DONE, Q_ONE_WAY, Q_FLAGS, Q_LOSSES, Q_PASSED_NS, Q_FRAME = range(
    12
)
FRAME: Final = 8
"""start, size, first_ns, first_ref, last_ns, last_ref, low, high: a frame as in `kafka.frames.Frame`."""
F_START, F_SIZE, F_FIRST_NS, F_FIRST_REF, F_LAST_NS, F_LAST_REF, F_LOW, F_HIGH = range(FRAME)
REQUEST_WIDTH: Final = Q_FRAME + FRAME

# A decided exchange.
(
    R_ORDER, R_IDENTITY, R_NAME, R_NUMBER, R_KEY, R_VERSION, R_CORRELATION, R_RTT, R_PREVIOUS, R_IN_FLIGHT, R_AGE, R_FLAGS,
    R_REQUEST_SLOT, R_RESPONSE_SLOT, R_OUTCOME, R_CUT,
    R_REQUEST,
) = range(17)  # fmt: skip
R_RESPONSE: Final = R_REQUEST + FRAME
ROW_WIDTH: Final = R_RESPONSE + FRAME
OUTCOMES: Final = ("answered", "one_way", "unanswered", "unanswered", "unanswered", "unanswered", "unanswered")
REASONS: Final = (None, None, "capture_end", "fin", "rst", "lost_in_capture", "skipped")
"""Values of R_OUTCOME: outcome and reason; those of requests without a response are in the order of `ENDS`."""
CUT_REQUEST, CUT_RESPONSE, RESYNCED_RESPONSE, UNENDED_RESPONSE = 1, 2, 4, 8
"""Bits of R_CUT: a request or response that the snapshot length cut, a response that a resync found, and one within which the
connection ended."""

# Counters that kernel and engine share.
(
    M_ROWS, M_BODIES, M_TOP, M_ORDER, M_REF, M_LEFT, M_GONE, M_FRESH, M_IDENTITIES, M_FREE, M_SPARE, M_SLOTS, M_GROWS, M_OPENS,
    M_OPENED, M_ENDED, M_BLIND, M_NAMES, M_FULL, M_LARGE_FROM, M_LARGE_FREE, M_LARGE_WANTED, M_LOGGED, M_TOUCHED,
    M_LATE, M_TLS, M_WAITING_MAX, M_OPEN, M_OPEN_MAX, M_RESYNCS, M_SEARCHED, M_ODD, M_ANSWER, M_LARGE_FULL, M_EXCERPTS,
) = range(35)  # fmt: skip
META_WIDTH: Final = 35
"""M_FREE: the first entry that is in no chain, of M_SPARE in all; M_SLOTS: free slots; M_GROWS: more can be made; M_OPENS: new
connections are taken; M_BLIND: a packet was left whose flow the kernel cannot read; M_FULL: why it stopped; M_LARGE_FROM: bytes
from which on a frame is large; M_LARGE_FREE: free rows of `large`; M_LARGE_WANTED: frames that needed one more; M_LOGGED,
M_TOUCHED: rows of `log` and `undo`; M_LATE: responses after the client's FIN; M_TLS: TLS handshakes are taken; M_WAITING_MAX:
outstanding requests that a connection may have; M_OPEN: bytes of the arena that incomplete frames take; M_OPEN_MAX: their
bound, 0 if no large frame begins here; M_RESYNCS: lost boundaries are searched here; M_SEARCHED: memory that the reference path
would hold for it; M_ODD: rows of `odd`; M_ANSWER: programs of responses are needed; M_LARGE_FULL: `large` has as many rows as
it may have; M_EXCERPTS: excerpts of large frames are stored."""
FULL_ROOM, FULL_SLOTS, FULL_LARGE = 1, 2, 3
"""Values of M_FULL: no room for rows, bodies or bytes; no free slot; no free row for a large frame."""

SEARCHING: Final = -2
"""OPEN_SLOT of a stream whose frame boundary is lost. It was in OPEN_SIZE bytes from OPEN_START on, all in one packet, which
the snapshot length cut. OPEN_HIGH of them were captured, and OPEN_AT is their value."""
O_KIND, O_SLOT, O_VALUE, O_REF, O_POSITION = range(5)
ODD_WIDTH: Final = 5
"""Columns of an oddity, a row of `odd`: index in `ODD_KINDS`, connection, an offset or a number of bytes, packet."""

# A large frame: a row of `large`.
(
    L_CODE, L_SIZE, L_STATUS, L_CURSOR, L_PC, L_MASK, L_RECORDS_END, L_PART, L_GROUP_START, L_GROUP_END, L_TOPICS, L_WRAPPED,
    L_TOP, L_SKIP, L_WHOLE, L_LOW, L_KEPT, L_PASSED, L_EXCERPTS, L_EXCERPT_BYTES, L_FIELDS, L_COUNTERS,
) = range(22)  # fmt: skip
L_ENDS: Final = L_COUNTERS + COUNTERS
LARGE_WIDTH: Final = L_ENDS + COUNTERS
"""L_CODE: its program; L_SIZE: bytes of the frame; L_STATUS to L_GROUP_END, L_COUNTERS and L_ENDS: the state of the
projection's interpreter, with positions in the stored bytes; L_TOPICS, L_WRAPPED: entries so far; L_TOP: stored bytes; L_SKIP:
further bytes that will not be stored; L_WHOLE: all further bytes are stored; L_LOW: start of the current records, or -1;
L_KEPT: where the names end that the state refers to; L_PASSED: bytes of the body so far; L_EXCERPTS: entries of its excerpts,
-1 if there was no room; L_EXCERPT_BYTES: bytes of these; L_FIELDS: skipped bytes are fields, not records."""

# A packet of a connection with TLS in this walk: a row of `log`. The connection's state before its first packet: a row of
# `undo`.
G_INDEX, G_PLACE, G_AT, G_LENGTH, G_OFFSET, G_RTT, G_TAKEN = range(7)
LOG_WIDTH: Final = 7
"""Index in the window; stream; place and length of its payload; stream offset; `RTT_MIN` of the client at that time; number of
bytes of the payload that belong to the handshake."""
H_CONNECTION, H_SIDE, H_KIND, H_AT, H_END, H_OFFSET, H_NS = range(7)
FLIGHT_WIDTH: Final = 7
"""A record at the beginning of a stream, in the order in which records were complete: index of its connection among the
requested ones, stream 0 or 1, content type (-1 if it is not a record), start and end in the gathered bytes, stream offset, and
the time of the packet that completed it."""
FLIGHT_RECORDS: Final = 32
"""Largest number of records searched per stream: those of a handshake, and the first data."""
ENDING: Final = LIVE + 1 - RST_NS
"""Columns of a connection, RST_NS to LIVE, that describe its end."""
U_SLOT, U_LAST, U_ENDING = range(3)
U_STREAMS: Final = U_ENDING + ENDING
UNDO_WIDTH: Final = U_STREAMS + 2 * (OPEN_START + 2)
"""U_STREAMS: for both streams, the columns up to OPEN_START, which only TCP changes, then FIN_AT and FIN_NS."""

# A piece of a stream's ciphertext that one packet carried, in the order of streams.
P_PLACE, P_AT, P_LENGTH, P_END, P_NS, P_REF, P_POSITION, P_ORDER, P_RTT, P_LOW, P_HIGH = range(11)
PIECE_WIDTH: Final = 11
"""P_AT: position in the window's bytes, -1 if an earlier window had it; P_END: where it ends in the gathered ciphertext;
P_ORDER: -1 for an earlier window; P_LOW, P_HIGH: stream offsets of the packet's payload."""

# A TLS record, in the order in which records were complete.
D_STREAM, D_PLACE, D_LOW, D_HIGH, D_CIPHER, D_FIRST, D_LAST = range(7)
RECORD_WIDTH: Final = 7
"""D_STREAM: number of its stream in this window; D_LOW, D_HIGH: its span in the gathered plaintext, -1 for a record that is not
read here; D_CIPHER: its first byte in the gathered ciphertext; D_FIRST, D_LAST: the first piece and the one that completes it.
"""

ID_BYTES: Final = 64
"""Connections with longer client ids stay on the reference path."""
FLOW_BYTES: Final = 36
KEYS, VERSIONS = 128, 32
"""Number of API keys and versions that the tables have room for; others stay on the reference path."""
STEPS: Final = 16
"""Number of steps up to the acks of a Produce request that the table has room for."""
STEP_NONE, STEP_FIXED, STEP_STRING, STEP_COMPACT_STRING, STEP_TAGS, STEP_OTHER = range(6)

DONE, LEAVE = -2, -1
"""Results of the kernel for a packet: taken, or left to the reference path from its beginning. A result from 0 on is the offset
from which it is left."""
