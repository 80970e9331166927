"""Payloads as text: readable where they are text, and nothing is lost where a way promises so."""

import json
from base64 import b64decode

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.output.payloads import WAYS, as_text, shown

SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())])


def values(way: str | None, *blobs: bytes | None) -> list[object]:
    batch = pa.RecordBatch.from_pylist([{"key": blob, "value": blob, "offset": 1} for blob in blobs], SCHEMA)
    (made,) = shown([batch], way)
    assert made.schema == as_text(SCHEMA, way)
    assert made.column("key").to_pylist() == made.column("value").to_pylist()
    return made.column("value").to_pylist()


def test_each_way() -> None:
    blobs = "gr\u00fcn".encode(), b"\xff\0", b' {"a": [1, null]}', None, b""
    assert values("text", *blobs) == ["gr\u00fcn", "\\xff\0", ' {"a": [1, null]}', None, ""]
    assert values("hex", b"\xff\0", None) == ["ff00", None]
    assert values("json", *blobs) == ['"gr\u00fcn"', '"\\\\xff\\u0000"', '{"a":[1,null]}', None, '""']
    assert values(None, *blobs) == list(blobs)


@given(st.binary(max_size=40))
def test_what_promises_to_lose_nothing_does_not(data: bytes) -> None:
    assert bytes.fromhex(str(values("hex", data)[0])) == data
    assert b64decode(str(values("base64", data)[0])) == data
    json.loads(str(values("json", data)[0]))


@pytest.mark.parametrize("way", WAYS)
def test_other_columns_stay(way: str) -> None:
    assert as_text(SCHEMA, way).field("offset") == SCHEMA.field("offset")
