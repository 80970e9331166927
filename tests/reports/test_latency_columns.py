"""The report `latency` over batches in memory has what an engine of SQL gives, or there is none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.columns import EXCHANGES
from kcap.reports import latency_columns
from kcap.reports.definition import ReportRequest, Row, keys_of
from kcap.reports.latency import REPORT
from kcap.reports.latency_columns import BUCKETS, Quantiles, buckets, results
from tests.reports.made import MS, arrow, exchange, exchanges, report

FLAGS = st.lists(st.sampled_from(["gap", "clock", "tls"]), unique=True, max_size=2)


def made(rows: list[Row], request: ReportRequest, size: int = 7) -> Row | None:
    """The report over batches of some rows, which begin within their buffers."""
    batches: Any = arrow(rows, EXCHANGES).to_batches(max_chunksize=size)
    found = results(lambda: batches, keys_of(REPORT, request), request)
    return None if found is None else REPORT.finish(found, request)


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two results differ. Of a half of a nanosecond the last bit of a float says which is the nearest."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        return [text for name in one for text in differences(one[name], other[name], f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [text for at, pair in enumerate(zip(one, other)) for text in differences(*pair, f"{path}[{at}]")]
    near = isinstance(one, int) and isinstance(other, int) and ".p" in path and abs(one - other) <= 1
    return [] if near or one == other else [f"{path}: {one!r}, {other!r}"]


@pytest.mark.parametrize("by", [("api",), ("client_id", "api_version"), ("client_ip", "client_id", "api")])
@given(
    rows=exchanges(),
    polls=st.booleans(),
    flags=st.lists(FLAGS, min_size=25, max_size=25),
    waited=st.sampled_from([None, 0, 3, 10**9]),
)
@settings(max_examples=6, deadline=None)
def test_it_is_the_report_of_the_engine(
    by: tuple[str, ...], polls: bool, rows: list[Row], flags: Sequence[list[str]], waited: int | None
) -> None:
    rows = [row | {"flags": flag, "queue_ns": waited, "muted_ns": -(waited or 0)} for row, flag in zip(rows, flags)]
    request = ReportRequest(by, long_polls=polls)
    found = made(rows, request)
    assert found is not None
    assert differences(report(REPORT, rows, request), found) == []


@given(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=1, max_size=60), st.integers(1, 3))
def test_percentiles_are_exact(values: list[int], groups: int) -> None:
    """Law: numpy's, whatever the sizes of the values."""
    array, of = np.array(values), np.arange(len(values)) % groups
    quantiles = Quantiles([0.0, 0.5, 0.9, 0.999, 1.0])
    for part in (slice(None, 5), slice(5, None)):
        quantiles.count(of[part], array[part], groups)
    quantiles.want()
    for part in (slice(None, 5), slice(5, None)):
        quantiles.collect(of[part], array[part])
    quantiles.settle()
    for group in range(groups):
        own = array[of == group]
        found = quantiles.of(group)
        assert (found is None) == (not len(own))
        if found is not None:
            wanted = np.quantile(own.astype(np.float64), quantiles.fractions)
            assert np.allclose(found, wanted, rtol=1e-12, atol=1e-6 * np.abs(own).max())


@given(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=2, max_size=60))
def test_a_larger_value_is_in_no_smaller_bucket(values: list[int]) -> None:
    found = buckets(np.array(sorted(values)))
    assert (np.diff(found) >= 0).all()
    assert 0 <= found.min() <= found.max() < BUCKETS


def test_what_tables_of_counts_cannot_hold_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [exchange(exchange=number, took_ms=number, client_id=f"c{number}") for number in range(9)]
    assert made(rows, ReportRequest(("client_id",))) is not None
    for request in (ReportRequest(("topic",)), ReportRequest(("time:1s",)), ReportRequest(("api",), listed=2)):
        assert made(rows, request) is None, "a grouping that is no column"
    assert made([*rows, exchange(took_ms=1) | {"latency_ns": 1 << 61}], ReportRequest()) is None, "sums beyond 64 bits"
    assert made([*rows, exchange(at_ms=100 * 3_600_000, took_ms=MS)], ReportRequest()) is None, "steps of other units"
    monkeypatch.setattr(latency_columns, "COLUMNAR_GROUPS", 8)
    assert made(rows, ReportRequest(("client_id",))) is None, "many groups"
