"""Which partitions a fetch really asks for: fetch sessions played again (KIP-227).

In: the Fetch exchanges of one connection, in order: session id and epoch of request and answer, topics with partitions that the
request names and forgets. Out: the partitions that each request polls. Law: for as long as all requests were seen, what is
polled is what the broker's own session holds; where the session began before the capture, the part that is known, and `whole`
is False.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kcap.limits import FETCH_PARTITIONS_KEPT, SESSIONS_KEPT

NO_SESSION: Final = 0
FULL: Final = 0
CLOSE: Final = -1
"""Session id and epoch of a request: (0, -1) full without a session, (0, 0) full and makes one, (id, -1) closes, (id, n) adds
to session id."""

Partition = tuple[str, int]
"""Name or id of a topic, and a partition's number."""


@dataclass(slots=True)
class Session:
    """What a session holds."""

    partitions: dict[Partition, None] = field(default_factory=dict)
    """In the order in which they were added."""
    whole: bool = True
    """Its full request was seen, and every request since."""
    epoch: int = 1
    """Of the next request."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What one request polls."""

    partitions: tuple[Partition, ...]
    whole: bool


class FetchSessions:
    """The sessions of one connection; a picklable value."""

    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}
        self._kept = 0

    def polled(self, session_id: int, epoch: int, named: Iterable[Partition], forgotten: Iterable[Partition] = ()) -> Polled:
        """Takes a request."""
        if session_id == NO_SESSION or epoch == FULL:
            self._drop(session_id)
            return Polled(tuple(dict.fromkeys(named)), True)
        if epoch == CLOSE:
            # Closes the session; what it names is a full fetch (FetchMetadata.isFull).
            self._drop(session_id)
            return Polled(tuple(dict.fromkeys(named)), True)
        session = self.sessions.get(session_id)
        if session is None:
            session = self._keep(session_id, Session(whole=False, epoch=epoch))
        if epoch != session.epoch:
            session.whole = False
        before = len(session.partitions)
        for partition in forgotten:
            session.partitions.pop(partition, None)
        session.partitions.update(dict.fromkeys(named))
        self._kept += len(session.partitions) - before
        if self._kept > FETCH_PARTITIONS_KEPT:
            self.sessions = {session_id: session}
            self._kept = len(session.partitions)
        session.epoch = next_epoch(epoch)
        return Polled(tuple(session.partitions), session.whole)

    def answered(self, session_id: int, epoch: int, named: Iterable[Partition], answer_id: int, error: int = 0) -> None:
        """Takes the answer to a request: a full one may have made a session, an error ends the one it was for."""
        if error:
            self._drop(session_id)
        elif epoch == FULL and answer_id != NO_SESSION:
            self._keep(answer_id, Session(dict.fromkeys(named)))

    def _keep(self, session_id: int, session: Session) -> Session:
        self._drop(session_id)
        if len(self.sessions) >= SESSIONS_KEPT:
            self._drop(next(iter(self.sessions)))
        self.sessions[session_id] = session
        self._kept += len(session.partitions)
        return session

    def _drop(self, session_id: int) -> None:
        gone = self.sessions.pop(session_id, None)
        if gone is not None:
            self._kept -= len(gone.partitions)


def next_epoch(epoch: int) -> int:
    """Epochs go up and from the largest back to 1 (FetchMetadata.nextEpoch)."""
    return 1 if epoch == (1 << 31) - 1 else epoch + 1
