"""Bounds of reading captures: files, packets, and ranges of files."""

SECOND_NS = 1_000_000_000

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

FRAME_SPAN_FACTOR = 2
"""Bytes of files that are read for those of frames that are read again one by one: an index of packets costs more than that."""

SEGMENT_BYTES_MAX = 1 << 20
"""Payload of a packet that gives a frame its first bytes: captures with offload have 512 KiB."""

INDEX_RUN_PACKETS, INDEX_READ_PACKETS = 1 << 18, 1 << 9
"""Packets with data, 40 bytes each, that wait in memory to be sorted; those that are read at once to look some up."""

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

OPEN_FILES_MAX = 16
"""Open files: bodies of one exchange come from two at most."""

COMPRESSIONS_MAX = 2
"""A compressed file inside a compressed file does happen (a rotated .gz in a transfer that compresses); more is no accident."""

SPLIT_FILES_OPEN_MAX = 64
"""Files written at once; others wait for their next packet closed. Systems allow 256 or more."""

COMPRESSED_READ_BYTES = 64 << 10
"""Bytes of a compressed file that are read at once."""

ONE_PACKET_BYTES = 4096
"""Read for one packet: more than a packet without offload has."""

RANGE_BYTES_LEAST = 1024
"""Least size of a range: it should hold a record or two."""

STRIPPED_FIRST_BYTES = 1 << 20
"""Room for the payload of stripped segments at first."""

BLOCK_BYTES_MAX = PACKET_BYTES_MAX + (64 << 10)
"""A block that claims more is damage: one of a packet has options beside it."""

INTERFACES_MAX = 1 << 16
"""Interfaces of a section of a pcapng file, some 0.4 kB each. A file that was merged from others has those of all of them."""
