"""Bounds of connections: what is held behind holes, and how long connections are held."""

from kcap.limits.capture import SECOND_NS

REORDER_SEGMENTS = 64
"""Data segments of the same direction after which an acknowledged hole counts as lost. Taps and multi-queue capture displace
packets by a few tens at most."""

REORDER_NS = 120 * SECOND_NS
"""Capture time after which an acknowledged hole counts as lost. On a quiet connection, few segments span many seconds."""

EARLY_SEGMENTS = 2 * REORDER_SEGMENTS
"""Data segments of the client for which a response waits for its request, which may itself be behind a hole."""

EARLY_NS = 2 * REORDER_NS
"""Capture time for which a response waits for its request."""

REORDER_BYTES_MAX, REORDER_SEGMENTS_MAX = 16 << 20, 16384
"""Bytes and segments that may wait behind an unacknowledged hole: more than the receive windows that Linux grants (6 MiB)."""

HELD_BYTES_MAX, HELD_BYTES_LEAST = 96 << 20, 16 << 10
"""Memory of what waits behind holes in all streams that hold more than the second value. Above it, each stream gives up its
hole with its next segment. There is room for sixteen full windows of 6 MiB."""

SEQUENCE_FAR = 1 << 28
"""A segment that is further than this from its stream belongs to another connection with the same ports."""

ROUND_TRIPS_NS = (1 << 63) - 1
"""Largest sum of a stream's round trips, as columns have 64 bits. Only a clock that jumps exceeds it, which does not count."""
CLOSED_WINDOW_NS = ROUND_TRIPS_NS >> 1
"""Longest total time for which one side's window is closed. A clock that jumps may give centuries, and the sum of both sides
must fit into 64 bits."""

SYN_DISPLACED_BYTES = 1 << 20
"""A SYN this near to bytes already seen was displaced behind them; a more distant one opens a new connection."""

SWEEP_NS = 600 * SECOND_NS
"""Capture time between searches for idle connections. Each search checks all open ones, so a connection is checked six times
before it is idle (CONNECTION_IDLE_NS). A row shows the time at which it became idle, whenever that was found."""

CONNECTION_IDLE_NS = 3600 * SECOND_NS
"""Time after which a silent connection is closed. Kafka's connections.max.idle.ms is 10 minutes; keep-alives count."""

CONNECTION_LINGER_NS = 30 * SECOND_NS
CONNECTION_LINGER_MIN_NS = SECOND_NS
"""Time for which a connection that ended is held for displaced and repeated packets: several retransmission time-outs. If one
is released within the second value because too many ended, that is reported."""

LINGERING_MAX = 1 << 14
"""Connections that ended and are held, some 1 KiB each. If more than 500 end per second, those that ended first are released
early. Holding all connections of 30 seconds would cost a flood of connections five times the processor time, because it would
leave the fast path."""

CONNECTIONS_MAX = 5 << 12
"""Open connections on the reference path that carried bytes, some 4 to 8 KiB each, besides those on the fast path. Those with
the oldest last packet are closed first. A broker has some ten thousand connections."""

CLOSED_TOGETHER = 1 << 12
"""Closed connections whose rows are taken together. Until then each is a row of Python objects, and at the end of a capture
also everything that the connection held."""

SILENT_MAX = 1 << 17
"""Open connections that carried no bytes, some 800 bytes each with everything that refers to them. Those stored first are
closed first. Floods and scans make such connections; a scan of all ports of a host makes half as many."""

WEIRDS_MAX = 1 << 16
"""Rows of `weirds`, one per kind of oddity and connection, some 60 bytes each besides the detail. For further connections, all
oddities of a kind are counted in one row without a connection."""

REUSED_PORTS_MAX = 32
"""Connections with the same two endpoints that linger at the same time. A segment is compared with each of them."""

DUPLICATE_NS = 5_000_000
"""The same segment again within 5 ms counts as captured twice (`-i any`, SPAN). A sender's time-out takes 200 ms or more; on a
short path, a loss probe or a fast retransmission (RFC 8985) may come as soon, which only the IP identification would show."""

DISPLACED_NS = 3_000_000
"""A segment that fills a hole within 3 ms may have been displaced on the way, as Wireshark's tcp.analysis.out_of_order assumes
where it knows no round trip. On a shorter path, a retransmission looks the same, even if the receiver reported the hole, since
packets may be displaced by more than a round trip, and a sender that has learned of that (RFC 8985) sends nothing again."""

REPEATS_KEPT = 64
"""Ranges that a stream stores as seen again or lost, to flag the rows they belong to."""

HELD_COST = 300
"""Memory of a held segment, besides its bytes."""

PIECE_COST = 256
"""Memory of a piece, besides its bytes."""
