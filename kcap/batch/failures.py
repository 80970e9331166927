"""Failures of kcap's own code while rows of an exchange are made: reported as a weird with the exchange's place.

In: a batch, a row of it, and what was being read. Out: a `decoder_failed`. Law: a failure costs only what was being read of
that exchange, never the run; the header columns of its row remain.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kcap.faults import Fault, fault_of
from kcap.model import ROW
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch
    from kcap.arrays.vectors import Int64s

Report = Callable[..., None]
"""As `Analyzer.report`."""


def report_failure(report: Report | None, batch: "RowBatch", at: int, what: str, error: Exception | Fault) -> None:
    """Reports that reading `what` of row `at` failed."""
    fault = error if isinstance(error, Fault) else fault_of(error)
    report_row(report, batch, at, WeirdKind.DECODER_FAILED, what, str(fault))


def report_row(report: Report | None, batch: "RowBatch", at: int, kind: WeirdKind, what: str, words: str) -> None:
    """Reports something about `what` of row `at`. The place is the response's first packet, or the request's."""
    if report is None:
        return
    row: dict[str, Any] = dict(zip(ROW, batch.rows[at], strict=True))
    side = "request" if row["response_first_ref"] is None else "response"
    uid = batch.identities[row["identity"]].uid
    ref, position = row[f"{side}_first_ref"] or 0, row[f"{side}_pos"] or 0
    report(kind, f"{what} of exchange {uid}.{row['exchange']}: {words}", ref, position, uid=uid)


FIRST: Final = "the first {} of a message"
WAITED: Final = "none, since those of other messages waited in {} bytes"


def report_cut(
    report: Report | None, batch: "RowBatch", rows: "Int64s", kind: WeirdKind, what: str, most: int, words: str = FIRST
) -> None:
    """Reports that a message of these rows has more of something than is read."""
    for at in rows.tolist():
        report_row(report, batch, at, kind, what, words.format(most))


class contained:  # noqa: N801 - reads like a word after `with`
    """Context manager around the reading of one exchange: exceptions are reported and suppressed."""

    __slots__ = ("_report",)

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self._report = report

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._report(error)
        return True


def of_row(report: Report | None, batch: "RowBatch", at: int, what: str) -> contained:
    """Guards the reading of `what` of a row."""
    return contained(lambda error: report_failure(report, batch, at, what, error))


def of_waiting(report: Report | None, uid: str, exchange: int, what: str) -> contained:
    """Guards the reading of `what` of a request that has no row yet."""

    def report_it(error: Exception) -> None:
        if report is not None:
            report(WeirdKind.DECODER_FAILED, f"{what} of exchange {uid}.{exchange}: {fault_of(error)}", uid=uid)

    return contained(report_it)
