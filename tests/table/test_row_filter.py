"""Filters over captures: the same exchanges whichever way they are asked for."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kcap
from kcap.capture.frame_reader import packet_of
from kcap.columns import EXCHANGES
from kcap.errors import UsageError
from kcap.filter.parse import parse
from kcap.filter.row_predicate import condition
from kcap.session import Capture
from kcap.table.builder import Table
from tests.cli.running import kcap as run

FILTERS = (
    "api == Fetch",
    "latency > 20ms and not (api == Fetch)",
    "error != NONE",
    "topics == orders.txin",
    "broker_id == 2 and topics",
    "version_verdict == ok and api in {Produce, Fetch}",
    "request_bytes in {60..100} or tcp.port == 1",
    'time >= "2026-11-21T07:42:13Z"',
    "client_id contains shop and api_version > 3",
    "api == SaslToken",
)
DEEP = (
    "request.topics.partitions.fetch_offset >= 0",
    "response.throttle_time_ms == 0 and topics == orders.txin",
    "count(response.brokers.node_id) == 3",
    "request.acks == -1 or response.error_code == NONE",
)


def found(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["connection"], row["exchange"]) for row in rows)


@pytest.fixture(scope="module")
def capture() -> Capture:
    return kcap.open(Path(__file__).resolve().parents[2] / "pcaps" / "java-transactions.pcap")


@pytest.mark.parametrize("text", FILTERS)
def test_a_filtered_table_is_the_filtered_rows(capture: Capture, text: str) -> None:
    """Law: what passes is what the closure passes over the whole table, also where the end of the capture knows better."""
    passes = condition(parse(text))
    wanted = [row for row in capture.exchanges().to_arrow().to_pylist() if passes(row)]
    assert capture.filter(text).exchanges().to_arrow().to_pylist() == wanted
    few = capture.filter(text).exchanges(["exchange", "connection"]).to_arrow().to_pylist()
    assert found(few) == found(wanted)
    assert (text == FILTERS[-1]) == (not wanted)


@pytest.mark.parametrize("text", DEEP)
def test_filters_that_look_inside(capture: Capture, text: str) -> None:
    """Tables, iteration and decoding by hand agree."""
    passes = condition(parse(text))

    def body(exchange: Any, side: str) -> Any:
        message = getattr(exchange, side)
        return None if message is None else message.to_json()

    last = {(row["connection"], row["exchange"]): row for row in capture.exchanges().to_arrow().to_pylist()}
    wanted = [
        (exchange.row["connection"], exchange.row["exchange"])
        for exchange in capture
        if passes(
            last[exchange.row["connection"], exchange.row["exchange"]],
            lambda _, side, exchange=exchange: body(exchange, side),
        )
    ]
    assert wanted
    assert found(capture.filter(text).exchanges().to_arrow().to_pylist()) == sorted(wanted)
    iterated = {(one.row["connection"], one.row["exchange"]) for one in capture.filter(text)}
    assert iterated <= set(wanted), "iteration knows what was seen so far"


@pytest.mark.parametrize("table", ["partitions", "records"])
def test_parts_of_exchanges(capture: Capture, table: str) -> None:
    """Rows of partitions and records are those of the exchanges that pass."""
    text = "api == Produce and topics == orders.txout"
    keys = set(found(capture.filter(text).exchanges().to_arrow().to_pylist()))
    every = capture.table(table).to_arrow().to_pylist()
    wanted = [row for row in every if (row["connection"], row["exchange"]) in keys]
    assert wanted
    assert capture.filter(text).table(table).to_arrow().to_pylist() == wanted


def test_filters_add_up(capture: Capture) -> None:
    both = capture.filter("api == Fetch").filter("latency > 20ms")
    assert both.exchanges().to_arrow() == capture.filter("api == Fetch and latency > 20ms").exchanges().to_arrow()
    assert capture.filter("").exchanges().to_arrow().num_rows == capture.exchanges().to_arrow().num_rows


def test_tables_of_other_things_take_no_filter(capture: Capture) -> None:
    with pytest.raises(UsageError, match="about exchanges"):
        capture.filter("tls").connections()


def test_a_limit_counts_what_passes(capture: Capture) -> None:
    reading = capture.read()
    table = Table(lambda: reading, "exchanges", ["api"], limit=3, only=parse("api == Fetch"))
    assert table.to_arrow().to_pylist() == [{"api": "Fetch"}] * 3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_command_line(capture: Capture, pcaps: Path, tmp_path: Path, form: str) -> None:
    """-Y on the way to a stream and to a file; a wrong filter is exit 2 before anything is read."""
    text, out = "topics == orders.txin and latency > 1ms", tmp_path / f"out.{form}"
    done = run("rows", pcaps / "java-transactions.pcap", "-Y", text, "-o", str(out))
    assert done.returncode == 0, done.stderr
    wanted = capture.filter(text).exchanges().to_arrow()
    if form == "csv":
        assert out.read_text(encoding="utf-8").count("\n") == wanted.num_rows + 1
    else:
        from pyarrow.parquet import read_table

        assert read_table(out)["exchange"].to_pylist() == wanted["exchange"].to_pylist()
    wrong = run("rows", pcaps / "nothing.pcap", "-Y", "latncy > 3")
    assert wrong.returncode == 2
    assert b"^~~~~~" in wrong.stderr


@pytest.mark.parametrize(("name", "between"), [("quota-3.9.pcap", 3), ("cluster-startup.pcap", 40), ("broker-paused.pcap", 9)])
def test_any_packet_of_an_exchange_names_it(pcaps: Path, name: str, between: int) -> None:
    """Law: `frame.number` finds the exchanges to whose frames a packet gave bytes, and no others."""
    capture = kcap.open(str(pcaps / name))
    numbers = packet_numbers(capture)
    whose: dict[int, set[tuple[str, int]]] = {}
    inner: list[int] = []
    for exchange in capture:
        row = exchange.row
        ends = {row[f"{side}_{end}_packet"] for side in ("request", "response") for end in ("first", "last")}
        for packet in exchange.packets():
            number = numbers[packet.time_ns, packet.data]
            whose.setdefault(number, set()).add((row["connection"], row["exchange"]))
            inner += [number] if number not in ends else []
    assert len(inner) >= between, "packets between the first and the last"
    for number in [*inner, *range(1, max(whose) + 2, 17)]:
        assert numbered(capture, f"== {number}") == whose.get(number, set()), number
    low, high = inner[0], inner[-1]
    wanted = set().union(*(those for number, those in whose.items() if low <= number <= high))
    assert numbered(capture, f"in {{{low}..{high}}}") == wanted
    assert not numbered(capture, f"!= {low}") & whose[low]


def numbered(capture: Capture, condition: str) -> set[tuple[str, int]]:
    rows = capture.filter(f"frame.number {condition}").exchanges(["connection", "exchange"]).to_arrow().to_pylist()
    return set(found(rows))


def packet_numbers(capture: Capture) -> dict[tuple[int, bytes], int]:
    """Packets to their numbers."""
    found: dict[tuple[int, bytes], int] = {}
    for batch in capture.read().files.batches():
        for at in range(len(batch.time_ns)):
            packet = packet_of(batch, at)
            found.setdefault((packet.time_ns, packet.data), batch.first_packet + at)
    return found


def test_a_saved_table_has_no_packets(capture: Capture) -> None:
    from kcap.filter.ibis_filter import predicate

    with pytest.raises(UsageError, match="request_last_packet"):
        predicate(parse("frame.number == 5"), None)
    for text in ("count(frame.number) > 2", "frame.number == exchange", "exchange == frame.number"):
        with pytest.raises(UsageError, match=r"frame\.number (cannot be passed|can only be compared)"):
            parse(text)


CAPTURES = ("java-transactions.pcap", "quota-0.10.pcap", "quota-3.9.pcap", "sasl-raw-tokens.pcap", "pipelined.pcap")
CONDITIONS = (
    "api == Fetch",
    "exchange > 5",
    "latency > 20ms and topics",
    "api in {Metadata, Produce} and error == NONE",
    "throttle > 0",
    "muted > 0",
    "outcome != answered",
    "version_verdict == not_highest or client_id contains a",
    "request_bytes > 90 and broker_id == 1",
    "not api",
)
COLUMNS = [column.name for column in EXCHANGES]


@pytest.mark.parametrize("capture", CAPTURES)
def test_rows_that_pass_are_those_of_the_whole_table(pcaps: Path, capture: str) -> None:
    whole = kcap.open(str(pcaps / capture))
    rows = whole.exchanges().to_arrow().to_pylist()
    dropped = 0
    for text in CONDITIONS:
        passes = condition(parse(text))
        wanted = [row for row in rows if passes(row)]
        assert whole.filter(text).exchanges().to_arrow().to_pylist() == wanted, text
        dropped += 0 < len(wanted) < len(rows)
    assert dropped >= 3


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.sampled_from(CONDITIONS), names=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
def test_any_columns_of_any_filter(pcaps: Path, text: str, names: list[str]) -> None:
    capture = kcap.open(str(pcaps / "quota-0.10.pcap"))
    passes = condition(parse(text))
    rows = [row for row in capture.exchanges().to_arrow().to_pylist() if passes(row)]
    wanted = [{name: row[name] for name in names} for row in rows]
    assert capture.filter(text).exchanges(names).to_arrow().to_pylist() == wanted
