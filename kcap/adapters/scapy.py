"""Adapter for scapy: packets of its readers and sniffers as batches, packets of a capture as its objects.

scapy is GPL-2.0-only: it is not part of kcap and is loaded only when one of these functions is called.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from kcap.adapters.packets import Packet, gather
from kcap.errors import MissingExtraError
from kcap.limits import BATCH_PACKETS_MAX, SECOND_NS
from kcap.model import PacketBatch

LINK_OF_DLT = {12: 101, 14: 101}
"""DLT_RAW has different numbers on different systems; in files it is LINKTYPE_RAW."""


def from_scapy(packets: Iterable[Any], file: int = 0, batch_packets: int = BATCH_PACKETS_MAX) -> Iterator[PacketBatch]:
    """Batches of scapy packets: a list, a `PcapReader`, a sniffer's `results`, a generator fed by its `prn`."""
    numbers = load().config.conf.l2types.layer2num
    return gather((take(packet, numbers) for packet in packets), file, batch_packets)


def take(packet: Any, numbers: Any) -> Packet:
    """The original bytes of a packet, if it still has them."""
    data = bytes(packet)
    link = int(numbers.get(type(packet), 1))
    wire = getattr(packet, "wirelen", None) or len(data)
    return nanoseconds(packet.time), data, int(wire), LINK_OF_DLT.get(link, link)


def to_scapy(time_ns: int, data: bytes, link: int, wire: int | None = None) -> Any:
    """A packet as scapy's object of its link type; `Raw` for types that scapy does not know."""
    scapy = load()
    layers = scapy.config.conf.l2types.num2layer
    packet = layers.get(link, scapy.packet.Raw)(data)
    packet.time = scapy.utils.EDecimal(time_ns) / SECOND_NS
    packet.wirelen = wire if wire is not None else len(data)
    return packet


def nanoseconds(time: Any) -> int:
    """Nanoseconds of scapy's times: Decimals from files, floats from live captures."""
    if isinstance(time, Decimal):
        return int((time * SECOND_NS).to_integral_value())
    return round(float(time) * 1_000_000) * 1000


def load() -> Any:
    """The package, with the link layers that register themselves."""
    try:
        import scapy
        import scapy.config
        import scapy.layers.inet
        import scapy.layers.inet6
        import scapy.layers.l2
        import scapy.packet
        import scapy.utils
    except ImportError:
        raise MissingExtraError("scapy is not installed: pip install scapy") from None
    return scapy
