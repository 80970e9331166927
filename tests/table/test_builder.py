"""Laws of tables: record batches, Arrow and pandas give the same rows."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import kcap
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.table import builder


@pytest.mark.parametrize("name", TABLES)
def test_every_table_comes_in_three_forms(pcaps: Path, name: str) -> None:
    files = ["tls13.pcapng"] if name == "tls_turns" else ["raw-frames.pcap", "go-franz.pcap"]
    table = kcap.open(*(str(pcaps / file) for file in files)).table(name)
    whole = table.to_arrow()
    assert whole.schema.equals(table.schema, check_metadata=True)
    assert pa.Table.from_batches(table.record_batches(), table.schema).equals(whole)
    assert len(table.to_pandas()) == whole.num_rows > 0


def test_pandas_gets_datetimes_and_whole_numbers(pcaps: Path) -> None:
    columns = ["time", "exchange", "latency_ns", "request_first_ns", "api_key", "error", "topics"]
    found = kcap.open(str(pcaps / "pipelined.pcap")).exchanges(columns).to_pandas()
    assert found["time"][0].to_pydatetime() == datetime(2026, 11, 21, 7, 41, 55, 720917, tzinfo=UTC)
    assert str(found["exchange"].dtype) == "int64"
    assert str(found["latency_ns"].dtype) == "Int64"
    assert found["latency_ns"].isna().any()
    assert found["request_first_ns"][0] == 1795246915720917000


def test_connections_come_in_batches(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "CONNECTIONS_AT_ONCE", 3)
    batches = list(kcap.open(str(pcaps / "sasl-raw-tokens.pcap")).connections(["connection"]).record_batches())
    uids = [uid for batch in batches for uid in batch.column(0).to_pylist()]
    assert len(set(uids)) == len(uids) > 10


def test_columns_are_checked_before_anything_is_read() -> None:
    with pytest.raises(UsageError):
        kcap.Capture(["nothing.pcap"]).exchanges(["apu"])
