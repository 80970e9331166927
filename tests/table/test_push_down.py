"""Laws of the push-down: what headers tell needs no body, and a body that is not decoded changes no row that passes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kcap.analyzer import Options, RowBatch
from kcap.batch.columns import BatchColumns
from kcap.capture_pass import CapturePass
from kcap.columns import EXCHANGES
from kcap.facts.tracker import Fact, MetadataTracker
from kcap.filter.ast import Filter
from kcap.filter.parse import parse
from kcap.kafka.bodies import BodyCollector
from kcap.model import PART
from kcap.table.exchanges import needs_of
from kcap.table.push_down import HEADER, PushDown, header_part
from kcap.table.push_down import NAMES as TELLS
from kcap.table.schema import choose
from tests.support.tables import ExchangeTable

NAMES = [column.name for column in EXCHANGES if column.name in HEADER]


CAPTURES = ("java-transactions.pcap", "cluster-startup.pcap", "sasl-raw-tokens.pcap", "go-franz.pcap")
"""With much in them."""


@pytest.fixture(params=[False, True], ids=["reference", "fast"])
def read(pcaps: Path, request: pytest.FixtureRequest) -> Callable[[str], CapturePass]:
    """Starts a pass over a capture, by the reference path or by the fast path."""

    def start(name: str) -> CapturePass:
        reading = CapturePass([str(pcaps / name)], Options(fast_path=request.param))
        reading.analyzer.expect_many()
        return reading

    return start


def parsed(text: str) -> Filter:
    tree = parse(text)
    assert tree is not None
    return tree


@pytest.mark.parametrize("capture", CAPTURES)
def test_header_columns_need_no_body(read: Callable[[str], CapturePass], capture: str) -> None:
    reading = read(capture)
    table = ExchangeTable(choose("exchanges", NAMES), reading.capture_files)
    rows = 0
    for batch in reading.batches():
        bare = RowBatch(batch.tuples, batch.identities, BodyCollector().close(), batch.fast_rows, batch.orders)
        assert table.turn(bare) == table.turn(batch)
        rows += len(batch)
    assert rows > 100


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("api == Fetch and latency > 1ms", "api == Fetch and latency > 1ms"),
        ("api == Fetch and error != NONE and port == 1", "api == Fetch and port == 1"),
        ("error != NONE", None),
        ("api == Fetch or error != NONE", None),
        ("not (api == Fetch and topics)", None),
        ("request.topics and not client_id", "not client_id"),
    ],
)
def test_what_headers_decide(text: str, left: str | None) -> None:
    assert header_part(parsed(text)) == (None if left is None else parsed(left))


@pytest.mark.parametrize(
    ("column", "decoded"),
    [
        ("acks", {"Produce"}),
        ("broker_id", {"Produce", "ApiVersions", "Metadata", "FindCoordinator"}),
        ("topics", {"Produce", "Metadata", "Fetch"}),
    ],
)
def test_bodies_of_dropped_rows_are_not_decoded(read: Callable[[str], CapturePass], column: str, decoded: set[str]) -> None:
    """But for those that teach what the column shows."""
    reading = read("java-transactions.pcap")
    push = PushDown(parsed("api == Produce"), needs_of(choose("exchanges", ["api", column])), reading)
    reading.unwanted = push.unwanted
    apis = ExchangeTable(choose("exchanges", ["api"]), reading.capture_files)
    seen: set[str] = set()
    for batch in reading.batches():
        names = apis.turn(batch).column("api").to_pylist()
        for name, row in zip(names, batch.rows, strict=True):
            slots = (row[PART["request_slot"]], row[PART["response_slot"]])
            seen.update({name} if any(slot >= 0 and batch.bodies.dense[slot] >= 0 for slot in slots) else ())
    assert seen == decoded


@pytest.mark.parametrize("capture", CAPTURES)
def test_names_of_topics_come_from_few_apis(read: Callable[[str], CapturePass], capture: str) -> None:
    """Law: no other message teaches a name."""
    reading = read(capture)
    every, few = MetadataTracker(), MetadataTracker()
    rows = telling = 0
    for batch in reading.batches():
        columns = BatchColumns(batch)
        every.observe(columns, Fact.TOPICS)
        places = np.flatnonzero(TELLS[columns.number("api_key").values])
        few.observe(columns.select(places), Fact.TOPICS)
        rows, telling = rows + len(batch), telling + len(places)
    assert 0 < telling < rows
    assert few.topics.names == every.topics.names
    assert (len(few.topics.names) > 1) == (capture in ("java-transactions.pcap", "go-franz.pcap"))


def test_answers_are_decoded_where_throttles_count(read: Callable[[str], CapturePass]) -> None:
    """A mute is known by the response before, whether it passes or not; requests of dropped rows need no decoding."""
    reading = read("quota-3.9.pcap")
    push = PushDown(parsed("exchange == 5"), Fact.MUTES, reading)
    reading.unwanted = push.unwanted
    decoded = [0, 0]
    for batch in reading.batches():
        for row in batch.rows:
            for side, slot in enumerate((row[PART["request_slot"]], row[PART["response_slot"]])):
                decoded[side] += slot >= 0 and batch.bodies.dense[slot] >= 0 and row[PART["exchange"]] != 5
    assert decoded[0] == 0
    assert decoded[1] > 100
