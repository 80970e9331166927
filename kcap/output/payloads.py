"""Keys and values of records as text.

In: record batches with the binary columns `key` and `value`, one of the forms below. Out: the same batches with these columns
as text. Law: null remains null; `hex` and `base64` lose nothing; `json` gives valid JSON for every value.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from kcap.columns import PAYLOADS


def text(data: bytes) -> str:
    """UTF-8 as it is; other bytes as escapes."""
    return data.decode(errors="backslashreplace")


def json_text(data: bytes) -> str:
    """JSON on one line as it was written; any other value as a JSON string."""
    try:
        return json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return json.dumps(text(data), ensure_ascii=False)


WAYS: Final[dict[str, Callable[[bytes], str]]] = {
    "text": text, "hex": bytes.hex, "base64": lambda data: b64encode(data).decode(), "json": json_text,
}  # fmt: skip
"""Name -> function that converts bytes to text."""


def as_text(schema: pa.Schema, way: str | None) -> pa.Schema:
    """The schema of the result of `shown`."""
    for name in PAYLOADS if way is not None else ():
        at = schema.get_field_index(name)
        if at >= 0 and pa.types.is_binary(schema.field(at).type):
            schema = schema.set(at, pa.field(name, pa.string()))
    return schema


def shown(batches: Iterable[pa.RecordBatch], way: str | None) -> Iterator[pa.RecordBatch]:
    """The batches with text columns; unchanged if no form is given."""
    for batch in batches:
        for at, field in enumerate(batch.schema):
            if way is not None and field.name in PAYLOADS and pa.types.is_binary(field.type):
                values: Any = batch.column(at).to_pylist()
                made = pa.array([None if value is None else WAYS[way](value) for value in values], pa.string())
                batch = batch.set_column(at, pa.field(field.name, pa.string()), made)
        yield batch
