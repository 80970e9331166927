"""Values in words."""

from kcap.decode.value_words import _FIELDS, timestamp_words, words
from kcap.schema.facts import Field, message, message_names


def test_what_people_read() -> None:
    """Names for codes, times for timestamps, sizes for bytes, plain numbers for the rest."""
    assert words("ErrorCode", "int16", 6) == "6 NOT_LEADER_OR_FOLLOWER (retriable)"
    assert words("ErrorCode", "int16", 10) == "10 MESSAGE_TOO_LARGE"
    assert words("ResourceType", "int8", 2, "DescribeConfigsRequest") == "2 topic"
    assert words("ResourceType", "int8", 4, "CreateAclsRequest") == "4 cluster"
    assert words("ResourceType", "int8", 4, "ConfigRecord") == "4 broker"
    assert words("TopicAuthorizedOperations", "int32", 0b1011000) == "88 read, write, delete"
    assert words("TopicAuthorizedOperations", "int32", -(1 << 31)) == "-2147483648 not requested"
    assert words("PartitionErrorCode", "int16", 9999) == "9999 unknown"
    assert words("ApiKey", "int16", 1) == "1 Fetch"
    assert words("Acks", "int16", -1) == "-1 all"
    assert words("IsolationLevel", "int8", 1) == "1 read_committed"
    assert words("IsolationLevel", "int8", 7) == "7"
    assert words("Operation", "int8", 3) == "3 read"
    assert words("CompressionType", "int8", 4) == "4 zstd"
    assert words("Rack", "string", None) == "null"
    assert words("Name", "string", "a") == "a"
    assert words("IsInternal", "bool", True) == "true"
    assert words("Assignment", "bytes", b"abc") == "3 bytes"
    assert words("LogAppendTimeMs", "int64", 1_700_000_000_123) == "1700000000123 2023-11-14T22:13:20.123Z"
    assert words("Timestamp", "int64", -2) == "-2 earliest"
    assert words("Offset", "int64", 1_700_000_000_123) == "1700000000123"
    assert words("Ratio", "float64", 0.5) == "0.5"


def test_every_table_is_about_a_field() -> None:
    """A name that no message has is a mistake."""
    names = {"RequestApiKey"}

    def walk(fields: tuple[Field, ...]) -> None:
        for field in fields:
            names.add(field.name)
            walk(field.fields)

    for name in message_names():
        found = message(name)
        for variant in found.variants if found else ():
            for fields in (variant.fields, *variant.structs.values()):
                walk(fields)
    assert set(_FIELDS) <= names


def test_times_that_are_none() -> None:
    """A number outside this century is just a number."""
    assert timestamp_words(-1) == "-1"
    assert timestamp_words(1 << 62) == str(1 << 62)
