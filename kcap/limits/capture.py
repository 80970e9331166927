"""Bounds for reading captures: files, packets, and ranges of files."""

SECOND_NS = 1_000_000_000

READ_WINDOW_BYTES = 1 << 22
"""Bytes of a capture file held at a time. At 1 MiB, the cost of each window besides its packets (0.3 ms) was half the time of a
capture of large records. A larger window does not fit into any cache."""

PACKET_BYTES_MAX = 64 << 20
"""A record that claims to be larger is damaged. Wireshark stops at 256 KiB; offload and USB captures have larger packets."""

BATCH_PACKETS_MAX = 8192
"""Packets in a batch. The first rows of a huge file must not wait for more."""

FRAGMENT_DATAGRAMS_MAX = 1024
"""Incomplete IP datagrams held (Linux holds 4 MiB of fragments, about as many)."""

FRAGMENT_WAIT_NS = 30 * SECOND_NS
"""Time that a fragment waits for the others. RFC 1122 section 3.3.2 asks for 60 to 120 s; Linux waits 30 s (ipfrag_time)."""

GUESS_BYTES = 256 << 10
"""Bytes read at the beginning of a range to find a record in it: more than the largest packet of a capture with offload."""

GUESS_RECORDS = 12
"""Consecutive plausible records from which the first one counts as the first of a range. Stitching verifies this guess."""

GUESS_SECONDS = 24 * 3600
"""Largest time between two consecutive packets that a guess accepts, seconds."""

GUESSES_WRONG = 3
"""Number of wrong guesses in one file after which longer and longer pieces are read from verified positions on."""

CHUNK_PACKETS = 1 << 17
"""Packets of a range in one chunk: some 10 MiB of columns."""

CHUNK_BYTES = 4 << 20
"""Packet bytes in one chunk, where the file cannot be read a second time at low cost."""

STRIPPED_BYTES = 64 << 20
STRIPPED_PACKETS = 1 << 18
"""Payload bytes and packets that are stripped together. Record batches that cross the edge are not blanked."""

STRIPPED_CHUNK_BYTES = 16 << 20
"""Payload of a chunk of stripped segments, most of it blanked."""

STRIPPED_MIDSTREAM_BYTES = 1 << 20
"""Bytes of a direction without a SYN that are never blanked: recognition may read MIDSTREAM_BYTES, and resync searches for a
frame boundary."""

STRIPPED_GAP_BYTES = 64 << 10
"""Bytes after a hole that are never blanked. If the hole covered a length prefix, the next boundary is after one more message.
If these bytes are not enough, the connection is re-read unstripped."""

STRIPPED_KNOWN = 64
"""Chunks of a shard whose blanked segments are stored; segments of older chunks count as blanked."""

CHUNK_RUN_PACKETS = 8192
CHUNK_RUN_SPAN = 1 << 17
"""Packets of a shard that are analyzed at once, and the largest span of their numbers: columns have room for each number."""

CHUNK_SPARSE = 4
"""Ratio of the bytes read from a file at once to the needed ones, up to which the others stay in memory too, because copying
costs more."""

CHUNK_GAP_BYTES = 16 << 10
"""Bytes of a file between two packets that are read rather than skipped: a separate read costs as much as copying them."""

FRAME_SPAN_FACTOR = 2
"""Bytes of files that may be read per byte of frames that are re-read one by one; beyond, an index of packets costs less."""

SEGMENT_BYTES_MAX = 1 << 20
"""Payload of a packet that carries the first bytes of a frame: captures with offload have 512 KiB."""

INDEX_RUN_PACKETS, INDEX_READ_PACKETS = 1 << 18, 1 << 9
"""Packets with data, 40 bytes each, that wait in memory to be sorted; entries that are read at once for a look-up."""

FIRST_WINDOW_BYTES = 64 << 10
"""Bytes read first; the size is doubled up to READ_WINDOW_BYTES. The first read of each file of a set should be cheap."""

MAPPED_FILE_BYTES = 32 << 20
"""Files from this size on can be mapped into memory instead of being read."""

MAPPED_PACKET_BYTES = 1 << 12
"""Mean packet size from which a map pays off. Mapping saves 0.2 ns per byte and costs 0.25 us per packet, whose pages are in no
cache of the processor. For packets of Ethernet's size the costs are equal."""

OPEN_WINDOWS_BYTES = 32 << 20
"""Windows of all files that are merged at once, bytes. Many overlapping files get smaller windows instead of more memory."""

JIT_AFTER_BYTES = 512 << 10
"""File size from which kernels read it. Below, loading their machine code costs more than it saves (20 to 40 ms)."""

COMPILE_AFTER_BYTES = 8 << 20
"""File size from which compiling kernels pays off, if they were not compiled yet."""

DECOMPRESS_INPUT_BYTES = 1 << 10
"""Compressed bytes given to zstd at once, because its output cannot be bounded otherwise. 4 bytes may become a block of 128
KiB, so the output is at most 32 MiB."""

XZ_MEMORY_BYTES = 256 << 20
"""Memory that an xz stream may require. `xz -9` needs 65 MiB; a stream that needs more was made to exhaust its reader."""

FRAGMENT_BYTES_MAX = 2 << 16
"""Bytes held of one incomplete IP datagram: twice its maximum length, for overlapping copies."""

OPEN_FILES_MAX = 16
"""Open files: the bodies of one exchange come from at most two."""

COMPRESSIONS_MAX = 2
"""Nested compressions. A compressed file inside a compressed file does happen (a rotated .gz in a transfer that compresses);
deeper nesting is no accident."""

SPLIT_FILES_OPEN_MAX = 64
"""Files written at once. Others are closed until their next packet. Systems allow 256 or more."""

COMPRESSED_READ_BYTES = 64 << 10
"""Bytes of a compressed file that are read at once."""

ONE_PACKET_BYTES = 4096
"""Bytes read for one packet: more than a packet without offload has."""

RANGE_BYTES_LEAST = 1024
"""Least size of a range: it should hold a record or two."""

STRIPPED_FIRST_BYTES = 1 << 20
"""Initial room for the payload of stripped segments."""

BLOCK_BYTES_MAX = PACKET_BYTES_MAX + (64 << 10)
"""A block that claims to be larger is damaged. A packet's block has options besides the packet."""

INTERFACES_MAX = 1 << 16
"""Interfaces of a section of a pcapng file, some 0.4 kB each. A file merged from others has the interfaces of all of them."""
