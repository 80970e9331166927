"""The declarations of tables are complete and consistent."""

from kcap.columns import EXCHANGES, FLAGS, TABLES, TYPES


def test_columns_are_declared_once_with_a_known_type_and_a_meaning() -> None:
    for name, columns in TABLES.items():
        names = [c.name for c in columns]
        assert len(set(names)) == len(names), name
        assert {c.type for c in columns} <= set(TYPES), name
        assert all(c.doc for c in columns), name


def test_flags_are_sorted() -> None:
    """A row lists its flags in this order."""
    assert list(FLAGS) == sorted(FLAGS)


def test_a_key_of_the_table_is_never_null() -> None:
    kinds = {c.name: c.nullable for c in EXCHANGES}
    assert not kinds["connection"]
    assert not kinds["exchange"]
    assert not kinds["time"]
