"""Bounds of messages: frames, bytes for recognition and resync, compressed records."""

FRAME_BYTES_MAX = 1 << 30
"""Largest frame. Kafka's own bounds are socket.request.max.bytes (default 100 MiB) for requests, and fetch.max.bytes (default
50 MiB) plus one record batch for responses. Settings go up to int32, but a length above 1 GiB on the wire has only been seen as
damage."""

RESPONSE_BYTES_MAX = 200 << 20
"""Bytes of a response beyond those that its request allows. Only a fetch has a setting (max_bytes) that lets it grow."""

ORPHAN_BYTES_MAX = (1 << 24) - 1
"""Bytes of a response whose request was not seen. A length that is read a byte too early is a multiple of 16 MiB and more."""

FRAME_GATHERED_MAX, GATHERED_OF_ALL, GATHERED_LEAST = 1 << 20, 64 << 20, 8 << 10
"""Frames up to the first size are buffered for the projection; larger ones are read piece by piece. The second is the memory of
incomplete frames of all connections that hold more than the third; above it, smaller frames are read piece by piece too."""

FRAME_HEAD_KEPT = 1 << 12
"""Bytes of larger frames that are buffered: room for a request's header and the fields up to its acks."""

FIRST_FRAME_BYTES_MAX = 512 << 20
"""Largest first frame of a connection that is not known to be Kafka."""

CUT_MESSAGE_BYTES = 64 << 10
"""Bytes after the captured part of a message that are checked for whether there is room for the lengths in the message."""

RECOGNISE_BYTES = 64 << 10
"""Bytes of a stream that may be buffered before it is recognised."""

UNRECOGNISED_BYTES_MAX, UNRECOGNISED_BYTES_LEAST = 128 << 20, 8 << 10
"""Memory of the bytes that all unrecognised connections hold: thousands whose beginning was not captured, in the middle of
responses. Beyond it, a connection that holds more than the second value is decided by the bytes at hand."""

RECOGNISE_PROOF_FACTOR = 8
"""Bytes of bodies that recognition reads as evidence per byte of a stream without its start."""

RESYNC_BYTES, SEARCHED_BYTES_MAX = 4 << 20, 64 << 20
"""Bytes held by a resync, and memory of their packets; the same for all resyncs, whose bytes are in memory twice. Above it,
each makes do with RESYNC_BYTES_LATER."""

RESYNC_SPENT_MAX = 16 << 20
RESYNC_SPENT_FACTOR = 16
"""Bytes that the resyncs of one stream may take, and how many more per byte of the stream. A loss in every segment of 1,448
bytes, each searched over 16 KiB, stays within; streams made to be searched again and again do not."""

RESYNC_PROOF_COST = 4
"""Cost of a byte of a body that a resync reads as evidence, in bytes searched."""

RESYNC_BYTES_LATER = 16 << 10
"""Bytes held by a resync, searched at once and read as evidence, after the resyncs of a stream have spent their budget."""

RESYNC_FRAME_MAX = 200 << 20
"""Longest frame that resync accepts."""

EVIDENCE_BYTES, EVIDENCE_STEP = 16, 4096
"""An incomplete frame at the end of the stream is accepted if EVIDENCE_BYTES of it are there for each doubling of the missing
bytes, from EVIDENCE_STEP on: 34 bytes are enough for 16 KiB more, and a full segment for the largest frame. Brokers write the
head of a response separately from its records, so a capture often ends with a dozen bytes of some hundred."""

EVIDENCE_SHARE = 8
"""Of a response that resync finds and the capture's end cuts, one in so many bytes must be there, unless it responds to a
fetch. All other responses are small, so a length with almost no bytes after it was probably misread."""

DOUBTED_BYTES = 1 << 20
"""A cut message without records that claims to be larger, and of which less than one in EVIDENCE_SHARE bytes is there, is not
trusted: its texts and bytes are masked. Metadata of some 10,000 partitions has this size."""

API_UNKNOWN_MAX = 1000
"""An unknown key or version from here on is a coincidence, not an API of the future (Kafka 4.4 has keys up to 92)."""

RECOGNISED_HEADERS_MAX = 40
"""Consecutive requests that recognition counts to distinguish the client's side from the broker's."""

CLIENT_IDS_KEPT = 8
"""Client ids of one connection that resync searches for; brokers and proxies use a few on one connection."""

IDS_SEARCHED = 64
"""Outstanding ids that resync searches for: the oldest, since brokers respond in order; those passed over come last."""

IDS_APART = 100_000
"""A response to a request that was not captured has an id that is this near to those captured, or to the start."""

OUTSTANDING_MAX, OUTSTANDING_OF_ALL, OUTSTANDING_LEAST = 1 << 15, 1 << 16, 64
"""Outstanding requests of one connection, some 2 KiB each. Java allows 5 in flight, librdkafka a million by default; brokers,
which read one request after the other, see some thousands of them at most. The second value is for all connections that have at
least as many as the third; above it, each of these drops its oldest one with each new one."""

IN_FLIGHT_DATED = 64
"""Requests of one connection whose times are compared to find how many were in flight when a response was complete. If there
are more, later ones are counted too when missing bytes delayed the response."""

ONE_WAY_KEPT = 1000
"""Produce requests with acks=0 of one connection that are held in case a broker responds to them (some mock brokers do)."""

EARLY_RESPONSES_MAX, EARLY_BYTES_MAX, EARLY_BYTES_OF_ALL, EARLY_BYTES_LEAST = 4096, 4 << 20, 64 << 20, 8 << 10
"""Responses of one connection that may wait for a request captured after them, and their memory; that of all connections, above
which each makes do with the last value, room for ten small ones."""

MIDSTREAM_BYTES = 1 << 20
"""Bytes of a connection without a SYN that are buffered while its direction is unknown."""

INFLATED_BYTES_MAX = 16 << 20
"""Bytes to which a compressed batch may always grow. Kafka's message.max.bytes, 1 MiB by default, counts compressed bytes."""

INFLATED_RATIO_MAX = 64
"""A larger batch may grow to this many times its size; JSON logs reach 20 to 40 under zstd. Bytes beyond that are not read."""

METRICS_BYTES_MAX = 1 << 20
"""Decompressed bytes of one push. A client has some hundred metrics of a hundred bytes each. Any two bytes may be a field,
which is shown as a line."""

METRICS_DEPTH_MAX = 32
"""Nested messages that are opened; OTLP needs 8."""

VERSION_PLANS_MAX = 4096
"""Cached plans: more than exist, fewer than the versions of a hostile capture."""

COPIED_MAX = 1 << 17
"""Rows up to which a table grows step by step, since all of them are copied each time."""

ZSTD_WINDOW_MAX = 16 << 20
"""Largest zstd window that is allocated; level 22 of the library asks for 128 MiB, Kafka's clients stay at or below 8 MiB."""

ZSTD_KEPT_BYTES = 4 << 20
"""Memory of a zstd decompressor that is reused; windows of 2 MiB, as at the default level of the library, take 2.5 MiB."""

CALL_BYTES = 200
"""Memory of a buffered call of a connection that is not recognised yet, besides its bytes."""

RESYNC_PIECE_BYTES = 400
"""Memory of a piece in a search for a frame boundary, besides its bytes."""

EARLY_RESPONSE_BYTES = 800
"""Memory of a response that waits for its request, besides its body."""

CHECKSUMS_MOST = 4
"""How often bytes may be checksummed in a search for record batches, since any of them may look like the header of one."""
