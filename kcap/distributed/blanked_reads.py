"""Connections of which bytes were looked at that had been blanked on their way.

In: which segments of a share were blanked, and whose bytes decided more than a message's own fields do: a search for a frame
boundary, a look at what a connection is, two copies held against each other, KRaft's log. Out: numbers of flows. Law: where it
names none, the blanked bytes decided nothing; it may name one too many.
"""

from collections import deque
from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING

import numpy as np

from kcap.distributed.flow_shards import keys_of_lists
from kcap.limits import STRIPPED_KNOWN
from kcap.model import REF_FILE_SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.analyzer import Identity
    from kcap.distributed.stripped_segments import StrippedSegments
    from kcap.net.tcp import Connection

    Int64s = NDArray[np.int64]


class BlankedReadTracker:
    """Those of one share."""

    def __init__(self) -> None:
        self._flows: set[int] = set()
        self._blanked: set[bytes] = set()
        """Flow keys of directions of which something is blank."""
        self._known: deque[Int64s] = deque()
        """References to packets of which something is blank, in rising order, chunk by chunk."""
        self._forgotten: dict[int, int] = {}
        """File -> the last of its references that is not among these any more."""

    def blanked(self, file: int, numbers: "Int64s", stripped: "StrippedSegments") -> None:
        """A chunk comes whose packets have these numbers."""
        where = np.flatnonzero(stripped.blanked)
        if not len(where):
            return
        self._blanked.update(stripped.flows[at] for at in np.unique(stripped.flow[where]).tolist())
        self._known.append((file << REF_FILE_SHIFT) + numbers[where])
        if len(self._known) > STRIPPED_KNOWN:
            last = int(self._known.popleft()[-1])
            self._forgotten[last >> REF_FILE_SHIFT] = max(last, self._forgotten.get(last >> REF_FILE_SHIFT, 0))

    def searched(self, ref: int, connection: "Connection") -> None:
        """A packet's bytes, whatever they are, decided something."""
        if self._blanked.isdisjoint(connection.flows):
            return
        if ref <= self._forgotten.get(ref >> REF_FILE_SHIFT, -1) or any(has(refs, ref) for refs in self._known):
            self._flows.update(keys_of_lists([connection.flows[0]]).tolist())

    def read_logs(self, identities: "Iterable[Identity]") -> None:
        """KRaft's log was read on these connections."""
        some = (
            {(one.client_ip, one.client_port, one.server_ip, one.server_port) for one in identities} if self._blanked else set()
        )
        blanked = set(keys_of_lists(list(self._blanked)).tolist())
        for client, client_port, server, server_port in some:
            ports = client_port.to_bytes(2, "big") + server_port.to_bytes(2, "big")
            key = keys_of_lists([ip_address(client).packed + ip_address(server).packed + ports]).tolist()[0]
            if key in blanked:
                self._flows.add(key)

    @property
    def flows(self) -> bytes:
        """Numbers of flows (`kcap.distributed.flow_shards`), 8 bytes each in rising order."""
        return np.array(sorted(self._flows), np.int64).tobytes()


def has(refs: "Int64s", ref: int) -> bool:
    """Whether a sorted array has a number."""
    at = int(np.searchsorted(refs, ref))
    return at < len(refs) and int(refs[at]) == ref
