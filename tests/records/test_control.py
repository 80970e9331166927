"""Control records."""

from kcap.records.control import TYPES, read_control
from kcap.schema.facts import message


def test_types_have_schemas() -> None:
    """Every type's value schema is one that Kafka has."""
    assert all(message(schema) for _, schema, _ in TYPES.values())


def test_markers() -> None:
    """A transaction's end, and what is unknown."""
    commit = read_control(b"\0\0\0\1", b"\0\0\0\0\0\7")
    assert commit is not None
    assert (commit.type, commit.type_id, commit.body) == ("COMMIT", 1, {"coordinatorEpoch": 7})
    unknown = read_control(b"\0\0\0\x5b", b"x")
    assert unknown is not None
    assert (unknown.type, unknown.type_id, unknown.body) == ("UNKNOWN", 91, None)


def test_damage() -> None:
    """No type, no value, a value that is cut: no exception."""
    assert read_control(None, b"") is None
    assert read_control(b"\0\0\0", b"") is None
    for value in (None, b"", b"\0", b"\0\0\0"):
        found = read_control(b"\0\0\0\1", value)
        assert found is not None
        assert found.body is None
