"""What the service time of an exchange was spent on, as far as the wire tells: a long poll, a throttle, a mute.

In: the columns of a batch of exchanges, and until when connections are muted. Out: three columns of nanoseconds. Law: each is 0
or more, and together they are no more than the service time; they are null where that is, and where the message that would tell
was not read.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.arrays.vectors import Vector
from kcap.limits import MUTE_CLOCK_NS
from kcap.schema.quotas import mutes
from kcap.schema.registry import api_key

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.table.exchanges import Exchanges

MS: Final = 1_000_000
FETCH, SHARE_FETCH = (api_key(name) for name in ("Fetch", "ShareFetch"))


class ServiceParts:
    """The three columns of one batch."""

    def __init__(self, rows: "Exchanges", muted_until: dict[str, int]) -> None:
        self.rows = rows
        self.service = rows.service()
        self.spent: Int64s = np.where(self.service.mask(), self.service.values, 0)
        """Service time that is not yet accounted for."""
        self._muted: Int64s = np.zeros(rows.size, np.int64)
        self._throttled: Int64s = np.zeros(rows.size, np.int64)
        self._told = rows.throttle()
        throttle = self._told.filled()
        if throttle.any() or muted_until:
            self._quotas(throttle, muted_until)
        self.spent = self.spent - self._muted - self._throttled

    def _quotas(self, throttle: "Int64s", muted_until: dict[str, int]) -> None:
        """Goes through the exchanges of the connections that are, or were, over their quota."""
        rows = self.rows
        identity = rows.number("identity").values
        touched = np.zeros(len(rows.batch.identities), np.bool_)
        touched[identity[throttle > 0]] = True
        if muted_until:
            touched |= np.array([known.uid in muted_until for known in rows.batch.identities], np.bool_)
        places = np.flatnonzero(touched[identity] & self._told.mask() | touched[identity] & self.service.mask())
        order = places[np.lexsort((rows.number("exchange").values[places], identity[places]))]
        answered = rows.number("response_first_ns")
        columns = (order, identity[order], throttle[order], self.spent[order], answered.filled(-1)[order],
                   rows.number("api_key").filled(-1)[order], rows.number("api_version").filled(-1)[order])  # fmt: skip
        for at, number, asked, service, answered_ns, key, version in zip(*(column.tolist() for column in columns)):
            uid = rows.batch.identities[number].uid
            until = muted_until.get(uid)
            muted = 0
            if until is not None and answered_ns >= 0:
                if answered_ns >= until - MUTE_CLOCK_NS:
                    muted = self._muted[at] = max(0, min(until, answered_ns) - (answered_ns - service))
                # an answer that came earlier shows a broker that does not mute
                del muted_until[uid]
            if not asked or key < 0:
                continue
            if not mutes(key, version) and service - muted >= (asked - 1) * MS:  # counted in whole milliseconds
                self._throttled[at] = min(asked * MS, service - muted)
            elif answered_ns >= 0:
                muted_until[uid] = answered_ns + asked * MS

    def muted(self) -> Vector:
        """The broker's silence after an earlier throttle (KIP-219)."""
        return Vector(self._muted, self.service.valid)

    def throttled(self) -> Vector:
        """Throttle inside the latency: the broker is older than KIP-219."""
        return Vector(self._throttled, self.service.valid).where(self._told.mask())

    def long_poll(self) -> Vector:
        """Waiting for min_bytes: of a fetch that got fewer, up to its max_wait_ms."""
        rows = self.rows
        found = Vector(np.zeros(rows.size, np.int64), self.service.valid)
        keys = rows.number("api_key")
        polls = ((keys.values == FETCH) | (keys.values == SHARE_FETCH)) & keys.mask()
        if not polls.any():
            return found
        got, least, longest = (
            rows.response.slot("records_bytes"),
            rows.request.slot("min_bytes"),
            rows.request.slot("max_wait_ms"),
        )
        waited = np.minimum(self.spent, np.maximum(longest.values, 0) * MS)
        values = np.where(polls & (got.values < least.values), waited, 0)
        known = ~polls | (got.mask() & least.mask() & longest.mask())
        return Vector(values, found.valid).where(known)
