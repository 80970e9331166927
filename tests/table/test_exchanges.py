"""Laws of the exchanges table: golden rows, what programs logged of themselves, and each derived column by hand."""

import gc
import json
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.columns import EXCHANGES, FLAGS
from kcap.kafka.frames import FLAG
from kcap.model import CaptureFile
from kcap.table.schema import choose
from tests.support.messages import began, saved, text
from tests.support.tables import ExchangeTable
from tests.support.wire import request, response
from tests.table.handmade import SECOND, UIDS, batch, row, unanswered

GOLDEN = Path(__file__).parent / "exchanges.jsonl"
FILES = [CaptureFile("a.pcap", "a.pcap"), CaptureFile("b.pcap", "b.pcap")]
SECOND_FILE = 1 << 40


def turned(*rows: tuple[Any, ...], columns: list[str] | None = None) -> list[dict[str, Any]]:
    made = ExchangeTable(choose("exchanges", columns), FILES).turn(batch(*rows))
    made.validate(full=True)
    return made.to_pylist()


def test_golden_rows(pcaps: Path) -> None:
    """These rows stay what they are; only columns that are not null are written down."""
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        want = json.loads(line)
        capture = kcap.open(str(pcaps / want["capture"]))
        found = [r for r in capture.exchanges().to_arrow().drop_columns(["time"]).to_pylist()
                 if (r["connection"], r["exchange"]) == (want["connection"], want["exchange"])]  # fmt: skip
        assert [{name: value for name, value in r.items() if value is not None} for r in found] == [want]


def test_records_are_those_that_the_programs_sent(pcaps: Path, truths: dict[str, Any]) -> None:
    """Every client that logged what it sent, in captures that are whole and hold no transactions, in all message formats."""
    checked = 0
    for name, truth in truths.items():
        if not truth["complete"] or truth.get("transactions") or name.startswith("tls"):
            continue
        want: Counter[str] = Counter()
        for produced in truth.get("produced", ()):
            if produced["client_id"]:
                want[produced["client_id"]] += produced["records"]
        columns = ["api", "client_id", "record_count", "error"]
        table = kcap.open(*(str(pcaps / file) for file in truth["files"])).exchanges(columns).to_arrow()
        got: Counter[str] = Counter()
        for r in table.to_pylist():
            if r["api"] == "Produce" and r["error"] in ("NONE", None):
                got[r["client_id"]] += r["record_count"] or 0
        assert {client: got[client] for client in want} == dict(want), name
        checked += len(want)
    assert checked >= 10


def test_only_what_is_asked_for_is_there_in_that_order() -> None:
    assert turned(row(), columns=["api", "exchange"]) == [{"api": "Metadata", "exchange": 1}]
    assert list(turned(row())[0]) == [column.name for column in EXCHANGES]


def test_few_columns_say_what_all_of_them_say() -> None:
    rows = [row(), unanswered(client_id=None), row(identity=1, rtt_min_ns=5)]
    whole = turned(*rows)
    for name in whole[0]:
        assert turned(*rows, columns=[name]) == [{name: r[name]} for r in whole], name


def test_bodies_go_when_the_rows_are_made(pcaps: Path) -> None:
    """Without Python's collector, which looks seldom: a batch's bodies are megabytes."""
    from kcap.capture_pass import CapturePass

    table = ExchangeTable(choose("exchanges", None), FILES)
    made = next(b for b in CapturePass([str(pcaps / "java-transactions.pcap")]).batches() if len(b))
    arena, alone = made.bodies.arena, bytearray()
    gc.disable()
    try:
        kept = table.turn(made)
        del made
        assert sys.getrefcount(arena) == sys.getrefcount(alone)
    finally:
        gc.enable()
    assert kept.num_rows


