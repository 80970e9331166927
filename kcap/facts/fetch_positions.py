"""The offset from which each partition of a fetch session is read, from the session's requests (KIP-227).

In: the Fetch exchanges of a capture, in order: session ids of request and response, the offsets that the request names. Out:
the offsets of the session after the request, including partitions that this request did not name. Law: an offset is one that a
request of this session named; a session whose beginning was not captured has the offsets named since. Can be pickled.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Final

from kcap.limits import FETCH_PARTITIONS_KEPT, FETCH_SESSIONS_KEPT

FIRST_EPOCH: Final = 0
"""Epoch of a full request for a new session; -1 closes one (FetchMetadata)."""

Partition = tuple[bytes, int]
"""Name or id of a topic, and a partition's number."""
Session = tuple[str, int]
"""Connection and session id."""


def keeps(epoch: int, answered_id: int | None) -> bool:
    """Whether a request belongs to a session, or begins one."""
    return epoch > FIRST_EPOCH or (epoch == FIRST_EPOCH and bool(answered_id))


class Positions:
    """The sessions of a capture."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Session, dict[Partition, int]] = OrderedDict()
        self._kept = 0

    def fetched(
        self, connection: str, session_id: int, epoch: int, named: Mapping[Partition, int], answered_id: int | None
    ) -> Mapping[Partition, int]:
        """Observes an exchange: `named` are the offsets of its request, `answered_id` the session of its response or None."""
        if epoch <= FIRST_EPOCH:
            self._drop((connection, session_id))
            if epoch == FIRST_EPOCH and answered_id:
                self._keep((connection, answered_id), dict(named))
            return named
        session = connection, session_id
        held = self._sessions.get(session)
        if held is None:
            held = {}
            self._keep(session, held)
        self._sessions.move_to_end(session)
        before = len(held)
        held.update(named)
        self._kept += len(held) - before
        self._bound(session)
        return held

    def _keep(self, session: Session, held: dict[Partition, int]) -> None:
        self._drop(session)
        self._sessions[session] = held
        self._kept += len(held)
        self._bound(session)

    def _drop(self, session: Session) -> None:
        gone = self._sessions.pop(session, None)
        if gone is not None:
            self._kept -= len(gone)

    def _bound(self, newest: Session) -> None:
        """Removes the least recently used sessions; of a single session that is too large, the partitions named first."""
        while len(self._sessions) > (1 if self._kept > FETCH_PARTITIONS_KEPT else FETCH_SESSIONS_KEPT):
            self._drop(next(session for session in self._sessions if session != newest))
        more = self._kept - FETCH_PARTITIONS_KEPT
        if more > 0:
            held = self._sessions[newest]
            for partition in list(islice(held, more + FETCH_PARTITIONS_KEPT // 8)):  # finding the start of a dict is slow
                del held[partition]
            self._kept = len(held)
