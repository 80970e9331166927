"""Sections of a file as columns."""

import pickle
import tracemalloc
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.sections import FileSection, FileSections, Interface, sections_of

interfaces = st.builds(
    Interface,
    st.integers(-1, 0xFFFF),
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([1, 1000, 10**9]),
    st.sampled_from([1, 10**63, 2**63]),
    st.integers(-(1 << 33) * 10**9, (1 << 33) * 10**9),
    st.sampled_from([16, 24]),
)


@given(st.lists(st.tuples(st.sampled_from("<>"), st.lists(interfaces, max_size=4)), max_size=8))
def test_a_section_is_what_was_said_of_it(said):
    """Law: each place of a file has the order and the interfaces that its section had, also behind a pickle."""
    parts = [FileSection(100 * number, order, found) for number, (order, found) in enumerate(said)]
    sections = pickle.loads(pickle.dumps(sections_of(parts)))
    assert list(sections) == parts
    assert sections == sections_of(parts)
    for number, part in enumerate(parts):
        assert sections.of(part.position) == sections.of(part.position + 99) == part
        assert (sections.number(part.position), sections.order(number)) == (number, part.order)
    assert sections.of(-1) is None


def test_interfaces_are_those_of_the_last_section():
    sections = sections_of([FileSection(0, "<"), FileSection(50, ">")])
    sections.describe(Interface(1, 96))
    assert list(sections) == [FileSection(0, "<"), FileSection(50, ">", [Interface(1, 96)])]


def test_sections_need_less_memory_than_their_file():
    """Law: a section with an interface, 48 bytes of a file at least, is held in less, whatever it says."""
    part = FileSection(0, "<", [Interface(1, 0)])
    tracemalloc.start()
    sections = FileSections()
    for number in range(100_000):
        part.position, part.interfaces[0] = 48 * number, replace(part.interfaces[0], snaplen=number, offset_ns=number)
        sections.add(part)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 48 * len(sections)
