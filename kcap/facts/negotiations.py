"""The versions that each connection used of each API, beside the versions that its broker offers.

In: batches of exchanges with their contexts. Out: an entry a connection and API. Law: the counts are those of the rows; an
entry's verdict is the highest of its rows' (see VERDICTS).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcap.analyzer import Identity
from kcap.facts.api_versions import Offer, Software
from kcap.facts.version_verdicts import NONE, OK, UNNEGOTIATED, VERDICTS, final_verdict

if TYPE_CHECKING:
    from kcap.batch.columns import BatchColumns
    from kcap.facts.tracker import MetadataTracker, RowContext


@dataclass(slots=True)
class Negotiation:
    """One connection and API."""

    identity: Identity
    key: int
    software: Software | None = None
    offer: Offer | None = None
    """The offer that the connection received, None without one."""
    versions: dict[int, Counter[int]] = field(default_factory=dict)
    """Version -> verdict -> number of requests."""

    def final(self, tracker: "MetadataTracker") -> tuple[Offer | None, str | None]:
        """The offer that counts, and the verdict, with today's facts."""
        offer = self.offer or tracker.offers.get((self.identity.server_ip, self.identity.server_port))
        highest = NONE
        for version, counts in self.versions.items():
            for verdict in counts:
                if verdict in (NONE, OK, UNNEGOTIATED):
                    verdict = final_verdict(verdict, offer, self.key, version, tracker.used, self.software)
                highest = max(highest, verdict)
        return offer, None if highest == NONE else VERDICTS[highest]


class Negotiations:
    """The entries so far."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], Negotiation] = {}

    def take(self, columns: "BatchColumns", context: "RowContext") -> None:
        """Takes a batch, with the verdicts of its rows."""
        assert context.verdicts is not None
        keys, versions = columns.number("api_key"), columns.number("api_version")
        here = keys.mask() & versions.mask()
        parts = columns.number("identity").values, keys.values, versions.values, context.verdicts.numbers, context.state
        for place, key, version, verdict, state in zip(*(part[here].tolist() for part in parts)):
            identity, known = columns.identities[place], context.states[state]
            entry = self.entries.get((identity.uid, key))
            if entry is None:
                entry = self.entries[identity.uid, key] = Negotiation(identity, key)
            entry.software, entry.offer = known.software, known.offer
            entry.versions.setdefault(version, Counter())[verdict] += 1
