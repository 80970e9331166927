"""Every bound of kcap with its reason. Reaching one is a weird, never a silent drop.

Limits that can change a row are per connection and in capture time, so that a laptop and a cluster agree; not so those
of all connections together, which are for floods."""

SECOND_NS = 1_000_000_000

# --- reading ---------------------------------------------------------------------------------------------------------
READ_WINDOW_BYTES = 1 << 22
"""Bytes of a capture file held at a time. What each window costs beside its packets (0.3 ms) was half of a capture of large
records at 1 MiB; more than this stays in no cache."""

PACKET_BYTES_MAX = 64 << 20
"""A record that claims more is damage, not a packet (Wireshark stops at 256 KiB, offload and USB captures go higher)."""

BATCH_PACKETS_MAX = 8192
"""Packets handed on at once: the first rows of a huge file must not wait for more."""

FRAGMENT_DATAGRAMS_MAX = 1024
"""Unfinished IP datagrams held (Linux holds 4 MiB of fragments, about as many)."""

FRAGMENT_WAIT_NS = 30 * SECOND_NS
"""RFC 1122 section 3.3.2 wants 60 to 120 s; Linux waits 30 s (net.ipv4.ipfrag_time)."""

GUESS_BYTES = 256 << 10
"""Read at the beginning of a range to find a record in it: more than the largest packet of a capture with offload."""

GUESS_RECORDS = 12
"""Plausible records in a row before the first is taken for the first of a range; stitching verifies the guess."""

GUESS_SECONDS = 24 * 3600
"""Seconds between two packets in a row that a guess accepts."""

GUESSES_WRONG = 3
"""Wrong guesses in one file after which longer and longer pieces are read on from verified places."""

CHUNK_PACKETS = 1 << 17
"""Packets of a range in one chunk: some 10 MiB of columns."""

CHUNK_BYTES = 4 << 20
"""Packet bytes in one chunk, where the file cannot be read a second time at low cost."""

STRIPPED_BYTES = 64 << 20
STRIPPED_PACKETS = 1 << 18
"""Payload and packets that are stripped together: batches across the edge are not blanked."""

STRIPPED_CHUNK_BYTES = 16 << 20
"""Payload of a chunk of stripped segments, most of it blanked."""

STRIPPED_MIDSTREAM_BYTES = 1 << 20
"""Bytes of a direction without a SYN that are never blanked: recognition may look at MIDSTREAM_BYTES, and resync searches a
frame boundary."""

STRIPPED_GAP_BYTES = 64 << 10
"""Bytes behind a hole that are never blanked: where it took a length prefix, the next boundary is behind one more message.
Where these are not enough, the connection is re-read unstripped."""

STRIPPED_KNOWN = 64
"""Chunks of a shard whose blanked segments are remembered; segments of older ones count as blanked."""

CHUNK_RUN_PACKETS = 8192
CHUNK_RUN_SPAN = 1 << 17
"""Packets of a shard that are analyzed at once, and the largest span of their numbers: columns have room for each number."""

CHUNK_SPARSE = 4
"""Bytes that are read from a file at once, as a multiple of the wanted ones, up to which the others stay in memory too: copying
costs more."""

CHUNK_GAP_BYTES = 16 << 10
"""Bytes of a file between two packets that are read rather than stepped over: a read costs as much as copying them."""

# --- TCP streams -----------------------------------------------------------------------------------------------------
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
"""Kinds of oddities and connections that have a row of `weirds` each, some 600 bytes; of further connections all oddities of a
kind are counted in one row without a connection."""

REUSED_PORTS_MAX = 32
"""Connections of the same two endpoints that linger at once: a segment is compared with each of them."""

DUPLICATE_NS = 5_000_000
"""The same segment again within 5 ms was captured twice (`-i any`, SPAN); a sender's own time-out takes 200 ms or more."""

