"""Names of filters."""

from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.errors import did_you_mean
from kcap.filter.ast import Deep
from kcap.filter.fields import ALIASES, WORDS, deep_fields, fields, lookup, named_values, snake
from kcap.schema import registry


def test_every_column_has_a_name() -> None:
    names = {column.name for column in (*EXCHANGES, *ON_REQUEST["exchanges"])}
    assert names <= set(fields())
    assert {column for columns in ALIASES.values() for column in columns} <= names
    assert set(WORDS) <= names


def test_alternatives_are_of_one_kind() -> None:
    """Columns that one name stands for can be compared with the same values."""
    for alias, columns in ALIASES.items():
        kinds = {(fields()[column].kind, fields()[column].many) for column in columns}
        assert kinds == {(fields()[alias].kind, fields()[alias].many)}, alias


def test_fields_of_bodies_are_those_of_the_schema() -> None:
    assert len(deep_fields()) > 1000
    found = lookup("response.responses.partitions.high_watermark")
    assert isinstance(found, Deep)
    assert found.apis == {registry.api_key("Fetch")}
    assert lookup("response.responses.partitions.high_watermarks") is None
    assert lookup("nothing") is None


def test_words_for_values() -> None:
    assert named_values("api_key")["fetch"] == 1
    assert named_values("error_code")["unknown_topic_id"] == 100
    assert not named_values("client_id")
    assert "Fetch" in did_you_mean("fetsh", named_values("api"))


def test_snake() -> None:
    assert [snake(name) for name in ("FetchOffset", "fetchOffset", "fetch_offset", "TopicId")] == [
        "fetch_offset", "fetch_offset", "fetch_offset", "topic_id",
    ]  # fmt: skip
