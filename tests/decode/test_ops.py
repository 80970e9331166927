"""The instruction numbers hold the order that the interpreters compare by."""

from kcap.decode import ops


def test_numbers_are_dense_and_distinct() -> None:
    """0, 1, 2, ...; END comes behind all that most messages need."""
    assert sorted(ops.OPS.values()) == list(range(len(ops.OPS)))
    assert {name for name, number in ops.OPS.items() if number > ops.END} == {"ELEMENT", "FIELD"}


def test_a_compact_form_is_the_even_number_behind() -> None:
    """Plain forms are odd."""
    for name, number in ops.OPS.items():
        if name.startswith("COMPACT_"):
            assert number % 2 == 0
            assert ops.OPS[name.removeprefix("COMPACT_")] == number - 1


def test_families_stand_together() -> None:
    """Strings, arrays and bytes are ranges."""
    assert ops.TAGS < ops.STRING < ops.COMPACT_STRING < ops.TOPIC_NAME < ops.COMPACT_TOPIC_NAME < ops.ERROR < ops.INT
    assert ops.INT < ops.ARRAY < ops.COMPACT_ARRAY < ops.PARTITIONS < ops.COMPACT_PARTITIONS < ops.TOPIC_ID < ops.NULLABLE
    assert ops.NULLABLE < ops.BYTES < ops.COMPACT_BYTES < ops.RECORDS < ops.COMPACT_RECORDS < ops.NULLABLE_TAGGED
