"""Bounds of connections: what waits behind holes, and how long they are held."""

from kcap.limits.capture import SECOND_NS

REORDER_SEGMENTS = 64
"""Data segments of the same direction after which a hole that was acknowledged is taken for lost. Taps and multi-queue
capture displace packets by a few tens at most."""

REORDER_NS = 120 * SECOND_NS
"""Capture time after which an acknowledged hole is taken for lost: on a quiet connection few segments span many seconds."""

EARLY_SEGMENTS = 2 * REORDER_SEGMENTS
"""Data segments of the client that a response waits for its request, which may be behind a hole for as long as a hole may."""

EARLY_NS = 2 * REORDER_NS
"""Capture time that a response waits for its request."""

REORDER_BYTES_MAX, REORDER_SEGMENTS_MAX = 16 << 20, 16384
"""Bytes and segments that may wait behind an unacknowledged hole: above the receive windows that Linux grants (6 MiB)."""

HELD_BYTES_MAX, HELD_BYTES_LEAST = 96 << 20, 16 << 10
"""Memory of what waits behind holes in all streams that hold more than the second; above it each gives its hole up as its
next segment comes. It has room for sixteen full windows of 6 MiB."""

SEQUENCE_FAR = 1 << 28
"""A segment further than this from its stream belongs to another connection of the same ports."""

ROUND_TRIPS_NS = (1 << 63) - 1
"""Sum of the round trips of a stream, in columns of 64 bits; those beyond it, which a clock makes that jumps, do not count."""
CLOSED_WINDOW_NS = ROUND_TRIPS_NS >> 1
"""How long one side closes its window, which clocks that jump make centuries: the sum of both has 64 bits."""

SYN_DISPLACED_BYTES = 1 << 20
"""A SYN this near to bytes already seen was displaced behind them; further away it opens a new connection."""

SWEEP_NS = 600 * SECOND_NS
"""Capture time between sweeps of idle connections: each looks at all open ones, so a connection is looked at six times before
it is idle (CONNECTION_IDLE_NS). A row shows the time at which it became so, whenever that is seen."""

CONNECTION_IDLE_NS = 3600 * SECOND_NS
"""A silent connection is closed after this long. Kafka's own connections.max.idle.ms is 10 minutes; keep-alives count."""

CONNECTION_LINGER_NS = 30 * SECOND_NS
CONNECTION_LINGER_MIN_NS = SECOND_NS
"""A connection that ended is held this long for displaced and repeated packets: several retransmission time-outs. One that is
let go within the second, since too many ended, is reported."""

LINGERING_MAX = 1 << 14
"""Connections that ended and are held, some 1 KiB each: with more than 500 a second, those that ended first are let go early.
Room for all of 30 seconds costs a storm of connections five times the processor time, since it leaves the fast path."""

CONNECTIONS_MAX = 5 << 12
"""Open connections on the reference path that carried bytes, some 4 to 8 KiB each, beside those on the fast path. The quietest
are closed first. A broker has some ten thousand connections."""

CLOSED_TOGETHER = 1 << 12
"""Closed connections before their rows are taken: until then each is a row of Python objects, at the end of a capture with all
that the connection had."""

SILENT_MAX = 1 << 17
"""Open connections that carried no byte, some 800 bytes each with all that refers to them; those packed first are closed first.
Floods and scans make them; a scan of all ports of a host makes half as many."""

WEIRDS_MAX = 1 << 16
"""Kinds of oddities and connections that have a row of `weirds` each, some 60 bytes beside its detail; of further connections
all oddities of a kind are counted in one row without a connection."""

REUSED_PORTS_MAX = 32
"""Connections of the same two endpoints that linger at once: a segment is compared with each of them."""

DUPLICATE_NS = 5_000_000
"""The same segment again within 5 ms was captured twice (`-i any`, SPAN); a sender's own time-out takes 200 ms or more."""

DISPLACED_NS = 3_000_000
"""A segment that fills a hole within 3 ms may have been displaced on the way, as Wireshark's tcp.analysis.out_of_order says."""

REPEATS_KEPT = 64
"""Ranges a stream remembers as seen again or lost, to flag the rows they belong to."""

HELD_COST = 300
"""Memory of a segment that waits, beside its bytes."""

PIECE_COST = 256
"""Memory of a piece beside its bytes."""
