"""Adapter for dpkt: packets of its readers as batches, packets of a capture as its objects.

dpkt is loaded when it is first needed. Law: none of its exceptions escapes.
"""

import struct
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from kcap.adapters.packets import gather
from kcap.errors import MissingExtraError
from kcap.limits import BATCH_PACKETS_MAX, SECOND_NS
from kcap.model import PacketBatch

RADIOTAP, WIRELESS = 127, 105
RAW_LINKS = frozenset((12, 14, 101, 228, 229))
FAULTS = (struct.error, ValueError, TypeError, IndexError, KeyError, AttributeError)
"""Exceptions that dpkt's decoders raise for unusual bytes, beside dpkt's own."""


def from_dpkt(
    packets: Iterable[tuple[float | Decimal, bytes]],
    link: int | None = None,
    file: int = 0,
    batch_packets: int = BATCH_PACKETS_MAX,
) -> Iterator[PacketBatch]:
    """Batches of the packets of a dpkt reader; the link type is the reader's unless one is given."""
    if link is None:
        link = int(packets.datalink()) if hasattr(packets, "datalink") else 1
    return gather(((nanoseconds(time), data, len(data), link) for time, data in packets), file, batch_packets)


def to_dpkt(time_ns: int, data: bytes, link: int) -> tuple[Decimal, Any]:
    """Time in seconds and the dpkt object of a packet; its bytes if dpkt cannot decode them."""
    dpkt = load()
    kinds = {
        1: dpkt.ethernet.Ethernet,
        0: dpkt.loopback.Loopback,
        108: dpkt.loopback.Loopback,
        113: dpkt.sll.SLL,
        276: dpkt.sll2.SLL2,
        WIRELESS: dpkt.ieee80211.IEEE80211,
        RADIOTAP: dpkt.radiotap.Radiotap,
    }
    kind = kinds.get(link)
    if link in RAW_LINKS and data:
        kind = dpkt.ip6.IP6 if data[0] >> 4 == 6 else dpkt.ip.IP
    time = Decimal(time_ns) / SECOND_NS
    try:
        return time, data if kind is None else kind(data)
    except (dpkt.dpkt.Error, *FAULTS):
        return time, data


def nanoseconds(time: float | Decimal) -> int:
    """Nanoseconds of dpkt's times: Decimals for nanosecond files, else floats, which have microsecond precision in this
    century."""
    if isinstance(time, Decimal):
        return int((time * SECOND_NS).to_integral_value())
    return round(time * 1_000_000) * 1000


def load() -> Any:
    """The package with all modules that are used here."""
    try:
        import dpkt
        import dpkt.ieee80211
        import dpkt.loopback
        import dpkt.radiotap
        import dpkt.sll2
    except ImportError:
        raise MissingExtraError("dpkt is not installed: pip install dpkt") from None
    return dpkt
