"""Where tshark reads Kafka rightly, `kcap rows -Y F -T fields` and `tshark -Y F -T fields` give the same requests.

tshark shows a request at the packet that completes it. Frames in which it sees several requests are compared without a filter
alone, for it selects frames, not requests. Skipped where tshark is not installed.
"""

import shutil
import subprocess
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

import kcap
from tests.cli.running import run_here

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed: nothing to compare with")
CAPTURES = (
    "java-transactions.pcap", "aiokafka.pcap", "go-franz.pcap", "librdkafka-zstd.pcap", "old-java-new-broker.pcap",
    "quota-3.9.pcap", "quota-0.10.pcap", "long-polls.pcap", "node-platformatic.pcap", "broker-paused.pcap", "pipelined.pcap",
)  # fmt: skip
FILTERS = (
    "kafka.api_key == 1",
    "kafka.api_key == 3 or kafka.api_key == 18",
    "kafka.correlation_id < 4 and tcp.stream in {2..9}",
    "kafka.api_version > 3 and not (kafka.api_key == 1)",
    'kafka.client_id matches "^[a-k]"',
    "kafka.api_key in {0, 10..14}",
    "tcp.dstport == 9092 and kafka.api_key != 1",
)
FIELDS = ("frame.number", "tcp.stream", "kafka.request_key", "kafka.request.version", "kafka.correlation_id")
Request = tuple[int, ...]
"""Packet that completes it, number of the connection, API key, version, correlation id."""


@lru_cache
def ports(path: Path) -> list[int]:
    """The ports that brokers listen at in a capture."""
    return sorted(set(kcap.open(str(path)).exchanges(["server_port"]).to_arrow()["server_port"].to_pylist()))


@lru_cache
def by_tshark(path: Path, text: str) -> dict[int, list[Request]]:
    """Packet -> requests that it completes."""
    assert TSHARK is not None
    decode = [word for port in ports(path) for word in ("-d", f"tcp.port=={port},kafka")]
    fields = [word for name in FIELDS for word in ("-e", name)]
    chosen = f"kafka.request_key && ({text})" if text else "kafka.request_key"
    words = [
        TSHARK,
        "-r",
        str(path),
        *decode,
        "-Y",
        chosen,
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=;",
        *fields,
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    found: dict[int, list[Request]] = {}
    for line in done.stdout.splitlines():
        number, stream, *columns = line.split("\t")
        for key, version, correlation in zip(*(column.split(";") for column in columns), strict=True):
            found.setdefault(int(number), []).append((int(number), int(stream), int(key), int(version), int(correlation)))
    return found


def by_kcap(path: Path, text: str) -> list[Request]:
    """The requests of the exchanges that pass."""
    words = [
        word
        for name in ("request_last_packet", "tcp.stream", "api_key", "api_version", "correlation_id")
        for word in ("-e", name)
    ]
    chosen = f"request_last_packet and ({text})" if text else "request_last_packet and api_key >= 0"
    code, said = run_here("rows", str(path), "-Y", chosen, "-T", "fields", "-q", *words)
    assert code == 0, said
    return [tuple(map(int, line.split("\t"))) for line in said.splitlines()]


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_requests(pcaps: Path, name: str) -> None:
    seen = by_tshark(pcaps / name, "")
    assert Counter(by_kcap(pcaps / name, "")) == Counter(request for requests in seen.values() for request in requests)


@pytest.mark.parametrize("text", FILTERS)
def test_filters_mean_the_same(pcaps: Path, text: str) -> None:
    compared = 0
    for name in CAPTURES[:4]:
        several = {number for number, requests in by_tshark(pcaps / name, "").items() if len(requests) > 1}
        theirs = [request for requests in by_tshark(pcaps / name, text).values() for request in requests]
        ours = by_kcap(pcaps / name, text)
        assert Counter(r for r in ours if r[0] not in several) == Counter(r for r in theirs if r[0] not in several), name
        compared += len(ours)
    assert compared > 10
