"""The compiled readers are the plain ones, only faster."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture.fileset import FileSet
from tests.capture.drawn import captures, read
from tests.capture.handmade import START_NS, Weirds, pcap, save


@given(captures, st.integers(1, 400))
def test_the_compiled_readers_equal_the_plain_ones(capture, window):
    whole, reported, file = read(*capture)
    got, weirds, other = read(*capture, window, jit_after=0)
    assert got == whole
    assert sorted(weirds.seen) == sorted(reported.seen)
    assert other == file


def test_columns_are_arrays_from_where_it_pays(tmp_path):
    path = save(tmp_path, pcap([(START_NS + n * 1000, bytes(1000)) for n in range(300)]))
    kinds = [type(batch.time_ns) for batch in FileSet([path], Weirds(), 100_000).batches()]
    assert kinds[0] is list
    assert kinds[-1] is np.ndarray
    assert {type(batch.time_ns) for batch in FileSet([path], Weirds()).batches()} == {list}
