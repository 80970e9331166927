"""The table of programs."""

from kcap.decode import opcodes
from kcap.decode.programs import ROWS, place_of, program_index, with_partitions
from kcap.schema import registry


def test_unknown_apis_have_no_program() -> None:
    """-1 is told from every row."""
    assert program_index(999, 0, 0) == -1
    assert program_index(1, 999, 1) == -1
    assert program_index(1, 12, 1) >= 0


def test_partitions_have_programs_of_their_own() -> None:
    """Only APIs that are about partitions have them."""
    assert program_index(1, 12, 1, True) not in (-1, program_index(1, 12, 1))
    assert program_index(18, 3, 1, True) == -1
    assert place_of(program_index(0, 9, 0, True)) == ((0, 9, 0, True), 0)
    assert with_partitions(program_index(0, 9, 0)) == program_index(0, 9, 0, True)
    for other in ((18, 3, 1), (3, 12, 1)):  # Metadata's are asked for apart
        assert with_partitions(program_index(*other)) == program_index(*other)


def test_an_index_holds() -> None:
    """The same program is asked for twice and compiled once."""
    first = program_index(3, 12, 0)
    size = len(ROWS)
    assert program_index(3, 12, 0) == first
    assert len(ROWS) == size


def test_headers_with_tags_come_first() -> None:
    """A flexible header's tag section is part of the program; ApiVersions responses never have one."""
    assert ROWS[program_index(1, 12, 0)][0] == opcodes.TAGS
    assert ROWS[program_index(1, 12, 1)][0] == opcodes.TAGS
    assert ROWS[program_index(1, 11, 1)][0] != opcodes.TAGS
    assert ROWS[program_index(18, 3, 1)][0] == opcodes.DOWNGRADE


def test_a_row_tells_its_program() -> None:
    """Law: the place of any row of a program leads back to it."""
    for key in registry.api_keys():
        found = registry.version_range(key)
        assert found is not None
        index = program_index(key, found[1], 1)
        assert place_of(index) == ((key, found[1], 1, False), 0)
        assert place_of(index + 1) == ((key, found[1], 1, False), 1)
