"""Bounds of the fast path, and sizes from which it pays off."""

from kcap.limits.connections import REPEATS_KEPT
from kcap.limits.messages import FRAME_GATHERED_MAX

FAST_PATH_AFTER_PACKETS = 1_000
"""Packets read by the compiled parser before the fast path is loaded, which takes 50 ms and saves these on 2,000 packets."""

LARGE_BYTES = 32 << 20
"""Size on disk of a capture for which all compiled parts pay off; they are loaded after the first rows were written."""

JIT_SOON_BYTES = 256 << 10
"""JIT_AFTER_BYTES for files of a capture that is known to be large: enough for the first rows."""

FEED_PACKETS, FEED_PACKETS_MIN = 256, 64
"""Packets of the reference path between two checks whether a batch is full (up to 26,000 rows, 2.5 KB each), and packets in the
smallest window of the fast path. A window is smaller if the previous one gave more rows."""

FAST_PATH_PACKETS = 4096
"""Packets of a window. After each one, connections may be imported into the fast path. An import pass costs some 50 us. A
connection that the reference path opens waits for half a window, unless it has many packets (FAST_PATH_PATIENCE)."""

FAST_PATH_PATIENCE = 8
"""Packets of a connection outside the fast path between two import passes. Within a batch, the number is doubled after each
pass that imports nothing. A new connection that begins with a burst should not stay outside during all of it."""

FAST_PATH_CONNECTIONS = 1 << 17
"""Connections in the fast path, some 1 KiB each, including those that ended and are held. More than these stay on the reference
path, where each costs several times the processor time. If more than half of them carried no bytes, the oldest of these are
closed."""

FAST_PATH_HANDSHAKE_BYTES = 32 << 20
"""Packets of TLS handshakes that continue after a walk, some 5 kB per handshake, until they are read. Further handshakes are
left to the reference path, which reads the same."""

FAST_PATH_FRAME_MAX = 1 << 20
"""Larger frames that span packets stay on the reference path, except for those of Produce and Fetch: the fast path reserves
room for the complete frame from its first byte on."""

FAST_PATH_LARGE_FROM = 128 << 10
"""Size from which Produce requests, their responses and Fetch responses that span packets are read piece by piece. Below it,
the projection of a batch costs less than the state of one more frame (15 us)."""

FAST_PATH_LARGE_FRAMES, FAST_PATH_LARGE_FRAMES_MAX = 256, 4096
"""Such frames that a batch of rows and all outstanding requests may have, initially and at most; more stay on the reference
path. Each has room for FAST_PATH_LARGE_ROOM bytes, but only stored bytes take memory: 300 bytes for a frame with one record
batch, or a few pages in all."""

FAST_PATH_LARGE_ROOM = FRAME_GATHERED_MAX + (128 << 10)
FAST_PATH_LARGE_TOPICS, FAST_PATH_LARGE_WRAPPED = 1024, 4096
"""Stored bytes, topics, and compressed messages of magic 0 and 1, of such a frame; a frame with more leaves the fast path."""

FAST_PATH_EXCERPTS, FAST_PATH_EXCERPT_BYTES, FAST_PATH_EXCERPTED_MAX = 1024, 256 << 10, 32 << 20
"""Excerpts of one such frame, which are all but its records, and their bytes, and the excerpt bytes of all frames. Beyond these
bounds, the frame's partitions are re-read from the file."""

FAST_PATH_LARGE_KEPT = 16 << 10
"""Bytes of such a frame's row that stay in memory for the next one. If it stored more, all are released."""

FAST_PATH_LARGE_PIECE = 256
"""Bytes of such a frame that are stored before it is decided which further ones are needed: room for a batch header (61 bytes)
and the fields of a partition."""

FAST_PATH_OUTSTANDING_MAX = 8192
"""Outstanding requests of one connection in the fast path; librdkafka stops at 1,000 Produce requests by default."""

FAST_PATH_NAMES_MAX = 1 << 18
"""Client ids in the fast path, 64 bytes each. A connection with one more stays on the reference path."""

FAST_PATH_NAMES = 10_000
"""Client ids after which unused ones are dropped: some clients make a new one for each connection."""

FAST_PATH_WAIT = 64
FAST_PATH_EXITS_MAX = 8
"""Packets of an exported connection before it is imported again, and how often that number is doubled if the connection does
not stay in the fast path for as long. Export and import cost as much as some 50 of its packets."""

FAST_PATH_MOVED_BODY = 4 << 10
FAST_PATH_MOVED_BYTES = 1 << 20
"""Bodies up to this size, and this many bytes in all, move to the next batch with a request; of others only the values do."""

REPEATS_SEARCHED_MAX = 256
"""Outstanding requests that are searched for repeated bytes."""

FAST_PATH_REPEATS_MAX = REPEATS_KEPT // 2
"""Repeats after which the reference path takes over; it drops the oldest of REPEATS_KEPT."""

PROJECTED_MESSAGE_BYTES = 1_024
"""Bytes that count as one more message: a large message takes as much time as many small ones."""

COMPILED_FROM_BYTES = 16_384
"""Size of a span from which a call of the compiled interpreter is faster than the plain one."""

FED_PROBED_BYTES, FED_COMPILED_BYTES, FED_GATHERED_BYTES = 64, 256, 6 << 10
"""For a message in pieces: bytes that Python reads to see how far its fields lead, with room for the header of a batch (61
bytes); bytes from which compiled code is faster if the fields do not lead further; and bytes that are then read together,
because a call takes 40 us. The last is less than each frame may hold uncounted (GATHERED_LEAST)."""
