"""Reports the oddities that kernels found.

In: the kernels' table of oddities, and rows. Out: calls of `report`. Law: the calls equal those of `Framer` and `Pairing`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.frame_kernels import LATE, RESPONSE_HEAD, UNANSWERED
from kcap.fastpath.state import FastPathState
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.fastpath.export_state import Host

OF_RESYNCS = (WeirdKind.BOUNDARY_LOST, "server offset {}"), (WeirdKind.RESYNCED, "{} bytes passed over")
"""Kinds and details of oddities in a walk, by `layout.O_KIND`."""


def report_resyncs(state: FastPathState, host: "Host") -> None:
    """Reports the oddities of a walk before the reference path continues with one of these connections."""
    host.bodies.searched_bytes += int(state.meta[at.M_SEARCHED])
    state.meta[at.M_SEARCHED] = 0
    odd = state.large.arrays.odd[: state.meta[at.M_ODD]]
    uids: dict[int, str] = {}
    own: list[int] = []
    for slot in set(odd[:, at.O_SLOT].tolist()):
        conversation = state.conversations[slot]
        if conversation is None:
            own.append(slot)
        else:
            uids[slot] = host.constants(conversation).uid
    uids |= zip(own, state.uids(np.array(own, np.int64)))
    for kind, slot, value, ref, position in odd.tolist():
        what, detail = OF_RESYNCS[kind]
        host.report(what, detail.format(value), ref, position, uid=uids[slot])


def report_late(state: FastPathState, host: "Host", decided: int, left: Any) -> Any:
    """Reports the late responses among the rows from `decided` on, up to the first packet that may cause another report: one
    with an oddity, or the first one `left`. Returns the later rows, which have to be reported after that packet.
    """
    meta = state.meta
    rows = state.rows[decided : meta[at.M_ROWS]]
    late = rows[rows[:, at.R_FLAGS] & LATE != 0]
    late = late[np.argsort(late[:, at.R_ORDER], kind="stable")]
    odd = state.large.arrays.odd[: meta[at.M_ODD], at.O_REF] - meta[at.M_REF]
    others = meta[at.M_ORDER] + np.concatenate([left, odd[:1]])
    sooner = int(np.searchsorted(late[:, at.R_ORDER], others.min())) if len(others) else len(late)
    report_late_rows(host, late[:sooner])
    return late[sooner:]


def report_late_rows(host: "Host", late: Any) -> None:
    """Reports rows whose responses came late."""
    columns = at.R_IDENTITY, at.R_CORRELATION, at.R_RESPONSE + at.F_FIRST_REF, at.R_RESPONSE + at.F_LOW
    uids = {identity: host.identities.uid(identity) for identity in set(late[:, at.R_IDENTITY].tolist())}
    for identity, correlation, ref, position in late[:, columns].tolist():
        host.report(WeirdKind.LATE_RESPONSE, f"correlation id {correlation}", ref, position, uid=uids[identity])


def report_ends(state: FastPathState, host: "Host", first: int) -> None:
    """Reports what connections left incomplete at their end; their rows are those from `first` on. These are a response that
    did not end, which may be late as well, and requests without a response.
    """
    rows = state.rows[first : state.meta[at.M_ROWS]]
    for row in np.flatnonzero((rows[:, at.R_OUTCOME] >= UNANSWERED) | (rows[:, at.R_CUT] & at.UNENDED_RESPONSE != 0)).tolist():
        one = rows[row].tolist()
        uid = host.identities.uid(one[at.R_IDENTITY])
        if one[at.R_OUTCOME] >= UNANSWERED:
            request = one[at.R_REQUEST : at.R_RESPONSE]
            why = f"correlation id {one[at.R_CORRELATION]}: {at.REASONS[one[at.R_OUTCOME]]}"
            host.report(WeirdKind.UNANSWERED, why, request[at.F_FIRST_REF], request[at.F_LOW], uid=uid)
            continue
        response = one[at.R_RESPONSE :]
        if one[at.R_FLAGS] & LATE:
            report_late_rows(host, rows[row : row + 1])
        start, end, _ = state.bodies[:, one[at.R_RESPONSE_SLOT] - at.SLOT_BASE].tolist()
        bytes_of = f"{RESPONSE_HEAD + end - start} of {response[at.F_SIZE]} bytes, server offset {response[at.F_START]}"
        host.report(WeirdKind.FRAME_INCOMPLETE, bytes_of, response[at.F_FIRST_REF], response[at.F_LOW], uid=uid)
