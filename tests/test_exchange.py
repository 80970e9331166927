"""Messages that are read again are those of the wire."""

from pathlib import Path

import pytest

import kcap

NAMES = ["java-transactions.pcap", "aiokafka.pcap", "quota-0.10.pcap", "pipelined.pcap", "any-interface.pcap"]


@pytest.mark.parametrize("name", NAMES)
def test_messages_read_again_are_those_of_the_rows(pcaps: Path, name: str) -> None:
    """Of every tenth exchange: sizes, headers, and what its bodies say."""
    requests = responses = 0
    for number, exchange in enumerate(kcap.open(pcaps / name)):
        if number % 10:
            continue
        row, request, response = exchange.row, exchange.request, exchange.response
        if row["request_bytes"] is not None:
            requests += 1
            assert request is not None
            assert len(request.frame) + 4 == row["request_bytes"]
            header = request.header
            for field in ("api_key", "api_version", "correlation_id", "client_id"):
                assert getattr(header, field) == row[field]
            assert request.undecoded is None
        if row["outcome"] == "answered":
            responses += 1
            assert response is not None
            assert len(response.frame) + 4 == row["response_bytes"]
            assert response.header.correlation_id == row["correlation_id"]
            body = response.to_json()
            assert body is not None
            assert body.get("throttleTimeMs") == row["throttle_time_ms"]
            assert response.undecoded is None
        else:
            assert response is None
    assert requests > 5
    assert responses > 5


def test_packets_are_those_of_the_frames(pcaps: Path) -> None:
    for exchange in kcap.open(pcaps / "librdkafka-zstd.pcap"):
        row, packets = exchange.row, exchange.packets()
        times = [packet.time_ns for packet in packets]
        assert times == sorted(times)
        for name in ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns"):
            assert row[name] is None or row[name] in times
        if "truncated" not in row["flags"]:
            assert sum(len(packet.data) for packet in packets) >= (row["request_bytes"] or 0) + (row["response_bytes"] or 0)


def test_raw_tokens_and_orphans_are_no_messages_of_a_kind(pcaps: Path) -> None:
    tokens = [exchange for exchange in kcap.open(pcaps / "sasl-raw-tokens.pcap") if exchange.row["api"] == "SaslToken"]
    assert tokens
    assert all(token.request is None and token.response is None for token in tokens)
    assert all(token.packets() for token in tokens), "their packets are there all the same"
    assert "SaslToken" in repr(tokens[0])


def test_several_files_and_what_goes_over_their_ends(pcaps: Path) -> None:
    capture = kcap.open(*(pcaps / name for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")))
    for exchange in capture:
        if exchange.row["outcome"] == "answered":
            assert (exchange.request is None) == (exchange.row["request_last_capture"] is not None)
            assert (exchange.response is None) == (exchange.row["response_last_capture"] is not None)
