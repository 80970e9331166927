"""Laws of narrowed rows: whatever is asked for and whatever passes, each value is that of the whole table."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kcap
from kcap.columns import EXCHANGES
from kcap.filter.parse import parse
from kcap.filter.row_test import condition

CAPTURES = ("java-transactions.pcap", "quota-0.10.pcap", "quota-3.9.pcap", "sasl-raw-tokens.pcap", "pipelined.pcap")
FILTERS = (
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
    for text in FILTERS:
        passes = condition(parse(text))
        wanted = [row for row in rows if passes(row)]
        assert whole.filter(text).exchanges().to_arrow().to_pylist() == wanted, text
        dropped += 0 < len(wanted) < len(rows)
    assert dropped >= 3


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.sampled_from(FILTERS), names=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
def test_any_columns_of_any_filter(pcaps: Path, text: str, names: list[str]) -> None:
    capture = kcap.open(str(pcaps / "quota-0.10.pcap"))
    passes = condition(parse(text))
    rows = [row for row in capture.exchanges().to_arrow().to_pylist() if passes(row)]
    wanted = [{name: row[name] for name in names} for row in rows]
    assert capture.filter(text).exchanges(names).to_arrow().to_pylist() == wanted
