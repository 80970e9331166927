"""Merges the connection profiles of parts of a capture for the report on versions.

In: `ConnectionProfiles` of parts, and a tracker of them all. Out: one `ConnectionProfiles`. Law: it equals that of a pass over
the whole capture; where the order matters, it is that of the times of the responses.
"""

from collections.abc import Iterable

from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.facts.tracker import MetadataTracker
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profiles import ConnectionProfiles, began

NEVER_NS = 1 << 62


def detached(profiles: ConnectionProfiles) -> ConnectionProfiles:
    """The profiles of a part without its tracker, ready to be sent."""
    profiles.tracker = MetadataTracker()
    return profiles


def together(parts: Iterable[ConnectionProfiles], tracker: MetadataTracker) -> ConnectionProfiles:
    out = ConnectionProfiles(tracker)
    found: list[StoredProfile] = []
    offered: list[tuple[int, str, Server, Offer]] = []
    features: dict[Server, list[tuple[int, dict[str, object]]]] = {}
    for part in parts:
        found += part.profiles.stored()
        out.others += part.others
        out.malformed |= part.malformed
        out.left_out += part.left_out
        for server, offers in part.offers.items():
            for offer, example in offers.values():
                offered.append((responded_ns(part, example), example, server, offer))
        latest = latest_ns(part)
        for server, found_features in part.features.items():
            features.setdefault(server, []).append((latest.get(server, 0), found_features))
    out.others.sort(key=began)
    out.profiles.keep(sorted(found, key=first_ns))
    same: dict[bytes, Offer] = {}
    for _, example, server, offer in sorted(offered, key=lambda one: one[:3]):
        one = same.setdefault(offer.packed, offer)
        out.offers.setdefault(server, {}).setdefault(id(one), (one, example))
    for server, some in features.items():
        out.features[server] = max(some, key=lambda one: one[0])[1]
    return out


def first_ns(stored: StoredProfile) -> tuple[int, str]:
    """When a connection's first exchange was decided."""
    times = [max(step.requested_ns or 0, step.responded_ns or 0) for step in stored.open().opening]
    return (min(times) if times else NEVER_NS), stored.uid


def responded_ns(part: ConnectionProfiles, example: str) -> int:
    uid, _, number = example.rpartition(".")
    times = [probe.step.responded_ns for probe in part.profiles[uid].probes if probe.step.exchange == int(number)]
    return next((time for time in times if time is not None), NEVER_NS)


def latest_ns(part: ConnectionProfiles) -> dict[Server, int]:
    """Time of the last ApiVersions response of each server that names features."""
    out: dict[Server, int] = {}
    for stored in part.profiles.stored() if part.features else ():
        if stored.template.probes and stored.server in part.features:
            times = [probe.step.responded_ns or 0 for probe in stored.open().probes]
            out[stored.server] = max(out.get(stored.server, 0), *times)
    return out
