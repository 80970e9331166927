"""Latency over time."""

import numpy as np
import pytest

from kcap.tui.capture_model import CaptureModel
from kcap.tui.row_index import RowIndex
from kcap.tui.timeline import Timeline, timeline


@pytest.mark.parametrize("steps", [1, 7, 60, 5000])
@pytest.mark.parametrize("text", ["", "api == Fetch"])
def test_each_exchange_counts_once(book: CaptureModel, steps: int, text: str) -> None:
    """Law: counts, the slowest and the failures of a step are those of the exchanges that its filter lets pass."""
    book.narrow(text)
    made = timeline(book.snapshot(), book.sift(), steps)
    assert made is not None
    rows = book.exchanges().to_pylist()
    assert sum(made.counts) == len(rows)
    assert len(made.counts) == len(made.slowest) == steps
    reported = [(value or 0) for value in made.slowest]
    wanted = max(row["latency_ns"] or 0 for row in rows if not row["long_poll_ns"])
    assert max(reported) == wanted
    whole = book.exchanges()
    for at in {0, steps // 2, steps - 1}:
        book.narrow(f"({text}) && {made.within(at, at)}" if text else made.within(at, at))
        inside = book.exchanges().to_pylist()
        assert len(inside) == made.counts[at]
        polls = [row["latency_ns"] for row in inside if row["latency_ns"] and not row["long_poll_ns"]]
        assert made.slowest[at] == (max(polls) if polls else None)
        assert made.failed[at] == any(
            row["error"] not in (None, "NONE") or row["outcome"] in ("unanswered", "orphan") for row in inside
        )
    assert whole.num_rows == len(rows)


def test_the_picture() -> None:
    made = Timeline(1_795_246_898_000_000, 1_000_000, [1e6, None, None, 1e9], [3, 0, 2, 1], [False, False, True, False])
    assert "".join(sign for sign, _ in made.line(None, None)) == "▁ ·█"
    assert [tone for _, tone in made.line((0, 1), (3, 3))] == ["key", "key", "bad", "cell"]
    assert made.describe(0) == "07:41:38.000 +1.00s: 3 exchanges, slowest 1.00ms"
    assert (made.place(0), made.place(1_795_246_900_500_000), made.place(1 << 60)) == (0, 2, 3)


def test_no_rows(book: CaptureModel) -> None:
    assert timeline(RowIndex((), book.snapshot().schema), None, 10) is None
    assert timeline(book.snapshot(), np.zeros(0, np.int64), 10) is None
