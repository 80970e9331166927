"""Many connections in the midst of large frames at once: what is known of each exchange is what is known of it alone."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from tests.laws.test_both_paths import agree, tables_of
from tests.records.batches import batch, message, record
from tests.support.messages import saved
from tests.support.wire import MS, Tap, metadata, metadata_answer, produce, produce_answer, request, response

CONNECTIONS, SIZE = 20, 30_000
FACTS = (
    "client_port", "exchange", "api", "api_version", "outcome", "request_bytes", "response_bytes", "topics", "partition_count",
    "batch_count", "record_count", "records_bytes", "codecs", "magics", "acks", "timeout_ms", "error_code", "throttle_time_ms",
    "flags",
)  # fmt: skip
TIMES = ("time", "exchange_time", "connection")


def records(number: int) -> bytes:
    """Batches of magic 2 with some records each, none like those of another connection."""
    values = [f"{number}-{at}".encode() * 40 for at in range(200)]
    some = [values[at : at + 10] for at in range(0, len(values), 10)]
    return b"".join(batch(b"".join(record(at, value=v) for at, v in enumerate(ten)), len(ten)) for ten in some)


def messages(number: int) -> bytes:
    """Compressed messages of magic 1, each around ten."""
    values = [struct.pack(">i", number) * 4 + bytes([at]) * 300 for at in range(10)]
    inner = b"".join(message(value, offset=at) for at, value in enumerate(values))
    wrapper = message(gzip.compress(inner, 0), codec=1, offset=9)
    return wrapper * (SIZE // len(wrapper))


def fetched(correlation: int, data: bytes) -> bytes:
    """A Fetch v4 response with one partition."""
    body = struct.pack(">iih", 0, 1, 1) + b"t" + struct.pack(">iihqqi", 1, 0, 0, 5, 5, -1) + struct.pack(">i", len(data))
    return response(correlation, body + data)


def fetch(correlation: int) -> bytes:
    """A Fetch v4 request of one partition."""
    head = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0) + struct.pack(">ih", 1, 1) + b"t"
    return request(1, 4, correlation, head + struct.pack(">iiqi", 1, 0, 0, 1 << 20))


def capture(path: Path, data: Callable[[int], bytes], api: str, *, together: bool) -> Path:
    """Connections with one large exchange each, all of them at one time or one behind the other."""
    taps = []
    for number in range(CONNECTIONS):
        begin = 1_000 * MS + number * (1_000 if together else 1_000 * MS)
        tap = Tap(port=40_000 + number, time_ns=begin).open().client(metadata(0)).server(metadata_answer(0))
        large = data(number)
        tap.client(produce(1, 1, large) if api == "produce" else fetch(1))
        tap.server(produce_answer(1) if api == "produce" else fetched(1, large))
        taps.append(tap.client(metadata(2)).server(metadata_answer(2)).close())
    return saved(path, *taps)


def facts_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What the tables of exchanges, partitions and records say, but for times and places, in the order of connections."""
    tables = tables_of(path)
    assert not [weird for weird in tables["weirds"] if weird["kind"] in ("frames_limit", "undecoded")]
    ports = {row["connection"]: row["client_port"] for row in tables["exchanges"]}
    found = {"exchanges": [{name: row[name] for name in FACTS} for row in tables["exchanges"]]}
    for name in ("partitions", "records"):
        rows = [{**row, "client_port": ports[row["connection"]]} for row in tables[name]]
        found[name] = [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
    return {name: sorted(rows, key=lambda row: (row["client_port"], row["exchange"])) for name, rows in found.items()}


@pytest.mark.parametrize("api", ["produce", "fetch"])
@pytest.mark.parametrize("data", [records, messages])
def test_frames_that_are_unfinished_at_once_say_what_each_says_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Callable[[int], bytes], api: str
) -> None:
    """Law: beyond the bound of unfinished frames no row and no record is missing or less known, on both paths."""
    alone = facts_of(capture(tmp_path / "alone.pcap", data, api, together=False))
    path = capture(tmp_path / "together.pcap", data, api, together=True)
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 200_000)
    assert facts_of(path) == alone
    assert len(alone["records"]) > 10 * CONNECTIONS
    agree(path, monkeypatch)


def test_records_of_messages_that_had_no_room_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: of a compressed message as large as its frame the number of records is null, and nothing else of the row."""
    inner = b"".join(message(bytes([at]) * 3_000, offset=at) for at in range(10))
    path = capture(
        tmp_path / "one.pcap", lambda _: message(gzip.compress(inner, 0), codec=1, offset=9), "produce", together=True
    )
    whole = tables_of(path)["exchanges"]
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 200_000)
    tables = tables_of(path)
    said = [weird["detail"] for weird in tables["weirds"] if weird["kind"] == "frames_limit"]
    left_out = [row for row in tables["exchanges"] if row["api"] == "Produce" and row["record_count"] is None]
    assert 10 < len(said) == len(left_out) < CONNECTIONS
    assert all(detail.endswith("are not counted") for detail in said)
    assert [{**row, "record_count": 0} for row in tables["exchanges"]] == [{**row, "record_count": 0} for row in whole]
    assert len(tables["records"]) == 10 * CONNECTIONS
    agree(path, monkeypatch)


def test_what_unfinished_frames_hold_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: with all these rows right, memory of unfinished frames stays at the bound."""
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 200_000)
    path = capture(tmp_path / "together.pcap", records, "produce", together=True)
    held, feeds = 0, Analyzer.feeds

    def watched(self: Analyzer, columns: Any) -> Any:
        nonlocal held
        yield from feeds(self, columns)
        held = max(held, self.bodies.gathered_bytes)

    monkeypatch.setattr(Analyzer, "feeds", watched)
    monkeypatch.setattr(limits, "FEED_PACKETS", 1)
    tables_of(path)
    assert 150_000 < held < 202_000
