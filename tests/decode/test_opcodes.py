"""The instruction numbers hold the order that the interpreters compare by."""

from kcap.decode import opcodes


def test_numbers_are_dense_and_distinct() -> None:
    """0, 1, 2, ...; END comes behind all that most messages need."""
    assert sorted(opcodes.OPS.values()) == list(range(len(opcodes.OPS)))
    assert {name for name, number in opcodes.OPS.items() if number > opcodes.END} == {"ELEMENT", "FIELD"}


def test_a_compact_form_is_the_even_number_behind() -> None:
    """Plain forms are odd."""
    for name, number in opcodes.OPS.items():
        if name.startswith("COMPACT_"):
            assert number % 2 == 0
            assert opcodes.OPS[name.removeprefix("COMPACT_")] == number - 1


def test_families_stand_together() -> None:
    """Strings, arrays and bytes are ranges."""
    assert (
        opcodes.TAGS
        < opcodes.STRING
        < opcodes.COMPACT_STRING
        < opcodes.TOPIC_NAME
        < opcodes.COMPACT_TOPIC_NAME
        < opcodes.ERROR
        < opcodes.INT
    )
    assert (
        opcodes.INT
        < opcodes.ARRAY
        < opcodes.COMPACT_ARRAY
        < opcodes.PARTITIONS
        < opcodes.COMPACT_PARTITIONS
        < opcodes.TOPIC_ID
        < opcodes.NULLABLE
    )
    assert (
        opcodes.NULLABLE
        < opcodes.BYTES
        < opcodes.COMPACT_BYTES
        < opcodes.RECORDS
        < opcodes.COMPACT_RECORDS
        < opcodes.NULLABLE_TAGGED
    )