REPEATS_KEPT = 64
"""Ranges a stream remembers as seen again or lost, to flag the rows they belong to."""

# --- Kafka frames ----------------------------------------------------------------------------------------------------
FRAME_BYTES_MAX = 1 << 30
"""Kafka's own bounds: socket.request.max.bytes (default 100 MiB) for requests, fetch.max.bytes (default 50 MiB) and one record
batch for responses. Settings go up to int32, a length above 1 GiB on the wire has only been seen as damage."""

RESPONSE_BYTES_MAX = 200 << 20
"""Bytes of a response beyond those that its request allows: only a fetch has a setting (max_bytes) that lets it grow."""

ORPHAN_BYTES_MAX = (1 << 24) - 1
"""Bytes of a response whose request was not seen: a length that is read a byte too early is a multiple of 16 MiB and some."""

FRAME_GATHERED_MAX, GATHERED_OF_ALL, GATHERED_LEAST = 1 << 20, 64 << 20, 8 << 10
"""Frames up to the first size are buffered for the projection, larger ones are read as they pass; memory of unfinished frames
of all connections that hold more than the third, above which smaller ones are read as they pass, too."""

FRAME_HEAD_KEPT = 1 << 12
"""Bytes of larger frames that are buffered: room for a request's header and the fields before its acks."""

FIRST_FRAME_BYTES_MAX = 512 << 20
"""The first frame of a connection that is not known to be Kafka may not claim more."""

CUT_MESSAGE_BYTES = 64 << 10
"""Bytes behind the captured part of a message that are looked at for whether what it says of lengths has room."""

RECOGNISE_BYTES = 64 << 10
"""Bytes of a stream that may be buffered before it is recognised."""

UNRECOGNISED_BYTES_MAX, UNRECOGNISED_BYTES_LEAST = 128 << 20, 8 << 10
"""Memory of what all connections hold that are not recognised yet: thousands whose beginning was not captured, in the middle of
responses. Beyond it one is decided by what it brought, where that is more than the second."""

RECOGNISE_PROOF_FACTOR = 8
"""Bytes of bodies that recognition reads as proof for each byte of a stream without its start."""

RESYNC_BYTES, SEARCHED_BYTES_MAX = 4 << 20, 64 << 20
"""Bytes held by a resync, and memory of their packets; what all hold, the bytes twice in memory, above which each makes do with
RESYNC_BYTES_LATER."""

RESYNC_SPENT_MAX = 16 << 20
RESYNC_SPENT_FACTOR = 16
"""Bytes that the resyncs of one stream may take, and how many more for each byte of it. A loss in every segment of 1,448 bytes,
each searched over 16 KiB, is within; streams made to be searched again and again are not."""

RESYNC_PROOF_COST = 4
"""What a byte of a body costs that a resync reads as proof: as much as searching so many bytes."""

RESYNC_BYTES_LATER = 16 << 10
"""Bytes held by a resync, searched at once and read as proof, once the resyncs of a stream have spent what they may."""

RESYNC_FRAME_MAX = 200 << 20
"""Resync accepts no longer frame."""

EVIDENCE_BYTES, EVIDENCE_STEP = 16, 4096
"""A frame of which the stream ends before its end is believed by EVIDENCE_BYTES of it for each doubling of what is missing,
from EVIDENCE_STEP on: 34 bytes do for 16 KiB more, a full segment for all that a frame may have. Brokers write the head of a
response apart from its records, so that a dozen bytes of some hundred are common where a capture ends."""

EVIDENCE_SHARE = 8
"""Of a response that resync finds and the capture's end cuts, one in so many bytes must be there, unless it is one to a fetch:
all others are small, so that a length of which nearly nothing follows is rather a misread one."""

DOUBTED_BYTES = 1 << 20
"""A cut message without records that says to be larger, and of which less than one in EVIDENCE_SHARE bytes is there, is not
believed: texts and bytes of it are masked. Metadata of some 10,000 partitions is as large."""

