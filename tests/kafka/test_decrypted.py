"""Exchanges of TLS connections: the same pipeline over plaintext."""

import pickle
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.analyzer import Analyzer, Options
from kcap.capture.fileset import FileSet, ignore
from kcap.model import SegmentBatch
from kcap.net.segments import SegmentParser
from kcap.tls.secrets import Secrets

CAPTURE = str(Path(__file__).resolve().parents[2] / "pcaps" / "tls13.pcapng")


def segments() -> tuple[list[SegmentBatch], Secrets]:
    """The capture's segments, one at a time, and the secrets inside it."""
    files, parser = FileSet([CAPTURE], ignore), SegmentParser(ignore)
    batches = [parser.parse(packets) for packets in files.batches()]
    secrets = Secrets()
    for text in files.files[0].secrets:
        secrets.keylog.add(text)
    return batches, secrets


def rows_of(batches: list[SegmentBatch], secrets: Secrets | None, *, pickled: bool = False) -> list[Any]:
    analyzer = Analyzer(Options(secrets=secrets, fast_path=False))
    for batch in batches:
        if pickled:
            analyzer = pickle.loads(pickle.dumps(analyzer))
        analyzer.feed(batch)
    analyzer.finish()
    taken = analyzer.take()
    return [(taken.identities[row[0]].client_port, taken.identities[row[0]].tls, *row[2:6]) for row in taken.rows]


def test_rows_of_tls_connections_are_there_with_their_keys_alone() -> None:
    batches, secrets = segments()
    with_keys, without = rows_of(batches, secrets), rows_of(batches, None)
    assert sorted(row for row in with_keys if not row[1]) == sorted(without), "connections without TLS are as they were"
    assert len([row for row in with_keys if row[1]]) == 76
    assert without, "there is plaintext traffic beside it"


def test_the_state_between_packets_is_a_value() -> None:
    batches, secrets = segments()
    assert rows_of(batches[:40], secrets, pickled=True) == rows_of(batches[:40], secrets)


def test_messages_packets_and_records_of_an_encrypted_exchange_are_read_again() -> None:
    found = [
        exchange for exchange in kcap.open(CAPTURE).filter("tls and api == Produce") if exchange.row["outcome"] == "answered"
    ]
    assert found
    for exchange in found[:5]:
        assert exchange.request is not None
        assert exchange.response is not None
        assert (
            exchange.request.header.correlation_id == exchange.response.header.correlation_id == exchange.row["correlation_id"]
        )
        assert len(exchange.packets()) >= 2


def test_every_byte_of_an_encrypted_stream_is_accounted_for() -> None:
    rows = kcap.open(CAPTURE).connections().to_arrow().to_pylist()
    decrypted = [row for row in rows if row["tls"] and row["phase"] == "kafka"]
    assert decrypted
    for row in decrypted:
        assert (row["tls_version"], row["detail"]) == ("TLS 1.3", "tls")
        for side in ("client", "server"):
            parts = sum(row[f"{side}_{part}"] for part in ("framed", "skipped", "opaque", "pending"))
            assert row[f"{side}_captured"] == parts
            assert row[f"{side}_opaque"] > 0, "TLS has a handshake and record headers"


def test_the_packets_of_a_row_carry_its_ciphertext() -> None:
    """A request's packets lie within its connection's, in order, and its times are theirs."""
    for row in kcap.open(CAPTURE).filter("tls").exchanges().to_arrow().to_pylist():
        if row["request_first_packet"] is not None and row["response_first_packet"] is not None:
            assert row["request_first_packet"] <= row["request_last_packet"] < row["response_first_packet"]
            assert row["request_first_ns"] <= row["request_last_ns"] <= row["response_first_ns"]


@pytest.mark.parametrize("columns", [["api", "tls"], None])
def test_tls_is_a_column_of_its_own(columns: list[str] | None) -> None:
    table = kcap.open(CAPTURE).exchanges(columns).to_arrow()
    assert set(table.column("tls").to_pylist()) == {True, False}
