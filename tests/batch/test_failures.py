"""What failed on an exchange is reported with the exchange's name and place."""

from typing import Any

import pytest

from kcap.batch.failures import of_row, of_waiting, report_failure
from kcap.faults import Fault
from kcap.weird import WeirdKind
from tests.table.handmade import UIDS, batch, row, unanswered


def test_the_place_is_that_of_the_answer_or_else_of_the_request() -> None:
    reported: list[Any] = []
    rows = batch(row(response_pos=50, request_pos=20), unanswered(exchange=2, identity=1, request_pos=20))
    for at in (0, 1):
        report_failure(lambda *what, uid: reported.append((*what, uid)), rows, at, "records", Fault("KeyError in x.py:1"))
    assert reported == [
        (WeirdKind.DECODER_FAILED, f"records of exchange {UIDS[0]}.1: KeyError in x.py:1", 3, 50, UIDS[0]),
        (WeirdKind.DECODER_FAILED, f"records of exchange {UIDS[1]}.2: KeyError in x.py:1", 1, 20, UIDS[1]),
    ]


def test_what_is_raised_inside_goes_no_further() -> None:
    reported: list[str] = []
    report = lambda _kind, detail, *_place, uid: reported.append(f"{uid} {detail}")  # noqa: E731
    with of_row(report, batch(row()), 0, "a name"):
        raise ValueError
    with of_waiting(report, "C9", 4, "a name"):
        raise ValueError
    with of_row(None, batch(row()), 0, "a name"):
        raise ValueError
    assert reported == [f"{UIDS[0]} a name of exchange {UIDS[0]}.1: ValueError", "C9 a name of exchange C9.4: ValueError"]


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt), of_row(None, batch(row()), 0, "a name"):
        raise KeyboardInterrupt