API_UNKNOWN_MAX = 1000
"""An unknown key or version from here on is chance, not an API of the future (Kafka 4.4 has keys up to 92)."""

RECOGNISED_HEADERS_MAX = 40
"""Requests in a row that recognition counts to tell the client's side from the broker's."""

CLIENT_IDS_KEPT = 8
"""Client ids of one connection that resync searches for; brokers and proxies use a few on one connection."""

IDS_SEARCHED = 64
"""Outstanding correlation ids that resync searches for; the oldest, since brokers respond in order, passed over ones last."""

IDS_APART = 100_000
"""A response to a request that was not captured has an id near those that were, or near the start."""

OUTSTANDING_MAX, OUTSTANDING_OF_ALL, OUTSTANDING_LEAST = 1 << 15, 1 << 16, 64
"""Outstanding requests of one connection, some 2 KiB each. Java allows 5 in flight, librdkafka a million by default, of which
brokers, who read one request after the other, see some thousands at most. Those of all connections that have as many as the
third; above the second each of these lets go of its oldest one with each new one."""

ONE_WAY_KEPT = 1000
"""Produce requests with acks=0 of one connection that are held in case a broker responds to them (some mock brokers do)."""

EARLY_RESPONSES_MAX, EARLY_BYTES_MAX, EARLY_BYTES_OF_ALL, EARLY_BYTES_LEAST = 4096, 4 << 20, 64 << 20, 8 << 10
"""Responses of one connection that may wait for a request captured after them, and their memory; that of all connections, above
which each makes do with the last, room for ten small ones."""

MIDSTREAM_BYTES = 1 << 20
"""Bytes of a connection without a SYN that are buffered while its direction is unknown."""

# --- rows ------------------------------------------------------------------------------------------------------------
ROWS_PER_BATCH = 16384
"""Rows built at once."""

LARGE_BODIES_ROOM, REREAD_BYTES_MAX, READ_AHEAD_BYTES = 64 << 20, (100 << 20) + 4, 16 << 20
"""Bytes of large bodies that are read again and in memory at once: a batch whose records are needed ends there. The largest one
for tables, twice in memory: brokers take 100 MiB (socket.request.max.bytes). Bytes of those that are read together."""

SPARSE_BODIES_ROOM = 1 << 30
"""Addresses of a batch's large bodies of which excerpts are enough, a few pages of memory each; their offsets have 32 bit."""

PARTITIONS_AT_ONCE, TRANSACTION_PARTITIONS_MAX, PARTITIONS_PROJECTED_MAX, NESTED_MAX = 1 << 16, 1 << 18, 1 << 18, 1 << 17
"""Rows of `partitions` made at once, some 500 bytes each: a batch of small entries has a million; those that the rows of
`transactions` name, from the first; those of a batch that are projected with its messages, 136 bytes each; and those or the
records that the row of an exchange has as a list, from the first."""

PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE, TOPICS_AT_ONCE, TOPICS_CARRIED_BYTES = 1 << 17, 1 << 17, 1 << 18, 64 << 20
"""Of one message, from the first: partitions that have rows, 136 bytes each and again in the row (brokers of KRaft hold some
thousands, a cluster of ZooKeeper at most 200,000), and topics that its row lists, some 700 bytes each. Topics of which rows are
made at once, 200 to 450 bytes each: bodies of a batch have room for sixteen million. Memory of those of messages that wait for
another batch, 4 to 20 bytes each beside the name: as much as the largest clusters list, in the longest names."""

BODIES_BYTES = 16 << 20
"""Bytes of bodies collected before they are projected and released: a batch costs some 10 ms beside its rows."""

# --- reading, beginnings ---------------------------------------------------------------------------------------------
FIRST_WINDOW_BYTES = 64 << 10
"""Bytes read first, doubled up to READ_WINDOW_BYTES: the first read of each file of a set should be cheap."""

