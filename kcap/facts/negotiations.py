"""Which versions a connection used of each API, beside what its broker offers.

In: batches of exchanges. Out: an entry a connection and API. Law: the counts are those of the rows; an entry's verdict is the
worst of its rows'.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kcap.analyzer import Identity
from kcap.facts.api_versions import Offer, Software
from kcap.facts.version_verdicts import NONE, OK, UNNEGOTIATED, VERDICTS, final_verdict

if TYPE_CHECKING:
    from kcap.facts.tracker import MetadataTracker
    from kcap.table.exchanges import Exchanges


@dataclass(slots=True)
class Negotiation:
    """One connection and API."""

    identity: Identity
    key: int
    software: Software | None = None
    offer: Offer | None = None
    """What the connection was told; None where it did not ask."""
    versions: dict[int, Counter[int]] = field(default_factory=dict)
    """Version -> verdict -> how often."""

    def final(self, learner: "MetadataTracker") -> tuple[Offer | None, str | None]:
        """The offer that holds, and the worst verdict, as the learner knows it by now."""
        offer = self.offer or learner.offers.get((self.identity.server_ip, self.identity.server_port))
        worst = NONE
        for version, counts in self.versions.items():
            for verdict in counts:
                if verdict in (NONE, OK, UNNEGOTIATED):
                    verdict = final_verdict(verdict, offer, self.key, version, learner.used, self.software)
                worst = max(worst, verdict)
        return offer, None if worst == NONE else VERDICTS[worst]


class Negotiations:
    """The entries so far."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], Negotiation] = {}

    def take(self, rows: "Exchanges", learner: "MetadataTracker") -> None:
        """Takes a batch."""
        found, number = learner.judge.judged(rows)
        keys, versions = rows.number("api_key"), rows.number("api_version")
        here = keys.mask() & versions.mask()
        columns = rows.number("identity").values, keys.values, versions.values, found[number], rows.told.state
        for place, key, version, verdict, state in zip(*(column[here].tolist() for column in columns)):
            identity, known = rows.batch.identities[place], rows.told.known[state]
            entry = self.entries.get((identity.uid, key))
            if entry is None:
                entry = self.entries[identity.uid, key] = Negotiation(identity, key)
            entry.software, entry.offer = known.software, known.offer
            entry.versions.setdefault(version, Counter())[verdict] += 1
