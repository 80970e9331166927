"""Bodies that go over from one batch to the next; the rest is searched by the laws in test_engine."""

from kcap import limits
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.support.wire import produce, produce_answer


def test_open_frames_and_heavy_bodies_go_over() -> None:
    """A batch that closes within a request, within an answer, and while small and large requests wait."""
    heavy = limits.FAST_PATH_MOVED_BODY + 1000
    tap = steady(6).client(produce(50, 1, bytes(heavy)) + produce(51, 1, b"y") + produce(52, 1, bytes(3 * heavy)), 900)
    for at in (50, 51, 52):
        tap.server(produce_answer(at), 9)
    tap.client(produce(53, 1)).server(produce_answer(53))
    for size in (1, 3, 7):
        assert agree(tap.segments, size, 4).fast_rows > 1
