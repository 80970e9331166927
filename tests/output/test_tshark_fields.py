"""Rows as tshark writes them."""

import json
from datetime import UTC, datetime
from io import BytesIO

import pyarrow as pa
import pytest

from kcap.errors import UsageError
from kcap.output.tshark_fields import Bulk, FieldLayout, Fields, JsonArray, layout_of, seconds, texts
from kcap.table.schema import arrow_schema, choose

COLUMNS = ["time", "client_port", "server_port", "client_id", "topics", "tls"]
TIME = datetime(2026, 11, 21, 6, 0, 0, 5, tzinfo=UTC)
SCHEMA = arrow_schema("exchanges", choose("exchanges", COLUMNS))
ROWS = pa.RecordBatch.from_pylist(
    [
        {"time": TIME, "client_port": 1, "server_port": 9092, "client_id": 'a"b', "topics": ["x", None, "y"], "tls": False},
        {"time": TIME, "client_port": 9092, "server_port": 9092, "client_id": None, "topics": None, "tls": True},
    ],
    SCHEMA,
)


def written(layout: FieldLayout) -> list[str]:
    sink = BytesIO()
    writer = Fields(sink, SCHEMA, layout)
    writer.write(ROWS)
    writer.close()
    return sink.getvalue().decode().splitlines()


def test_tabs_and_nothing_around() -> None:
    layout = layout_of("exchanges", ["tcp.port", "client_id", "kafka.topic_name", "tls", "frame.time_epoch"], [])
    assert written(layout) == ['1,9092\ta"b\tx,y\t0\t1795240800.000005000', "9092\t\t\t1\t1795240800.000005000"]


def test_what_e_asks_for() -> None:
    layout = layout_of("exchanges", ["client_id", "topics"], ["header=y,separator=,,quote=d", "occurrence=l", "aggregator=;"])
    assert written(layout) == ["client_id,topics", '"a""b","y"', '"",""']
    assert written(layout_of("exchanges", ["topics"], ["occurrence=f", "separator=/t", "bom=n"])) == ["x", ""]
    assert written(layout_of("exchanges", ["topics"], ["aggregator=;"])) == ["x;y", ""]


def test_a_header_stands_above_nothing() -> None:
    sink = BytesIO()
    Fields(sink, SCHEMA, layout_of("exchanges", ["tls"], ["header=y"])).close()
    assert sink.getvalue() == b"tls\n"


@pytest.mark.parametrize("setting", ["header=x", "header", "sep=,", "quote=q", "separator="])
def test_settings_that_nobody_knows(setting: str) -> None:
    with pytest.raises(UsageError, match="not understood"):
        layout_of("exchanges", ["tls"], [setting])


def test_fields_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match="did you mean client_id"):
        layout_of("exchanges", ["client_idd"], [])
    with pytest.raises(UsageError, match="has no column"):
        layout_of("connections", ["kafka.api_key"], [])
    with pytest.raises(UsageError, match="needs -e"):
        layout_of("exchanges", [], [])
    assert layout_of("connections", ["began"], []).needed == ["began"]


def test_one_array() -> None:
    sink = BytesIO()
    writer = JsonArray(sink, SCHEMA)
    writer.write(ROWS)
    writer.write(ROWS.slice(0, 1))
    writer.close()
    assert [row["client_port"] for row in json.loads(sink.getvalue())] == [1, 9092, 1]
    empty = BytesIO()
    JsonArray(empty, SCHEMA).close()
    assert json.loads(empty.getvalue()) == []


def test_bulk_lines_come_in_pairs() -> None:
    sink = BytesIO()
    writer = Bulk(sink, SCHEMA)
    writer.write(ROWS)
    writer.close()
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line["index"]["_index"] for line in lines[::2]] == ["kcap-2026-11-21"] * 2
    assert [line["client_port"] for line in lines[1::2]] == [1, 9092]


def test_values() -> None:
    assert texts(None) == []
    assert texts([1, None, "a"]) == ["1", "a"]
    assert texts(b"\x01\xff") == ["01ff"]
    assert texts(TIME) == ["2026-11-21T06:00:00.000005Z"]
    assert seconds(1795240800_000005000) == "1795240800.000005000"
    assert seconds(-1) == "-1.999999999"


def test_values_break_no_line_and_no_field() -> None:
    layout = layout_of("exchanges", ["client_id", "api"], [])
    schema = pa.schema([("client_id", pa.string()), ("api", pa.string())])
    rows = pa.RecordBatch.from_pylist([{"client_id": "a\tb\nc\rd\\e", "api": "Fetch"}], schema)
    assert text_of(layout, rows) == "a\\tb\\nc\\rd\\e\tFetch\n"
    assert text_of(layout_of("exchanges", ["client_id", "api"], ["escape=n"]), rows).count("\n") == 2


def test_lengths_and_relative_times_are_those_of_wireshark() -> None:
    schema = pa.schema([("time", pa.timestamp("us", "UTC")), ("request_bytes", pa.int64()), ("response_bytes", pa.int64())])
    rows = pa.RecordBatch.from_pylist([{"time": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), "request_bytes": 9}], schema)
    layout = layout_of("exchanges", ["frame.time_relative", "kafka.len"], [])
    assert text_of(layout, rows, 500) == "1.999999500\t5\n"
    assert layout_of("partitions", ["kafka.partition_id"], []).needed == ["partition"]
    inside = layout_of("exchanges", ["kafka.partition_id"], []).needed
    assert {"request.topics.partitions.partition", "request.topic_data.partition_data.index"} <= set(inside)


def test_lengths_of_frames_stand_in_the_order_of_their_numbers() -> None:
    """Each packet is of the file that it is in; of an orphan only the response's are there."""
    names = [f"{side}_{end}_packet" for side in ("request", "response") for end in ("first", "last")]
    files = ["capture", "request_last_capture", "response_capture", "response_last_capture"]
    schema = pa.schema([*((name, pa.int64()) for name in names), *((name, pa.string()) for name in files)])
    rows = pa.RecordBatch.from_pylist(
        [
            dict(zip([*names, *files], row))
            for row in (
                (5, 5, 7, 9, "a.pcap", None, "a.pcap", None),
                (7, 5, 7, 9, "a.pcap", "b.pcap", "b.pcap", "c.pcap"),
                (None, None, 7, 7, None, None, "b.pcap", None),
            )
        ],
        schema,
    )
    layout = layout_of("exchanges", ["frame.number", "frame.len"], [])
    assert sorted(layout.needed) == sorted(schema.names)
    sizes = {("a.pcap", 5): 60, ("a.pcap", 7): 1514, ("a.pcap", 9): 60, ("b.pcap", 5): 70, ("b.pcap", 7): 71, ("c.pcap", 9): 72}
    sink = BytesIO()
    Fields(sink, schema, layout, length=lambda name, packet: sizes[name, packet]).write(rows)
    assert sink.getvalue() == b"5,7,9\t60,1514,60\n7,5,9\t1514,70,71,72\n7\t71\n"


def text_of(layout: FieldLayout, rows: pa.RecordBatch, began_ns: int | None = None) -> str:
    sink = BytesIO()
    fields = Fields(sink, rows.schema, layout, lambda: began_ns)
    fields.write(rows)
    fields.close()
    return sink.getvalue().decode()
