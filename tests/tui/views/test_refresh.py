"""When a view looks again: at once for what cannot wait, else at most a quarter of the time."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.tui.views.refresh import SHARE, Pace


def test_the_first_look_and_what_cannot_wait() -> None:
    pace = Pace()
    assert pace.due(0, "a", 0.0)
    pace.begin(0, "a")
    assert not pace.due(5, "b", 0.1), "one look at a time"
    pace.end(0.0, 2.0)
    assert not pace.due(0, "a", 100.0), "nothing is new"
    assert not pace.due(5, "a", 2.0 + SHARE * 2.0 - 0.1)
    assert pace.due(5, "a", 2.0 + SHARE * 2.0)
    assert pace.due(0, "b", 2.1), "another filter"


@given(took=st.lists(st.floats(0.01, 5), min_size=1, max_size=20))
def test_looking_takes_at_most_a_quarter_of_the_time(took: list[float]) -> None:
    """Law: with rows coming all the time, the time spent on looks stays below a quarter once the first is over."""
    pace, now, spent = Pace(), 0.0, 0.0
    pace.begin(0, None)
    pace.end(0.0, 0.0)
    for rows, each in enumerate(took, 1):
        while not pace.due(rows, None, now):
            now += 0.25
        pace.begin(rows, None)
        pace.end(now, now + each)
        now, spent = now + each, spent + each
    assert spent - took[-1] <= now / (SHARE + 1) + 1e-6
