"""Bodies of both kinds in one batch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.decode.interpreter import COMPLETE
from kcap.decode.programs import program_index
from kcap.fastpath.body_kernels import program_code
from kcap.fastpath.layout import KEYS, VERSIONS
from kcap.fastpath.projected import both_projected, programs
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_values import REQUEST, RESPONSE, UNKNOWN
from kcap.kafka.frames import PendingExchange
from tests.support.wire import produce, produce_answer


@given(
    st.lists(
        st.one_of(
            st.integers(UNKNOWN, 500), st.tuples(st.integers(0, KEYS - 1), st.integers(0, VERSIONS - 1), st.integers(0, 1))
        )
    )
)
def test_programs(noted: list[int | tuple[int, int, int]]) -> None:
    """A program stays what it is; a key, version and side become their program, or none."""
    codes = [program_code(*each) if isinstance(each, tuple) else each for each in noted]
    expected = [program_index(*each) if isinstance(each, tuple) else each for each in noted]
    assert programs(np.array(codes, np.int64)).tolist() == expected


def test_slots_of_the_fast_path_follow() -> None:
    bodies, exchange = BodyCollector(), PendingExchange(1, 0, 2, 1, "app", 0)
    mine, theirs = produce(1, -1)[17:], produce_answer(1, error=3)[8:]
    bodies.add(mine, 0, len(mine), program_index(0, 2, REQUEST), exchange)
    arena = np.frombuffer(b"xx" + theirs + b"yyyy", np.uint8)
    code = -2 - ((0 << 16 | 2) << 1 | RESPONSE)
    table = np.array([[0, 2, 0], [2, 2 + len(theirs), 0], [UNKNOWN, code, 7]], np.int64)
    gathered = bodies.arena
    batch = both_projected(bodies, table, arena, 2, 2 + len(theirs))
    assert batch.arena is gathered  # frames of the reference path that end together are as large as all that may be unfinished
    assert [batch.values(slot) is None for slot in range(3)] == [False, True, False]
    first, last = batch.values(0), batch.values(2)
    assert first is not None
    assert last is not None
    assert (first.status, last.status) == (COMPLETE, COMPLETE)
    assert bytes(batch.arena[batch.starts[2] : batch.ends[2]]) == theirs