MAPPED_FILE_BYTES = 32 << 20
"""Files from this size on can be mapped into memory instead of being read."""

MAPPED_PACKET_BYTES = 1 << 12
"""Mean size of the packets from which a map pays. Mapping spares 0.2 ns a byte and costs 0.25 us a packet, whose pages are in
no buffer of the processor; packets of Ethernet's size cost the same either way."""

OPEN_WINDOWS_BYTES = 32 << 20
"""Windows of all files that are merged at once: many overlapping files get smaller windows, not more memory."""

JIT_AFTER_BYTES = 512 << 10
"""A file is read by kernels from here on; below, loading their machine code costs more than it saves (20 to 40 ms)."""

COMPILE_AFTER_BYTES = 8 << 20
"""A file is worth the making of kernels, where they are not made yet, from here on."""

DECOMPRESS_INPUT_BYTES = 1 << 10
"""Compressed bytes given to zstd at once, whose output cannot be bounded otherwise: 4 bytes may become a block of 128 KiB,
so this is 32 MiB at worst."""

XZ_MEMORY_BYTES = 256 << 20
"""Memory that an xz stream may ask for: `xz -9` needs 65 MiB; a stream that wants more was made to exhaust its reader."""

FRAGMENT_BYTES_MAX = 2 << 16
"""Bytes held of one unfinished IP datagram: twice its maximum length, for overlapping copies."""

# --- records ---------------------------------------------------------------------------------------------------------
INFLATED_BYTES_MAX = 16 << 20
"""Bytes a compressed batch may always grow to: Kafka's message.max.bytes is 1 MiB by default and counts compressed bytes."""

INFLATED_RATIO_MAX = 64
"""A larger batch may grow to this many times its size; JSON logs reach 20 to 40 under zstd. What lies beyond is not read."""

