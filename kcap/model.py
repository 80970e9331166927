"""The records that cross the pipeline's stages: columns on the hot path, frozen slotted dataclasses elsewhere.

A *packet reference* is (file, byte offset); packet numbers are derived by counting. Times are integer nanoseconds since the
epoch. Lengths on the wire and captured lengths are separate fields everywhere, since a snapshot length may cut packets.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

REF_FILE_SHIFT = 40
"""A packet reference as one integer: index of the file << 40 | packet number."""

Buffer = bytes | bytearray | memoryview


class Transition(NamedTuple):
    """A row of a state machine's table: what an event does in a state. Events that do not change the state have no row."""

    state: str
    event: str
    result: str


ROW = (
    "identity", "exchange", "api_key", "api_version", "correlation_id", "client_id", "outcome", "reason", "age_ns",
    "rtt_min_ns", "previous_ns", "in_flight", "flags", "request_slot", "response_slot",
    "request_start", "request_bytes", "request_first_ns", "request_first_ref", "request_last_ns", "request_last_ref",
    "request_pos", "request_end_pos", "request_flags",
    "response_start", "response_bytes", "response_first_ns", "response_first_ref", "response_last_ns", "response_last_ref",
    "response_pos", "response_end_pos", "response_flags",
)  # fmt: skip
"""The parts of a row as `Conversation.emit` writes them; `*_ref` are packet references, file << 40 | number."""
PART = {name: at for at, name in enumerate(ROW)}
"""Name of a part -> its index."""


@dataclass(slots=True)
class PacketBatch:
    """Packets of one file as columns; entry i of each list is one packet, in file order.

    `buffer` holds the bytes of all of them: packet i is `buffer[start[i] : start[i] + captured[i]]`. The buffer does not change
    while the batch exists; a reader takes a new window instead of overwriting one.
    """

    file: int
    """Index of the file in the capture."""
    first_packet: int
    """1-based number within the file of entry 0; the other entries follow without gaps."""
    buffer: bytes
    time_ns: Sequence[int]
    start: Sequence[int]
    captured: Sequence[int]
    wire: Sequence[int]
    """Length on the wire, at least `captured`."""
    position: Sequence[int]
    """Byte offset in the (decompressed) file at which the packet's record or block starts."""
    link: int | Sequence[int]
    """LINKTYPE_ value (tcpdump.org/linktypes.html) of all packets, or one per packet if interfaces differ."""

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(slots=True)
class SegmentBatch:
    """TCP segments as columns: a `PacketBatch` without link, tunnel, IP and TCP headers.

    The payload of entry i is in `buffers[i]`, or in `buffer` from `payload[i]` on. `captured[i]` of its bytes were captured,
    and `length[i]` were on the wire. `flow` identifies the direction: source address, destination address, source port,
    destination port, as on the wire (12 bytes for IPv4, 36 for IPv6).
    """

    file: int
    buffer: bytes
    packet: list[int] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    flow: list[bytes] = field(default_factory=list)
    seq: list[int] = field(default_factory=list)
    ack: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    window: list[int] = field(default_factory=list)
    payload: list[int] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    buffers: dict[int, bytes] = field(default_factory=dict)
    """Entries whose payload is not in `buffer`: reassembled IP fragments, by index."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def pieces(self, size: int) -> Iterator["SegmentBatch"]:
        """Yields the segments in batches of at most `size`."""
        if len(self) <= size:
            yield self
            return
        for first in range(0, len(self), size):
            last = first + size
            yield SegmentBatch(
                self.file, self.buffer, self.packet[first:last], self.time_ns[first:last], self.position[first:last],
                self.flow[first:last], self.seq[first:last], self.ack[first:last], self.flags[first:last],
                self.window[first:last], self.payload[first:last], self.captured[first:last], self.length[first:last],
                {at - first: data for at, data in self.buffers.items() if first <= at < last},
            )  # fmt: skip


@dataclass(slots=True)
class CaptureFile:
    """The facts of one capture file; a row of the `captures` table."""

    path: str
    name: str
    """Base name; as many parent folders as needed make it unique within the capture."""
    size: int | None = None
    """Bytes on disk; None for a pipe."""
    format: str = ""
    """`pcap`, `pcapng`, with `+gzip`, `+bzip2`, `+xz`, `+zstd` or `+lz4` where compressed, `+snoop` where converted."""
    links: set[int] = field(default_factory=set)
    snaplen: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    packets: int = 0
    packet_bytes: int = 0
    """Captured bytes of all packets."""
    kernel_drops: int | None = None
    """Packets that the capturing host dropped, by pcapng's interface statistics (ISB if_drop plus osdrop)."""
    cut_packets: int = 0
    """Packets captured shorter than they were on the wire."""
    secrets: list[bytes] = field(default_factory=list)
    """TLS key logs found in Decryption Secrets Blocks; empty after a pass has stored their secrets."""
    skipped_secrets: int = 0
    """Bytes of Decryption Secrets Blocks that exceeded the bound, so that their keys are not known."""
    names: dict[str, str] = field(default_factory=dict)
    """Address -> host name, from Name Resolution Blocks."""
    complete: bool = True
    """Whether the file was read to its end; False if it ended in the middle of a record."""
    fault: str = ""
    """Why the file is not complete."""
    unread_links: Counter[str] = field(default_factory=Counter)
    """Link type and its name -> packets that were not read because kcap does not know the link type."""
