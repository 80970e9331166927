"""Packets of other programs as batches.

In: packets as (time, bytes, length on the wire, link type). Out: `PacketBatch`es, as from a file with these packets.
"""

from collections.abc import Iterable, Iterator

from kcap.limits import BATCH_PACKETS_MAX
from kcap.model import PacketBatch

Packet = tuple[int, bytes, int, int]
"""Nanoseconds since the epoch, captured bytes, length on the wire, LINKTYPE_ value."""


def gather(packets: Iterable[Packet], file: int = 0, batch_packets: int = BATCH_PACKETS_MAX) -> Iterator[PacketBatch]:
    """Batches of up to `batch_packets` packets; 1 for a sniffer whose packets must not wait. Positions count captured bytes."""
    first, position = 1, 0
    some: list[Packet] = []
    for packet in packets:
        some.append(packet)
        if len(some) >= batch_packets:
            yield make_batch(some, file, first, position)
            first += len(some)
            position += sum(len(data) for _, data, _, _ in some)
            some = []
    if some:
        yield make_batch(some, file, first, position)


def make_batch(packets: list[Packet], file: int, first_packet: int, position: int) -> PacketBatch:
    starts: list[int] = []
    at = 0
    for _, data, _, _ in packets:
        starts.append(at)
        at += len(data)
    links = [link for _, _, _, link in packets]
    return PacketBatch(
        file,
        first_packet,
        b"".join(data for _, data, _, _ in packets),
        [time for time, _, _, _ in packets],
        starts,
        [len(data) for _, data, _, _ in packets],
        [max(wire, len(data)) for _, data, wire, _ in packets],
        [position + start for start in starts],
        links[0] if len(set(links)) == 1 else links,
    )
