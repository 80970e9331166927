"""Bounds of the fast path, and from when on it pays."""

from kcap.limits.connections import REPEATS_KEPT
from kcap.limits.messages import FRAME_GATHERED_MAX

FAST_PATH_AFTER_PACKETS = 1_000
"""Packets read by the compiled parser before the fast path is loaded: that takes some 50 ms, which it saves on 2,000 packets.
"""

LARGE_BYTES = 32 << 20
"""A capture of this size on disk will pay for all compiled parts; they are loaded as soon as the first rows are out."""

JIT_SOON_BYTES = 256 << 10
"""JIT_AFTER_BYTES in files of a capture that is known to be large: enough for first rows."""

FEED_PACKETS, FEED_PACKETS_MIN = 256, 64
"""Packets of the reference path between two looks whether a batch is full (up to 26,000 rows, 2.5 KB each), and of the smallest
window of the fast path, which is smaller the more rows the one before gave."""

FAST_PATH_PACKETS = 4096
"""Packets of a window: behind each, connections may be imported into the fast path. An import pass costs some 50 us; a
connection that the reference path opens waits half a window, unless it has many packets (FAST_PATH_PATIENCE)."""

FAST_PATH_PATIENCE = 8
"""Packets of a connection outside the fast path between two import passes, doubled within a batch behind each pass that imports
nothing: a new connection that begins with a burst should not stay outside for all of it."""

FAST_PATH_CONNECTIONS = 1 << 17
"""Connections in the fast path, some 1 KiB each, with those that ended and are held; more than that stay on the reference path,
where each costs several times the processor time. Where more than half of them carried no byte, the oldest of these are
closed."""

FAST_PATH_HANDSHAKE_BYTES = 32 << 20
"""Packets of TLS handshakes that go on behind a walk, some 5 kB each, until they are read; with more, they are left to the
reference path, which reads the same."""

FAST_PATH_FRAME_MAX = 1 << 20
"""Larger frames that span packets, of other APIs than Produce and Fetch, stay on the reference path: the fast path reserves
room for the complete frame from its first byte on."""

FAST_PATH_LARGE_FROM = 128 << 10
"""Produce requests, their responses and Fetch responses from this size on that span packets are read as they pass. Below
it, the projection of a batch costs less than the state of one more frame (15 us)."""

FAST_PATH_LARGE_FRAMES, FAST_PATH_LARGE_FRAMES_MAX = 256, 4096
"""Such frames that a batch of rows and all outstanding requests may have, to begin with and at most; more stay on the reference
path. Each has room for FAST_PATH_LARGE_ROOM bytes, of which only those that are stored take memory: 300 bytes of a frame with
one record batch, a few pages in all."""

FAST_PATH_LARGE_ROOM = FRAME_GATHERED_MAX + (128 << 10)
FAST_PATH_LARGE_TOPICS, FAST_PATH_LARGE_WRAPPED = 1024, 4096
"""Stored bytes, topics, and compressed messages of magic 0 and 1 of such a frame; one with more leaves the fast path."""

FAST_PATH_EXCERPTS, FAST_PATH_EXCERPT_BYTES, FAST_PATH_EXCERPTED_MAX = 1024, 256 << 10, 32 << 20
"""Excerpts of one such frame, all but its records, and their bytes, and those of all frames: with more, its partitions are read
from the file again."""

FAST_PATH_LARGE_KEPT = 16 << 10
"""Bytes of such a frame's row that stay in memory for the next one; where it stored more, all are given back."""

FAST_PATH_LARGE_PIECE = 256
"""Bytes of such a frame that are stored before it is decided which of the next are needed: room for a batch header (61 bytes)
and the fields of a partition."""

FAST_PATH_OUTSTANDING_MAX = 8192
"""Outstanding requests of one connection in the fast path; librdkafka stops at 1,000 Produce requests by default."""

FAST_PATH_NAMES_MAX = 1 << 18
"""Client ids in the fast path, 64 bytes each; a connection with one more stays on the reference path."""

FAST_PATH_NAMES = 10_000
"""Client ids after which unused ones are dropped: some clients make one up for each connection."""

FAST_PATH_WAIT = 64
FAST_PATH_EXITS_MAX = 8
"""Packets of an exported connection before it is imported again, and how often that is doubled where it does not stay in the
fast path for as long. Export and import cost as much as some 50 of its packets."""

FAST_PATH_MOVED_BODY = 4 << 10
FAST_PATH_MOVED_BYTES = 1 << 20
"""Bodies up to this size, and this many bytes in all, move to the next batch with an outstanding request; of others only the
values do."""

REPEATS_SEARCHED_MAX = 256
"""Outstanding requests that are searched for repeated bytes."""

FAST_PATH_REPEATS_MAX = REPEATS_KEPT // 2
"""Repeats after which the reference path takes over, which forgets the oldest of REPEATS_KEPT."""

PROJECTED_MESSAGE_BYTES = 1_024
"""Bytes that count as one more message: a wide one is as much work as many."""

COMPILED_FROM_BYTES = 16_384
"""A span from which on a call of the compiled interpreter is quicker than the plain one."""

FED_PROBED_BYTES, FED_COMPILED_BYTES, FED_GATHERED_BYTES = 64, 256, 6 << 10
"""Of a message in pieces: bytes that Python reads to see how far its fields lead, room for the header of a batch (61 bytes);
those from which on compiled code is quicker where they do not lead further; and those that are then read together, since a call
takes 40 us: fewer than each frame may hold uncounted (GATHERED_LEAST)."""
