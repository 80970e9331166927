"""Which version of each API a client library settles on with a broker release, and what a lower version lacks.

In: a library with its version, or the versions that a capture showed; the ranges of a release or of a broker. Out: one version
per API and broker, and what is lost or gained between two brokers. Law: a recorded connection used the version that its library
settles on, or one below it that the library is known to choose (a test has these and compares recordings with it); an API that
the table of a library lacks has no version.

A negotiating client uses, with each broker separately, the highest version that both have (KIP-35). During a rolling upgrade
there are brokers of both releases, and it uses two versions. Facts: Kafka's definitions for Java clients, recordings for
others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kcap.errors import UsageError
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.libraries import IMPLEMENTED, JAVA, PROFILES, family_of
from kcap.reports.versions.readiness import java_release, numbers
from kcap.schema.facts import Versions, apis
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_name
from kcap.schema.releases import accepts, advertised, line, taken

Row = dict[str, Any]
CLIENT_LISTENER: Final = "broker"
DATA: Final = (0, 1)
"""Produce and Fetch: every client needs at least one of these."""
MEANINGS: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "Produce": (
        (2, "no time of append in the response"), (3, "no record headers, idempotence or transactions (message format 2)"),
        (6, "the throttle is inside the latency (before KIP-219)"), (7, "no zstd (KIP-110)"),
        (8, "no error for a single record (KIP-467)"), (10, "no new leader in error responses (KIP-951)"),
        (12, "no transactions of version 2 (KIP-890)"), (13, "topic names in place of ids (KIP-516)"),
    ),
    "Fetch": (
        (4, "no read_committed, and brokers convert records down to an older format"), (7, "no fetch sessions (KIP-227)"),
        (8, "the throttle is inside the latency (before KIP-219)"), (9, "no leader epoch fencing (KIP-320)"),
        (10, "no zstd (KIP-110)"), (11, "no fetching from the closest replica (KIP-392)"),
        (12, "no truncation found by fetching (KIP-595)"), (13, "topic names in place of ids (KIP-516)"),
        (16, "no new leader in error responses (KIP-951)"),
    ),
    "ListOffsets": (
        (1, "offsets by log segment only, no timestamps"), (2, "no isolation level"), (4, "no leader epoch fencing (KIP-320)"),
        (7, "no offset of the largest timestamp (KIP-734)"), (8, "no earliest local offset (KIP-405)"),
    ),
    "Metadata": (
        (1, "no controller id and no racks"), (2, "no cluster id"), (4, "asking for a topic may create it"),
        (7, "no leader epochs (KIP-320)"), (10, "no topic ids (KIP-516)"),
    ),
    "OffsetCommit": ((2, "no retention time of its own"), (6, "no leader epochs (KIP-320)"),
                     (7, "no static membership (KIP-345)")),
    "OffsetFetch": ((2, "no request for all partitions"), (5, "no leader epochs (KIP-320)"),
                    (7, "no waiting for open transactions (KIP-447)"), (8, "one group a request (KIP-709)")),
    "FindCoordinator": ((1, "no coordinators of transactions"), (4, "one coordinator a request (KIP-699)")),
    "JoinGroup": ((1, "one timeout for session and rebalance (before KIP-62)"), (4, "members join without an id (KIP-394)"),
                  (5, "no static membership (KIP-345)")),
    "SyncGroup": ((3, "no static membership (KIP-345)"),),
    "Heartbeat": ((3, "no static membership (KIP-345)"),),
    "LeaveGroup": ((3, "no static membership (KIP-345)"),),
    "InitProducerId": ((3, "a producer cannot recover from errors by a new epoch (KIP-360)"),),
    "EndTxn": ((5, "no transactions of version 2 (KIP-890)"),),
    "TxnOffsetCommit": ((3, "no fencing of zombies by generation (KIP-447)"), (5, "no transactions of version 2 (KIP-890)")),
    "ApiVersions": ((3, "the broker does not learn the software's name (KIP-511)"),),
    "SaslHandshake": ((1, "raw tokens: a failed login closes without an error (before KIP-152)"),),
    "SaslAuthenticate": ((1, "no re-authentication (KIP-368)"),),
    "CreateTopics": ((4, "no default partition counts (KIP-464)"), (5, "no configs in the response (KIP-525)")),
    "DescribeCluster": ((1, "no addresses of controllers (KIP-919)"),),
}  # fmt: skip
"""API -> first version that has a feature, and what is missing below it."""
ABSENT: Final = {
    "ConsumerGroupHeartbeat": "group.protocol=consumer does not work (KIP-848)",
    "ShareGroupHeartbeat": "share groups do not work (KIP-932)", "ShareFetch": "share groups do not work (KIP-932)",
    "StreamsGroupHeartbeat": "group.protocol=streams does not work (KIP-1071)",
    "GetTelemetrySubscriptions": "no client metrics (KIP-714)", "PushTelemetry": "no client metrics (KIP-714)",
    "InitProducerId": "no idempotence and no transactions (KIP-98)",
    "OffsetForLeaderEpoch": "no leader epoch fencing (KIP-320)",
}  # fmt: skip
"""API -> what does not work if the broker does not have it."""


@dataclass(frozen=True, slots=True)
class Library:
    """A client library with its known versions."""

    name: str
    source: str
    """The source of the versions."""
    versions: Mapping[int, Sequence[int]]
    """API key -> versions that it can send, in increasing order."""
    negotiates: bool = True

    def settles(self, key: int, offered: Versions | None) -> int | None:
        """The version that it uses if the broker offers this; None if there is none, or the API is not in the table."""
        own = self.versions.get(key)
        if own is None or not len(own):
            return None
        if not self.negotiates:
            return own[-1] if offered is not None and offered[0] <= own[-1] <= offered[1] else None
        if offered is None:
            return None
        both = [version for version in own if offered[0] <= version <= offered[1]]
        return both[-1] if both else None


def java(release: str) -> Library:
    """The Java client of a release, with each version of each API that its definitions have for clients."""
    found = {}
    for key, api in apis().items():
        mine = taken(key, release)
        if mine is not None and (not api.listeners or CLIENT_LISTENER in api.listeners or "zkBroker" in api.listeners):
            found[key] = range(mine.versions[0], mine.versions[1] + 1)
    return Library(f"{JAVA} {line(release)}", "Kafka's definitions of that release", found)


def library_of(known: Software) -> Library | None:
    """The library of a client; None if its versions are not known."""
    release = java_release(known)
    if release is not None and known.name is not None:
        return java(release)
    name = " ".join(filter(None, (known.family, known.version)))
    mine = numbers(known.version)
    recorded = next((versions for family, first, versions in IMPLEMENTED if family == known.family and mine == first), None)
    if recorded is not None:
        return Library(name, "recordings of this release", {key: upto(some) for key, some in recorded.items()})
    for profile in PROFILES:
        if profile.family == known.family and known.version == profile.releases:
            if profile.probes is None:
                return Library(name, "recordings of this library", profile.versions, False)
            # With an older broker it uses the broker's last version.
            whole = {key: range(max(some) + 1) for key, some in profile.versions.items()}
            return Library(name, "recordings of this library", whole)
    return None


def upto(versions: Sequence[int]) -> Sequence[int]:
    """A single recorded version stands for all up to it; several are exactly those that the library has."""
    return range(versions[0] + 1) if len(versions) == 1 else sorted(versions)


def library_named(text: str) -> Library:
    """A library by name and version, such as `java 2.8` or `librdkafka 2.16.0`. Raises UsageError if none is known."""
    name, _, version = text.strip().rpartition(" ")
    family = JAVA if name in ("java", "kafka-clients", JAVA) else family_of(name or text)
    found = library_of(Software(family, version or None, family, False, ""))
    if found is None:
        known = sorted({f"{one} {'.'.join(map(str, release))}" for one, release, _ in IMPLEMENTED})
        raise UsageError(
            f"--explain {text!r} is no client of the capture and no library whose versions are known; there are java RELEASE, "
            f"{', '.join(known)}"
        )
    return found


def nothing_in_common(known: Software, offered: Mapping[int, Versions]) -> list[str]:
    """Produce and Fetch with both ranges, if a broker accepts neither in a version that a Java client of this release has.

    Only Kafka's definitions show what a client lacks; recordings of other libraries show only what they used.
    """
    release, apart = java_release(known), []
    if release is None or known.guessed:
        return []
    for key in DATA:
        mine = taken(key, release)
        if mine is None or key not in offered:
            return []
        (first, last), (low, high) = mine.versions, offered[key]
        if first <= high and low <= last:
            return []
        apart.append(f"{api_name(key)} (client {first}-{last}, broker {low}-{high})")
    return apart


def missing(key: int, version: int | None) -> list[str]:
    """What a version of an API lacks compared with later ones."""
    name = api_name(key) or ""
    if version is None:
        return [ABSENT[name]] if name in ABSENT else []
    return [text for first, text in MEANINGS.get(name, ()) if version < first]


@dataclass(frozen=True, slots=True)
class SimulatedBroker:
    """A broker to negotiate with."""

    name: str
    ranges: Mapping[int, Versions]
    release: str | None = None

    def offers(self, key: int) -> Versions | None:
        """The range of an API that it accepts, without versions that it names and rejects (KAFKA-18659)."""
        found = self.ranges.get(key)
        if found is None or self.release is None:
            return found
        some = [version for version in range(found[0], found[1] + 1) if accepts(key, version, self.release)]
        return (some[0], some[-1]) if some else None


def broker_of(release: str) -> SimulatedBroker:
    """A broker of a release with the default configuration."""
    ranges = {key: found for key in apis() if (found := advertised(key, release)) is not None}
    return SimulatedBroker(f"Kafka {release}", ranges, release)


def explain(
    library: Library, brokers: Sequence[SimulatedBroker], keys: Iterable[int], used: Mapping[int, Sequence[int]]
) -> Row:
    """The version of each API with each broker, and what changes from the first broker to the last."""
    rows = []
    for key in sorted(keys):
        if key == API_VERSIONS:
            continue
        versions = [library.settles(key, broker.offers(key)) for broker in brokers]
        before, after = missing(key, versions[0]), missing(key, versions[-1])
        rows.append({
            "api": api_name(key), "api_key": key, "used": list(used.get(key, ())), "versions": versions,
            "has": [span for broker in brokers for span in [list(broker.offers(key) or ()) or None]],
            "implements": [min(library.versions[key]), max(library.versions[key])] if library.versions.get(key) else None,
            "works": versions[-1] is not None, "lost": [text for text in after if text not in before],
            "gained": [text for text in before if text not in after] if versions[-1] is not None else [], "lacks": after,
        })  # fmt: skip
    steps = rolling(brokers)
    broken = [row["api"] for row in rows if row["used"] and not row["works"]]
    return {
        "library": library.name, "source": library.source, "negotiates": library.negotiates,
        "brokers": [broker.name for broker in brokers], "steps": steps, "rows": rows, "broken": broken,
    }  # fmt: skip


def rolling(brokers: Sequence[SimulatedBroker]) -> list[Row]:
    """The steps of a rolling upgrade or downgrade: brokers of the first release, of both, of the second; and so on."""
    steps: list[Row] = [{"step": f"all brokers are {brokers[0].name}", "columns": [0]}]
    for at in range(1, len(brokers)):
        steps.append(
            {
                "step": f"some are {brokers[at - 1].name}, some {brokers[at].name}: each by its own column",
                "columns": [at - 1, at],
            }
        )
        steps.append({"step": f"all brokers are {brokers[at].name}", "columns": [at]})
    return steps


def sequence(text: str) -> list[str]:
    """The names in a list such as `3.9,4.0`."""
    return [part for part in re.split(r"[,\s]+", text.strip()) if part]
