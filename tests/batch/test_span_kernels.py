"""Spans of bytes as numbers of their distinct contents, by a kernel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.batch.span_kernels import number_spans
from kcap.kernels import SEED

SPANS = st.lists(st.one_of(st.just((-1, -1)), st.tuples(st.integers(0, 90), st.integers(0, 40))), max_size=40)


def numbered(data: bytes, more: bytes, spans: list[tuple[int, int]], seed: int = SEED) -> tuple[list[int], list[int]]:
    """The number of each span, and the first span of each number."""
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T.copy()
    numbers, firsts = np.empty((2, len(spans)), np.int64)
    arrays = np.frombuffer(data, np.uint8), np.frombuffer(more, np.uint8)
    table = np.zeros(2 << len(spans).bit_length(), np.int32)
    count = number_spans(*arrays, starts, ends, table, numbers, firsts, seed)
    return numbers.tolist(), firsts[:count].tolist()


@given(st.lists(st.sampled_from(b"ab"), min_size=60, max_size=90), st.lists(st.sampled_from(b"ab"), max_size=60), SPANS)
def test_equal_contents_have_one_number(data: list[int], more: list[int], places: list[tuple[int, int]]) -> None:
    """Law: of spans in both buffers, numbers are given by content, in the order in which contents come first."""
    whole = bytes(data + more)
    spans = []
    for start, size in places:
        limit = len(data) if start < len(data) else len(whole)
        spans.append((-1, -1) if start < 0 else (min(start, len(whole)), min(start + size, max(limit, start), len(whole))))
    contents = [None if start < 0 else whole[start:end] for start, end in spans]
    numbers, firsts = numbered(bytes(data), bytes(more), spans)
    known = list(dict.fromkeys(content for content in contents if content is not None))
    assert [known[number] if number >= 0 else None for number in numbers] == contents
    assert firsts == [contents.index(content) for content in known]


def test_many_different_contents_take_time_by_their_bytes() -> None:
    """A hundred thousand contents that differ in one byte: a comparison of all with all would take minutes."""
    data = b"".join(b"%08d" % at for at in range(100_000))
    spans = [(8 * at, 8 * at + 8) for at in range(100_000)]
    assert numbered(data, b"", spans + spans) == ([*range(100_000)] * 2, [*range(100_000)])
