"""A capture as it is where two clusters have topics, groups and transactions of one name."""

import struct
from pathlib import Path
from typing import Final

CLUSTER: Final = b"kcapProblemsClusterAAA"
"""The id of the cluster of the captures in `pcaps/problems`, whose brokers are at 127.2.0.0/16."""
RECORD: Final = struct.Struct("<IIII")


def twice(source: Path, path: Path, later: int) -> Path:
    """A pcap file with each packet of `source` and, some seconds later, the same of a cluster of another id and addresses."""
    data, packets, at = source.read_bytes(), [], 24
    while at < len(data):
        seconds, fraction, captured, length = RECORD.unpack_from(data, at)
        packet = data[at + 16 : at + 16 + captured]
        other = packet.replace(b"\x7f\x02\0", b"\x7f\x09\0").replace(b"127.2.0", b"127.9.0").replace(CLUSTER, CLUSTER[::-1])
        packets += [(seconds, fraction, length, packet), (seconds + later, fraction, length, other)]
        at += 16 + captured
    packets.sort(key=lambda one: one[:2])
    records = (RECORD.pack(*when, len(packet), length) + packet for *when, length, packet in packets)
    path.write_bytes(data[:24] + b"".join(records))
    return path
