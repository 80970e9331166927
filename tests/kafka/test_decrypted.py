"""Exchanges of TLS connections: the same pipeline over plaintext."""

import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.analyzer import Analyzer, Options
from kcap.capture.fileset import FileSet, ignore
from kcap.kafka.decrypted import DecryptedStream, Decryptor
from kcap.model import ROW, SegmentBatch
from kcap.net.segments import SegmentParser
from kcap.tls.secrets import Secrets
from tests.fastpath.both import agree
from tests.support.tls import CLIENT, SERVER, Sealer
from tests.support.wire import Tap, metadata, metadata_answer

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


BEHIND = {"nothing": (), "a ticket": ((22, b"\4\0\0\5lives"),), "close_notify": ((21, b"\1\0"),)}


@pytest.mark.parametrize("behind", BEHIND)
def test_a_response_that_the_capture_lost_is_not_one_that_the_broker_did_not_send(behind: str) -> None:
    """As in plaintext, whatever stands behind the loss."""

    def outcomes(sealer: Sealer | None) -> list[Any]:
        tap, secrets = Tap().open(), Secrets()

        def send(side: int, data: bytes, kind: int = 23) -> None:
            if sealer is not None:
                tap.send(side, sealer.record(side, data, kind))
            elif kind == 23:
                tap.send(side, data)

        if sealer is not None:
            secrets.keylog.add(sealer.keylog)
            for side, data in sealer.handshake:
                tap.send(side, data)
        for number in range(3):
            send(CLIENT, metadata(number))
            send(SERVER, metadata_answer(number))
        lost = len(tap.segments) - 1
        for kind, data in BEHIND[behind]:
            send(SERVER, data, kind)
        segments = tap.close().segments
        rows = agree(segments[:lost] + segments[lost + 1 :], options=Options(secrets=secrets)).rows
        return [row[ROW.index("correlation_id") : ROW.index("reason") + 1] for row in rows]

    assert outcomes(Sealer("TLSv1_3")) == outcomes(None)
    assert outcomes(None)[-1][-1] == "lost_in_capture"


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


def test_short_ways_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are opened where they stand, and packets of a frame that are delivered as one, give the same rows."""
    batches, secrets = segments()

    def all_of() -> list[Any]:
        analyzer = Analyzer(Options(secrets=secrets, fast_path=False))
        for batch in batches:
            analyzer.feed(batch)
        analyzer.finish()
        return analyzer.take().rows

    short = all_of()
    monkeypatch.setattr(DecryptedStream, "_inside_frame", lambda self, base, spans, at: at)
    monkeypatch.setattr(Decryptor, "whole_records", lambda self, *rest: 0)
    assert all_of() == short
    assert len(short) > 76


def blocks() -> tuple[bytes, list[bytes]]:
    """The capture's pcapng blocks: those in front of its packets, and each packet's."""
    data, at, front, packets = Path(CAPTURE).read_bytes(), 0, bytearray(), list[bytes]()
    while at < len(data):
        kind, size = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 8], "little")
        if kind == 6:
            packets.append(data[at : at + size])
        elif not packets:
            front += data[at : at + size]
        at += size
    return bytes(front), packets


def exchanges_of(*paths: Path) -> list[tuple[Any, ...]]:
    names = ["client_port", "api", "correlation_id", "request_bytes", "response_bytes", "outcome", "tls", "record_count"]
    rows = kcap.open(*map(str, paths)).exchanges(names).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows if row["tls"]), key=repr)


@pytest.mark.parametrize("seed", range(3))
def test_disturbances_of_encrypted_captures_keep_the_laws_of_plaintext(seed: int, tmp_path: Path) -> None:
    """Packets in another order or doubled, and files that are rotated, change no row; losses cost rows, invent none."""
    front, packets = blocks()
    chance, whole = random.Random(seed), exchanges_of(Path(CAPTURE))
    file, other = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    swapped = list(packets)
    for at in range(1, len(swapped) - 1, 2):
        if chance.random() < 0.3:
            swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
    doubled = [one for packet in swapped for one in [packet] * (1 + (chance.random() < 0.2))]
    file.write_bytes(front + b"".join(doubled))
    assert exchanges_of(file) == whole
    cut = chance.randrange(1, len(packets))
    file.write_bytes(front + b"".join(packets[:cut]))
    other.write_bytes(front + b"".join(packets[cut:]))
    assert exchanges_of(file, other) == whole
    file.write_bytes(front + b"".join(packet for packet in packets if chance.random() > 0.02))
    left = exchanges_of(file)
    assert {row for row in left if row[5] == "answered" and None not in row[3:5]} <= set(whole)
    assert {(row[0], row[2]) for row in left} <= {(row[0], row[2]) for row in whole}
    assert len(left) > len(whole) // 3
