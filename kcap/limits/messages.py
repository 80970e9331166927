"""Bounds of messages: frames, what recognition and resync look at, compressed records."""

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

IN_FLIGHT_DATED = 64
"""Requests of one connection whose times are looked at for how many were in flight when a response was whole. Of more, those
count too that came later, where missing bytes delayed the response."""

ONE_WAY_KEPT = 1000
"""Produce requests with acks=0 of one connection that are held in case a broker responds to them (some mock brokers do)."""

EARLY_RESPONSES_MAX, EARLY_BYTES_MAX, EARLY_BYTES_OF_ALL, EARLY_BYTES_LEAST = 4096, 4 << 20, 64 << 20, 8 << 10
"""Responses of one connection that may wait for a request captured after them, and their memory; that of all connections, above
which each makes do with the last, room for ten small ones."""

MIDSTREAM_BYTES = 1 << 20
"""Bytes of a connection without a SYN that are buffered while its direction is unknown."""

INFLATED_BYTES_MAX = 16 << 20
"""Bytes a compressed batch may always grow to: Kafka's message.max.bytes is 1 MiB by default and counts compressed bytes."""

INFLATED_RATIO_MAX = 64
"""A larger batch may grow to this many times its size; JSON logs reach 20 to 40 under zstd. What lies beyond is not read."""

METRICS_BYTES_MAX = 1 << 20
"""Inflated bytes of one push: a client has some hundred metrics of a hundred bytes each. Any two bytes may be a field, which is
a line of what is shown."""

METRICS_DEPTH_MAX = 32
"""Messages inside messages that are opened; OTLP needs 8."""

VERSION_PLANS_MAX = 4096
"""Cached plans: more than there are, fewer than the versions of a hostile capture."""

COPIED_MAX = 1 << 17
"""Rows of a table that grows step by step: all of them are copied each time."""

ZSTD_WINDOW_MAX = 16 << 20
"""Largest zstd window that is allocated; level 22 of the library asks for 128 MiB, Kafka's clients stay at or below 8 MiB."""

ZSTD_KEPT_BYTES = 4 << 20
"""Memory of a zstd decompressor that is used again; windows of 2 MiB, as at the default level of the library, take 2.5 MiB."""

CALL_BYTES = 200
"""Memory of a call that waits until its connection is recognised, beside its bytes."""

RESYNC_PIECE_BYTES = 400
"""Memory of a piece of a search for a frame's beginning, beside its bytes."""

EARLY_RESPONSE_BYTES = 800
"""Memory of a response that waits for its request, beside its body."""

CHECKSUMS_MOST = 4
"""Times that bytes are checksummed in a search for record batches: any of them may look like the header of one."""