def test_a_batch_without_rows_has_all_columns() -> None:
    assert turned() == []


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        ({}, (1000, None, 0, 1000)),
        ({"rtt_min_ns": 300}, (1000, 300, 0, 700)),
        ({"rtt_min_ns": 3000}, (1000, 1000, 0, 0)),
        ({"rtt_min_ns": 300, "previous_ns": SECOND + 10 + 500}, (1000, 300, 200, 500)),
        ({"rtt_min_ns": 300, "previous_ns": SECOND}, (1000, 300, 0, 700)),
        ({"previous_ns": SECOND + 5000}, (1000, None, 1000, 0)),
        ({"response_first_ns": None}, (None, None, None, None)),
        ({"request_last_ns": None, "rtt_min_ns": 1}, (None, None, None, None)),
    ],
)
def test_latency_is_the_sum_of_its_parts(parts: dict[str, Any], want: tuple[int | None, ...]) -> None:
    found = turned(row(**parts))[0]
    assert tuple(found[f"{name}_ns"] for name in ("latency", "rtt", "queue", "service")) == want
    assert "clock" not in found["flags"]


def test_an_answer_before_its_request_is_a_matter_of_clocks() -> None:
    found = turned(row(response_first_ns=SECOND - 5, rtt_min_ns=3, previous_ns=SECOND))[0]
    assert found["latency_ns"] == -15
    assert [found[f"{name}_ns"] for name in ("rtt", "queue", "service")] == [None] * 3
    assert "clock" in found["flags"]


def test_only_answered_requests_have_a_latency() -> None:
    found = turned(unanswered(), row(outcome="orphan", api_key=None, api_version=None, request_last_ns=5))
    assert [r["latency_ns"] for r in found] == [None, None]
    assert found[0]["age_ns"] == 5


def test_places_and_files() -> None:
    first, second = turned(
        row(), row(request_last_ref=SECOND_FILE + 9, response_first_ref=SECOND_FILE + 10, response_last_ref=None)
    )
    assert [first["capture"], first["response_capture"], first["request_last_capture"]] == ["a.pcap", "a.pcap", None]
    assert [second["capture"], second["request_last_capture"], second["request_last_packet"]] == ["a.pcap", "b.pcap", 9]
    assert [second["response_capture"], second["response_first_packet"]] == ["b.pcap", 10]
    assert [second["response_last_packet"], second["response_last_capture"]] == [None, None]


def test_time_is_that_of_the_first_byte_seen() -> None:
    orphan = row(outcome="orphan", request_first_ns=None, request_last_ns=None, response_first_ns=3 * SECOND + 1999)
    times = [r["time"].timestamp() for r in turned(row(), orphan)]
    assert times == [1.0, 3.000001]


def test_names_of_apis() -> None:
    rows = [row(), row(api_key=None, api_version=None), row(api_key=999), row(outcome="orphan", api_key=None), row(api_key=-4)]
    assert [r["api"] for r in turned(*rows)] == ["Metadata", "SaslToken", None, None, None]


def test_connections_by_their_number() -> None:
    found = turned(row(identity=1), row())
    assert [(r["connection"], r["client_ip"], r["client_port"], r["server_port"]) for r in found] == [
        (UIDS[1], "fd00::1", 50001, 9092), (UIDS[0], "10.0.0.1", 50000, 9092),
    ]  # fmt: skip


def test_flags_are_those_of_the_row_and_both_frames() -> None:
    parts = {"flags": FLAG["late"] | FLAG["truncated"], "request_flags": FLAG["gap"], "response_flags": FLAG["snaplen"]}
    assert turned(row(**parts))[0]["flags"] == ["gap", "late", "snaplen", "truncated"]
    assert turned(row(flags=(1 << len(FLAGS)) - 1))[0]["flags"] == list(FLAGS)


