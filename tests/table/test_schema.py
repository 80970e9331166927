"""Laws of the Arrow schemas: they say what `kcap.columns` declares."""

import pyarrow as pa
import pytest

from kcap import __version__
from kcap.columns import SCHEMA_VERSION, TABLES, TYPES
from kcap.errors import UsageError
from kcap.table import schema


def test_every_declared_type_has_its_arrow_type() -> None:
    assert set(schema.TYPES) == set(TYPES)
    assert schema.TYPES["timestamp"] == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("table", TABLES)
def test_a_schema_names_its_table_and_documents_its_columns(table: str) -> None:
    made = schema.arrow_schema(table, schema.choose(table, None))
    about = {b"kcap.table": table, b"kcap.schema_version": str(SCHEMA_VERSION), b"kcap.version": __version__}
    assert made.metadata == {name: value.encode() for name, value in about.items()}
    for field, column in zip(made, TABLES[table], strict=True):
        assert (field.name, field.type, field.nullable) == (column.name, schema.TYPES[column.type], column.nullable)
        assert field.metadata == {b"doc": column.doc.encode()}


def test_columns_come_in_the_order_asked() -> None:
    assert [column.name for column in schema.choose("exchanges", ["api", "time"])] == ["api", "time"]


@pytest.mark.parametrize(
    ("table", "names", "words"),
    [
        ("exchanges", ["latancy_ns"], "no column 'latancy_ns'; did you mean latency_ns"),
        ("exchanges", ["packet"], "did you mean"),
        ("exchanges", ["api", "api"], "requested twice"),
        ("exchanges", [], "no column is requested"),
        ("exchange", None, "did you mean exchanges?"),
    ],
)
def test_what_does_not_exist_is_told_with_what_is_near(table: str, names: list[str] | None, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        schema.choose(table, names)
