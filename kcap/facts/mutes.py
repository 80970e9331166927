"""Throttles within service times: the throttle itself for brokers before KIP-219, the broker's silence after a throttle since
then.

In: the columns of a batch, and until when connections are muted. Out: two columns of nanoseconds. Law: each entry is 0 or more,
and their sum is at most the row's service time; the size of the batches changes nothing. Can be pickled.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.limits import MUTE_CLOCK_NS
from kcap.schema.quotas import mutes

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.batch.columns import BatchColumns

MS: Final = 1_000_000


class QuotaMutes:
    """The connections that are, or were, over their quota."""

    def __init__(self) -> None:
        self.until: dict[str, int] = {}
        """Connection -> end of its muted time, in nanoseconds since the epoch."""

    def forget(self, before_ns: int) -> None:
        """Forgets muted times that ended before a time."""
        self.until = {uid: until for uid, until in self.until.items() if until > before_ns}

    def observe(self, columns: "BatchColumns") -> "tuple[Int64s, Int64s]":
        """Observes a batch; returns each row's silence after an earlier throttle, and its throttle before the response."""
        muted, throttled = np.zeros(columns.size, np.int64), np.zeros(columns.size, np.int64)
        throttle = columns.throttle.filled()
        if throttle.any() or self.until:
            self._walk(columns, throttle, muted, throttled)
        return muted, throttled

    def _walk(self, columns: "BatchColumns", throttle: "Int64s", muted: "Int64s", throttled: "Int64s") -> None:
        """Processes the exchanges of throttled connections in order."""
        uids, identity, service = columns.constants.uids, columns.number("identity").values, columns.service
        spent: Int64s = np.where(service.mask(), service.values, 0)
        touched = np.zeros(len(uids), np.bool_)
        touched[identity[throttle > 0]] = True
        if self.until:
            touched |= np.array([uid in self.until for uid in uids], np.bool_)
        places = np.flatnonzero(touched[identity] & (columns.throttle.mask() | service.mask()))
        order = places[np.lexsort((columns.number("exchange").values[places], identity[places]))]
        parts = (order, identity[order], throttle[order], spent[order], columns.number("response_first_ns").filled(-1)[order],
                 columns.number("api_key").filled(-1)[order], columns.number("api_version").filled(-1)[order])  # fmt: skip
        for at, number, throttle_ms, time, responded_ns, key, version in zip(*(part.tolist() for part in parts)):
            uid = uids[number]
            until = self.until.get(uid)
            silence = 0
            if until is not None and responded_ns >= 0:
                if responded_ns >= until - MUTE_CLOCK_NS:
                    silence = muted[at] = max(0, min(until, responded_ns) - (responded_ns - time))
                # An earlier response shows that the broker does not mute.
                del self.until[uid]
            if not throttle_ms or key < 0:
                continue
            if not mutes(key, version) and time - silence >= (throttle_ms - 1) * MS:  # counted in whole milliseconds
                throttled[at] = min(throttle_ms * MS, time - silence)
            elif responded_ns >= 0:
                self.until[uid] = responded_ns + throttle_ms * MS