@pytest.mark.parametrize(
    ("parts", "undecoded"),
    [
        ({}, False),
        ({"request_slot": -1}, True),
        ({"request_slot": -1, "request_flags": FLAG["snaplen"]}, False),
        ({"request_slot": -1, "request_bytes": 2 << 20}, False),
        ({"request_slot": -1, "api_key": None, "api_version": None}, False),
        ({"request_slot": -1, "outcome": "orphan", "api_key": None, "api_version": None}, False),
    ],
)
def test_a_whole_body_that_no_program_reads_is_undecoded(pcaps: Path, parts: dict[str, Any], undecoded: bool) -> None:
    """The rows of a real batch, whose first row was read, with parts changed."""
    from kcap.capture_pass import CapturePass
    from kcap.model import ROW

    made = next(b for b in CapturePass([str(pcaps / "java-transactions.pcap")]).batches() if b.rows)
    real = dict(zip(ROW, made.rows[0], strict=True))
    made.tuples[:] = [tuple((real | parts)[name] for name in ROW)]
    found = ExchangeTable(choose("exchanges", ["flags"]), FILES).turn(made).to_pylist()
    assert ("undecoded" in found[0]["flags"]) is undecoded


def test_damaged_and_unknown_messages_are_flagged(pcaps: Path) -> None:
    rows = (
        kcap.open(str(pcaps / "raw-frames.pcap")).exchanges(["api", "api_key", "api_version", "flags"]).to_arrow().to_pylist()
    )
    flagged = {(r["api_key"], r["api_version"]) for r in rows if "undecoded" in r["flags"]}
    assert (18, 99) in flagged
    assert all(r["api"] for r in rows if "undecoded" not in r["flags"] and r["api_key"] is not None)


def test_throttle_and_errors_come_from_the_response(pcaps: Path) -> None:
    columns = ["api", "throttle_time_ms", "error_code", "error", "error_count"]
    rows = kcap.open(str(pcaps / "quota-3.9.pcap")).exchanges(columns).to_arrow().to_pylist()
    produce = [r for r in rows if r["api"] == "Produce"]
    assert max(r["throttle_time_ms"] for r in produce) > 100
    assert {(r["error_code"], r["error"], r["error_count"]) for r in produce} == {(0, "NONE", 0)}


def test_a_fetch_has_the_records_of_its_response_and_the_wishes_of_its_request(pcaps: Path) -> None:
    rows = kcap.open(str(pcaps / "librdkafka-zstd.pcap")).exchanges().to_arrow().to_pylist()
    fetches = [r for r in rows if r["api"] == "Fetch" and r["record_count"]]
    assert sum(r["record_count"] for r in fetches if r["client_id"] in ("fruit-rdkc", "fruit-rdkn")) == 500
    assert {tuple(r["codecs"]) for r in fetches} >= {("zstd",)}
    assert {tuple(r["magics"]) for r in fetches} == {(2,)}
    assert all(r["max_bytes"] and r["min_bytes"] and r["isolation_level"] in (0, 1) for r in fetches)
    inits = [r for r in rows if r["api"] == "InitProducerId"]
    assert inits
    assert all(r["producer_id"] >= 0 for r in inits), "the request asks with -1; the response gives it"


@pytest.mark.parametrize(("behind", "group"), [(b"", "billing"), (b"\0", None), (b"\xff" * 9, None)])
def test_a_message_that_does_not_read_to_its_end_gives_no_names(tmp_path: Path, behind: bytes, group: str | None) -> None:
    """What is damaged may be a message of another API, whose credentials stand where a name would."""
    story = began()
    body = text("tx") + bytes(10) + text("billing") + behind
    story.ask(request(25, 0, 1, body), response(1, bytes(6)))
    story.ask(request(25, 0, 2, text("tx") + bytes(10) + struct.pack(">h", 90) + b"billing"), response(2, bytes(6)))
    table = kcap.open(str(saved(tmp_path / "a.pcap", story))).table("exchanges")
    rows = [row for batch in table.record_batches() for row in batch.to_pylist()]
    assert [row["group_id"] for row in rows] == [group, None]
    assert [row["transactional_id"] for row in rows] == [group and "tx", None]
