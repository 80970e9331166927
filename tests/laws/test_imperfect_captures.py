"""What a capture lacks is no finding: healthy traffic whose packets are lost, cut or one-way in the capture stays silent.

KCAP_LAWS=deep tries every healthy capture with several seeds; else it is a few captures once.
"""

import os
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import dpkt
import pytest

import kcap
from tests.capture.handmade import pcap
from tests.laws.test_findings import HEALTHY, PCAPS, findings

Packets = list[tuple[int, bytes]]
"""Nanoseconds since the epoch, and the bytes."""
DEEP = os.environ.get("KCAP_LAWS") == "deep"
SOME = HEALTHY if DEEP else ("java-transactions", "librdkafka-zstd", "left-behind-a-poll", "connect-starts")
SEEDS = range(5 if DEEP else 1)


def packets_of(path: Path) -> Packets:
    with path.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        assert reader.datalink() == dpkt.pcap.DLT_EN10MB
        return [(int(Decimal(str(when)) * 10**9), data) for when, data in reader]


def directed(path: Path, packets: Packets) -> Iterator[tuple[tuple[int, bytes], str, int]]:
    """Each packet, the side that sent it, and the bytes of its payload."""
    rows = kcap.open(path).table("connections").to_arrow().select(["server_ip", "server_port"]).to_pylist()
    servers = {(row["server_ip"], row["server_port"]) for row in rows}
    for packet in packets:
        ip = dpkt.ethernet.Ethernet(packet[1]).data
        source = ".".join(map(str, ip.src)) if isinstance(ip, dpkt.ip.IP) else ""
        sent = ip.data.sport if source and isinstance(ip.data, dpkt.tcp.TCP) else 0
        yield packet, "server" if (source, sent) in servers else "client", len(ip.data.data) if sent else 0


def lost(path: Path, packets: Packets, chance: random.Random) -> Packets:
    return [packet for packet, _, size in directed(path, packets) if not size or chance.random() >= 0.05]


def of_clients(path: Path, packets: Packets, _chance: random.Random) -> Packets:
    return [packet for packet, side, _ in directed(path, packets) if side == "client"]


def of_servers(path: Path, packets: Packets, _chance: random.Random) -> Packets:
    return [packet for packet, side, _ in directed(path, packets) if side == "server"]


def late(_path: Path, packets: Packets, chance: random.Random) -> Packets:
    return packets[chance.randrange(len(packets)) :]


def early(_path: Path, packets: Packets, chance: random.Random) -> Packets:
    return packets[: chance.randrange(len(packets))]


def paused(_path: Path, packets: Packets, chance: random.Random) -> Packets:
    """The recorder wrote nothing for a while."""
    start = chance.randrange(len(packets))
    return packets[:start] + packets[start + len(packets) // 10 :]


DISTURBANCES: dict[str, Callable[[Path, Packets, random.Random], Packets]] = {
    "lost": lost, "of_clients": of_clients, "of_servers": of_servers, "late": late, "early": early, "paused": paused,
}  # fmt: skip
SNAPLENS = (96, 200)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("how", [*DISTURBANCES, *SNAPLENS])
def test_what_the_capture_lacks_is_no_finding(name: str, how: str | int, tmp_path: Path) -> None:
    path, made = PCAPS / f"{name}.pcap", tmp_path / f"{name}.pcap"
    packets = packets_of(path)
    for seed in SEEDS:
        kept = packets if isinstance(how, int) else DISTURBANCES[how](path, packets, random.Random(f"{seed} {name}"))
        cut = how if isinstance(how, int) else None
        made.write_bytes(pcap(((time_ns, data[:cut], len(data)) for time_ns, data in kept), ns=True))
        found = findings(made)
        assert [row["sentence"] for row in found if row["severity"] != "info"] == [], f"seed {seed}"
        assert not any("None" in row["sentence"] for row in found)