# --- the fast path ---------------------------------------------------------------------------------------------------
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
where each costs several times the processor time."""

FAST_PATH_HANDSHAKE_BYTES = 32 << 20
"""Packets of TLS handshakes that go on behind a walk, some 5 kB each, until they are read; with more, they are left to the
reference path, which reads the same."""

FAST_PATH_FRAME_MAX = 1 << 20
"""Larger frames that span packets, of other APIs than Produce and Fetch, stay on the reference path: the fast path reserves
room for the complete frame from its first byte on."""

FAST_PATH_LARGE_FROM = 128 << 10
"""Produce requests and Fetch responses from this size on that span packets are read as they pass. Below it, the projection of a
batch costs less than the state of one more frame (15 us)."""

FAST_PATH_LARGE_FRAMES = 256
"""Such frames that a batch of rows and all outstanding requests may have; more stay on the reference path. Each has room for
FAST_PATH_LARGE_ROOM bytes, of which only those that are stored take memory: 300 bytes of a frame with one record batch."""

FAST_PATH_LARGE_ROOM = FRAME_GATHERED_MAX + (128 << 10)
FAST_PATH_LARGE_TOPICS, FAST_PATH_LARGE_WRAPPED = 1024, 4096
"""Stored bytes, topics, and compressed messages of magic 0 and 1 of such a frame; one with more leaves the fast path."""

FAST_PATH_EXCERPTS, FAST_PATH_EXCERPT_BYTES = 1024, 256 << 10
"""Excerpts of one such frame, all but its records, and their bytes: with more, its partitions are read from the file again."""

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

# --- facts of the whole capture --------------------------------------------------------------------------------------
PRINCIPAL_BYTES_MAX = 1 << 10
"""Longest name of a principal that is accepted (Kafka's own limit for resource names is 249)."""

OVERTAKEN_BODY_BYTES = 512
"""Bodies up to this size are retained for a request whose row comes in a later batch: those of identifying requests
(ApiVersions, logins) are smaller, but for some bearer tokens."""

TOPIC_NAMES_KEPT, NAMELESS_KEPT = 1 << 18, 1 << 18
"""Topic ids whose names are remembered, some 500 bytes each; clusters of ZooKeeper have at most 200,000 partitions. Ids without
a name that rows have, and servers that rows name: with more, all rows count as such that a name that comes later changes."""

HOST_NAMES_KEPT = 1 << 17
"""Addresses whose host names are remembered, of a file and in all, some 300 bytes each; Wireshark writes what it looked up."""

BROKERS_KEPT = 100_000
"""Endpoints of brokers that are remembered; large estates have some thousands."""

PROFILES_OPEN = 4096
"""Connections of `versions` whose profile can be added to at once; those of others are stored, and opened again."""

ANSWERS_KEPT = 4096
"""Distinct bodies that are remembered so that equal ones are decoded once; dropped together."""

OFFERED_APIS_MAX = API_UNKNOWN_MAX
"""APIs of one ApiVersions response that count, from the first, 6 bytes each; Kafka has some 90."""

OFFERED_FEATURES_MAX = 32
"""Features of one ApiVersions response that count, from the first, half a KiB each; Kafka has some ten."""

OFFERS_KEPT = 1 << 13
"""Different lists of APIs in ApiVersions responses, and changes of servers between these, that are kept; a connection that gets
another list counts as one that got none. Brokers of one release send the same, and an upgrade is one change."""

SOFTWARE_KEPT = 1024
"""Client libraries (name and version) whose use of versions is remembered, 4 KiB each; a fleet has some dozens."""

FETCH_PARTITIONS_KEPT = 500_000
"""Partitions of all fetch sessions that are remembered, some 300 bytes each; Kafka's max.incremental.fetch.session.cache.slots
holds sessions of any size, a follower's has every partition it follows."""

MUTE_CLOCK_NS = 10_000_000
"""By how much a response may come before its broker's mute is over: the mute began before the throttled response was on the
wire, and is counted in whole milliseconds. Seen: 1.8 ms."""

HELD_ROWS, HELD_ROW_BYTES = 1 << 15, 1 << 11
"""Rows that wait in memory for facts of the whole capture, half a Parquet row group, and their mean size; later ones wait on
disk, or are backfilled at the end. Most brokers and topics of a capture are known after its first connections."""

TAIL_BATCHES_MAX = 128
"""Small batches of rows that wait to become a large one while a capture goes on. Each costs some 40 KB beside its rows, for 80
columns: 20 batches a second were 140 MB within three minutes."""

GROUP_EVENTS_MAX = 100_000
"""Changes of groups that a report follows, from the first: some 100 bytes each, and two messages to decode."""

STRETCHES_MAX = 1 << 16
"""Stretches of time during which a last stable offset stood still, by transactional id, that a rule compares with
transactions: the longest, some 500 bytes each."""

PROGRAMS_COMPARED, SIBLINGS_COMPARED, ADVERTISED_JUDGED = 32, 64, 16
"""Of `versions`: programs of one client id, and servers of one host or cluster, with which another is compared; wrong addresses
of one server's list that are named."""

OTHERS_KEPT = 1 << 16
"""Connections without an exchange whose lines `versions` tests one by one, 1.7 KB each: scans and floods make them."""

OFFSET_MOST = 1 << 53
"""Largest offset that rules calculate with: a damaged message may have any 64 bits, whose sums and differences overflow."""

LINKS_KEPT = 1 << 14
"""Groups of connections, by client and server, that rules of `check` look at, 1.7 KB each: half of them those with the most
exchanges, half those that had none, such as logins and handshakes that failed; either have the room that the others leave.
Scans are not among them, which count where a broker advertises the address alone; without them an estate has some thousands."""

MESSAGES_KEPT_BYTES = 4 << 20
"""Bytes of messages that stay decoded for other rules; as objects they take some 20 times as much."""

REPORT_NAME_BYTES = 256
"""Bytes of a name in a report; longer ones are shortened there. Kafka's own limit for topics and other resources is 249, client
ids and groups may have 32 KB, of which an engine holds several copies."""

REPORT_NAMES_MAX = 1 << 14
"""Names of a column that reports tell apart, the first ones: some 5 KB of each, as rows of Python objects. Addresses count as
names but in `check`, `groups` and `transactions`, which find messages by them."""

REPORT_NAMES_ROWS, REPORT_NAMES_BYTES = 1 << 10, 8 << 20
"""Rows of a report's table whose names are changed at once, and their bytes in the table: each may have several names of 32 KB,
or thousands of topics."""

REPORT_ROW_GROUP = 1 << 16
"""Rows of a row group of a report's tables, which wait in memory. Each of its dozens of statements begins anew with each row
group: with twice as many rows those of `check` take an eighth less time, and writing them a fifth less."""

REPORT_FETCHED_ROWS = 1 << 12
"""Rows of an answer that a report takes from its engine at once, as tuples."""

REPORT_ENGINE_BYTES = 96 << 20
"""Memory of a report's engine, beyond which it writes what it can to its folder: a capture with two million partitions takes
half of what it took without the bound, in the same time. What cannot be written, such as the values of a quantile, is then
computed without the bound."""

REPORT_TABLE_BYTES = 1 << 18
"""Bytes of a report's Parquet files up to which the engine holds them as tables: statements over such small files take longer
to plan than to run."""

REPORT_MESSAGES_KEPT = 1 << 12
"""Messages, and rows by which they are found, that stay for other rules of `check`."""

PLANS_KEPT = 256
"""Files of compiled reports that are kept, the newest: one for each report with its parameters, some 20 kB each."""

PLAN_STATEMENTS_MAX = 2000
"""Statements in one of them, some 1.5 kB each: thresholds that a user changes are numbers in them. A fuller one begins anew."""

REPORT_COURSES = 100
"""Findings whose exchanges are counted over time, the first: each is a filter over all exchanges."""

SQL_ROWS_AT_ONCE = 1 << 11
SQL_BYTES_AT_ONCE = 4 << 20
"""Rows that `sql` takes from its engine at once, and bytes of them that are written at once: they may have names of 32 KB each,
which a writer holds as several texts."""

PARTS_OPEN = 64
"""Open files of a partitioned table."""

PARTS_ROWS = 1 << 17
"""Rows of all partitions that wait in memory for a row group: as many as are sorted at once."""

SORTED_ROWS = 1 << 17
"""Rows that are sorted in memory before they wait on disk as a run: some 60 MB of all columns."""

EARLY_CLOCK_NS = 1_000_000
"""By how much a request may come before the client's throttle is over: Java clients count in whole milliseconds, cut down."""

IDS_IN_FLIGHT = 1000
"""By how much the ids of two consecutive responses may differ."""

SPOOL_BYTES_MAX = 1 << 30
"""Bytes of a pipe or a compressed file that are spilled to disk for re-reading; bodies behind them are not retained."""

# --- TLS -------------------------------------------------------------------------------------------------------------
TLS_SESSIONS_MAX = 1 << 18
"""Sessions whose secrets are held at once, some 270 bytes each of TLS 1.3, 70 MB beside all that a report holds; a day of a
busy broker has some 100,000."""

TLS_SECRETS_TRIED = 4
"""Different secrets of a label and client random that are tried: of a log that was written twice, or of several."""

TLS_TRIAL_BYTES, TLS_TRIAL_FACTOR, TLS_TRIAL_COST = 1 << 22, 16, 64
"""Bytes of records that a direction may spend on trying keys and record numbers before it has brought any itself, and those
that each byte of it allows, so that the cost stays linear; bytes that a trial counts for beside those of its record."""

TLS_UNOPENED_RECORDS = 8
"""Whole records in a row that do not open, behind which no other keys are tried than those in use: damage leaves the headers of
so many records seldom alone, and a record of the next keys would have been one of them."""

TLS_NUMBER_TRIES = 1 << 14
"""Record numbers tried behind a loss: a hole of 360 kB of smallest records."""

TLS_MIDSTREAM_TRIES, TLS_HIDDEN_TRIES = 1 << 12, 1 << 10
"""Record numbers tried on a connection that began before the capture; sessions on one whose ClientHello is encrypted: 30 ms."""

TLS_WAITING_RECORDS = 64
"""Encrypted records that wait for a handshake whose packets come later: early data of TLS 1.3 is 16 kB by default."""

TLS_HANDSHAKE_BYTES = 1 << 18
"""Bytes of handshake messages of a direction: certificate chains of 100 kB occur."""

TLS_HELLO_BYTES = 1 << 15
"""Bytes of a server that wait for the ClientHello, which stands behind them in captures out of order."""

TLS_REPEATS = 64
"""Fields of handshakes of one kind (suites, chains, EncryptedExtensions) whose meaning is retained: few clients and brokers
send the same ones in each handshake."""

TLS_REPEATED_BYTES = 1 << 13
"""Bytes of such a field: a chain of four certificates has 5 kB; 64 lists of 4,096 suites take 9 MB."""

TLS_ALERTS_KEPT = TLS_RANDOMS_KEPT = 16
"""Alerts of a connection that are named, and its client randoms, of which each renegotiation has one."""

TLS_TURNS_MAX = 1 << 20
"""Turns of an encrypted connection that are retained until it ends: 72 MiB."""

TLS_PLAINTEXT_BYTES = 256 << 20
"""Memory of plaintext that is retained for exchanges that are read again; it is never written to disk."""

CONCLUSIONS_UNASKED_BYTES = 512 << 20
"""Bytes of captures up to which the terminal UI looks for problems without being asked to: it reads them once more for that."""

LIVE_ROWS_MAX = 1_000_000
"""Exchanges that the terminal UI holds of a capture that goes on, some 10 minutes of a busy broker: the list is put in order
again with each of its refreshes, and its memory must not grow by the hour. The oldest ones go first."""

PROFILES_INSIDE_BYTES = 1 << 20
"""Bytes of the profiles of connections, some 10,000, from which on a process of its own computes the view of versions: those of
150,000 connections take 160 MB as objects, and loading them keeps keys waiting."""

INDEXED_LEAST_BYTES = 32 << 20
"""Bytes of captures from which on the terminal UI keeps what it read for the next opening; smaller ones take a second."""

VIEW_ROWS = 5000
"""Rows of a sheet of the terminal UI that has a row for each connection or group: those that matter most."""

INDEXES_BYTES = 8 << 30
"""Bytes of all kept indexes of captures; the ones that were not opened for the longest time go first."""

# --- processes -------------------------------------------------------------------------------------------------------
JOBS_MAX = 2
"""Processes that read a capture: one analyzes packets, one makes tables, each about half of the work."""

JOBS_LEAST_BYTES = 2 << 30
"""Bytes of captures from which on a second process is started without `--jobs`. On 400 MB of small packets it saves
0.9 s of 2.5 and costs 0.25 s of the other processor; on large records, of which 1 GB takes a second, it saves nothing."""

JOBS_SLOTS_HELD = 8
"""Batches in shared memory, some 20 MiB each, that rows may refer to; arrays of further ones are copied."""

ADDRESS_SPACE_TABLES = 352 << 20
"""Bytes that a process must be able to address (`ulimit -v`) to load Arrow and numpy with room for a capture: with 300 MiB they
load, with 260 they fail."""

ADDRESS_SPACE_DUCKDB = 3 << 30
"""The same with DuckDB, which reserves far more than it uses, and ends the process where it gets less: with 2,000 MiB some runs
of reports end so, with 2,600 none."""
