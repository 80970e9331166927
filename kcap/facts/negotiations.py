"""The versions that each connection used of each API, beside the versions that its broker offers.

In: batches of exchanges with their contexts. Out: one entry per connection and API: the first requested version, the broker's
offer, the first error, the version chosen in the end. Law: the counts are those of the rows; an entry's verdict is the highest
of its rows' verdicts (see VERDICTS).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kcap import limits
from kcap.facts.api_versions import Offer, Software
from kcap.facts.message_json import digest, read
from kcap.facts.version_verdicts import NONE, VERDICTS, final_verdict
from kcap.identities import Identity
from kcap.kafka.frames import NO_BODY
from kcap.schema.quirks import API_VERSIONS, UNSUPPORTED_VERSION, response_version
from kcap.schema.registry import RESPONSE

if TYPE_CHECKING:
    from kcap.batch.columns import BatchColumns
    from kcap.facts.tracker import MetadataTracker, RowContext


@dataclass(slots=True)
class Negotiation:
    """The negotiation of one API on one connection."""

    identity: Identity
    key: int
    software: Software | None = None
    offer: Offer | None = None
    """The offer that the connection received; None without one."""
    versions: dict[int, Counter[int]] = field(default_factory=dict)
    """Version -> verdict -> number of requests."""
    step: int = 0
    """Number of the first exchange."""
    requested_ns: int = 0
    """Time of its request in ns."""
    client_id: str | None = None
    """Client id of the first request."""
    requested: int = 0
    """Version of the first request."""
    chosen: tuple[int, int] | None = None
    """Number and version of the last request with a response other than UNSUPPORTED_VERSION."""
    error: tuple[int, int] | None = None
    """Number and error code of the first response with an error."""
    features: tuple[int, tuple[str, ...]] = (0, ())
    """Number of the last ApiVersions exchange with finalized features, and the features with their levels."""

    def final(self, tracker: "MetadataTracker") -> tuple[Offer | None, str | None]:
        """The offer that counts, and the verdict, with the present facts."""
        server, offers = (self.identity.server_ip, self.identity.server_port), tracker.offers
        offer, common = self.offer or offers.at(server, self.requested_ns), offers.common(server)
        highest = NONE
        for version, counts in self.versions.items():
            for verdict in counts:
                found = final_verdict(verdict, offer, common, self.key, version, used=tracker.used, software=self.software)
                highest = max(highest, found)
        return offer, None if highest == NONE else VERDICTS[highest]


class Negotiations:
    """The entries so far."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], Negotiation] = {}
        self._features: dict[bytes, tuple[str, ...]] = {}

    def take(self, columns: "BatchColumns", context: "RowContext") -> None:
        """Observes a batch, with the verdicts of its rows."""
        assert context.verdicts is not None
        keys, versions = columns.number("api_key"), columns.number("api_version")
        here = keys.mask() & versions.mask()
        errors = columns.error_code
        parts = (
            columns.number("identity").values, keys.values, versions.values, context.verdicts.numbers, context.state,
            columns.number("exchange").values, errors.filled(0), columns.is_outcome("answered"),
            columns.number("request_first_ns").filled(), np.arange(columns.size),
        )  # fmt: skip
        names, name = columns.rows.codes("client_id")
        slots = columns.number("response_slot").filled(NO_BODY)
        lists = (part[here].tolist() for part in parts)
        for place, key, version, verdict, state, exchange, error, answered, requested_ns, at in zip(*lists):
            identity, known = columns.identities[place], context.states[state]
            entry = self.entries.get((identity.uid, key))
            if entry is None:
                entry = self.entries[identity.uid, key] = Negotiation(identity, key)
            if not entry.versions or exchange < entry.step:
                entry.step, entry.requested, entry.requested_ns = exchange, version, requested_ns
                entry.client_id = names[int(name[at])]
            entry.software, entry.offer = known.software, known.offer
            entry.versions.setdefault(version, Counter())[verdict] += 1
            if answered and error != UNSUPPORTED_VERSION and (entry.chosen is None or exchange > entry.chosen[0]):
                entry.chosen = exchange, version
            if error and (entry.error is None or exchange < entry.error[0]):
                entry.error = exchange, error
            if key == API_VERSIONS and answered and exchange > entry.features[0]:
                found = self._finalized(columns, int(slots[at]), version)
                entry.features = (exchange, found) if found else entry.features

    def _finalized(self, columns: "BatchColumns", slot: int, version: int) -> tuple[str, ...]:
        """The finalized features in the body of an ApiVersions response; equal bodies are read once."""
        (start,), (end,) = columns.spans(np.array([slot], np.int64))
        data = columns.body(start, end)
        name = digest(version, data)
        found = self._features.get(name)
        if found is None:
            if len(self._features) >= limits.ANSWERS_KEPT:
                self._features.clear()
            value = read(data, API_VERSIONS, response_version(API_VERSIONS, version, data[:2]), RESPONSE) if data else {}
            some = (value.get("finalizedFeatures") or ())[: limits.OFFERED_FEATURES_MAX]
            found = self._features[name] = tuple(f"{one.get('name')}={one.get('maxVersionLevel')}" for one in some)
        return found
