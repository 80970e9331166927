"""Whether clients work with another broker release, older or newer, by the versions that they use.

In: what one client used, its library, the release. Out: one assessment per version, a verdict, and the step of each API. Law:
the verdict is `no` only if the release rejects a version that the client sends and would send again. It is `yes` only if
brokers served real work of the client, and each API that it used is final in the release or a known library can step to a
version that is. Otherwise it is `unknown`, and the reason says what is missing. APIs that the capture does not show are not
assessed.

Sources: KIP-896 (removed versions), KIP-35 and KIP-97 (clients and brokers of different releases), KAFKA-19444 (JoinGroup 0-1,
removed in 4.0.0, restored in 4.0.1), KIP-866 (APIs removed with ZooKeeper).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kcap.errors import UsageError
from kcap.facts.api_versions import Offer
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.libraries import BASELINES, JAVA, OLDEST, OWN_SINCE, ZOOKEEPER_ONLY, keys_of_apis
from kcap.schema.facts import Versions, releases, within
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_name
from kcap.schema.releases import accepts, line, removed_in, stable, taken

YES, NO, UNKNOWN = "yes", "no", "unknown"
REMOVED, DEPRECATED, ABSENT, TRIAL = "removed", "deprecated", "not_yet", "unstable"
"""Status of a version in a release: removed, deprecated, not there yet, on trial."""
KIP_896: Final = "4.0.0"
NAMED: Final = 4
"""Number of APIs that a reason names."""
PRODUCE: Final = 0
JOIN_GROUP: Final = 11
GONE_PRODUCE: Final = 3
"""First Produce version that Kafka 4 accepts, although it names 0 (KAFKA-18659)."""


OPTIONAL: Final = keys_of_apis(
    "GetTelemetrySubscriptions", "PushTelemetry", "OffsetForLeaderEpoch", "DescribeCluster", "DescribeTopicPartitions"
)
"""APIs that a client does not need if the broker does not offer them."""
NEEDED: Final = keys_of_apis("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch", "StreamsGroupHeartbeat")
"""APIs of group protocols that a client is configured to use: it does not fall back to another protocol."""
WITH_KRAFT: Final = keys_of_apis(
    "UnregisterBroker",
    "DescribeQuorum",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UpdateFeatures",
    "ListConfigResources",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
)
"""APIs that only a cluster with KRaft serves."""
LOGIN: Final = keys_of_apis("SaslHandshake", "SaslAuthenticate")
BEGINNING: Final = LOGIN | keys_of_apis(
    "ApiVersions", "Metadata", "FindCoordinator", "GetTelemetrySubscriptions", "PushTelemetry"
)
"""APIs that clients send before, or beside, their actual work."""


@dataclass(frozen=True, slots=True)
class ApiUse:
    """A version of an API as a client used it."""

    key: int
    version: int
    count: int
    first_ns: int
    last_ns: int
    example: str
    negotiated: bool
    """Whether its connections had the broker's ranges."""
    offered: Versions | None
    """The broker's range, if it is known."""
    served: bool = True
    """Whether a broker responded to it, other than with UNSUPPORTED_VERSION."""
    refused: bool = False
    """Whether a broker responded with UNSUPPORTED_VERSION."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """A version that a release does not have as a final one."""

    call: ApiUse
    what: str
    steps: bool | None
    """Whether the client would send another version there; None if it is not known."""
    head: str
    cause: str = ""

    @property
    def name(self) -> str:
        """`Fetch v12`."""
        return f"{api_name(self.call.key) or self.call.key} v{self.call.version}"

    @property
    def why(self) -> str:
        """The assessment in words."""
        return f"{self.head} {self.name}{self.cause}"


def reasons(findings: list[Assessment]) -> str:
    """Assessments in words; those with one cause are combined."""
    by: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        by.setdefault((one.head, one.cause), []).append(one.name)
    return "; ".join(f"{head} {', '.join(dict.fromkeys(names))}{cause}" for (head, cause), names in by.items())


def release_of(text: str) -> str:
    """A release by its name in the imported schemas: `4.0`, `3.9.2`, `0.10.2.2`, `newest`. Raises UsageError for an unknown
    name."""
    known = releases()
    if text == "newest":
        return known[-1]
    if text in known:
        return text
    if re.fullmatch(r"\d+(\.\d+){1,3}", text) and line(text) in known:
        return line(text)
    raise UsageError(f"--target {text!r} is no Kafka release that kcap knows; there are {', '.join(known)}")


def numbers(text: str | None) -> tuple[int, ...] | None:
    """The first dotted number in a version: `2.16.1-rdkafka-2.16.0` is 2.16.0, librdkafka's own."""
    if not text:
        return None
    match = re.search(r"rdkafka-v?(\d+(?:\.\d+)+)", text) or re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(map(int, match[1].split("."))) if match else None


def own_release(who: Software) -> tuple[int, ...] | None:
    """The release that a library reports of itself; None for a guess, and if the version is that of its program."""
    mine = numbers(who.version)
    return None if who.guessed or mine is None or mine < OWN_SINCE.get(who.family or "", (0,)) else mine


def java_release(who: Software) -> str | None:
    """The release of a Java client; the oldest one if it is a range."""
    if who.family != JAVA or not who.version:
        return None
    match = re.match(r"(\d+(?:\.\d+)+)", who.version)
    found = line(match[1]) if match else None
    return found if found in releases() else None


def of(calls: list[ApiUse], who: Software, target: str, login: bool = False) -> tuple[list[Assessment], str, str]:
    """The assessments for a release, the verdict, and its reason. `login`: the client began SASL."""
    if who.is_broker:
        return [], UNKNOWN, "it is a broker: it is upgraded with its cluster"
    findings = [found for call in calls if (found := assessed(call, who, target)) is not None]
    against = [f for f in findings if f.what != DEPRECATED]
    broken = [f for f in against if f.steps is False]
    open_ = [f for f in against if f.steps is None]
    if broken:
        return findings, NO, reasons(broken)
    if open_:
        return findings, UNKNOWN, reasons(open_)
    missing = unproven(calls, login)
    if missing is not None:
        return findings, UNKNOWN, missing
    if against:
        return findings, YES, reasons(against)
    used = len({call.key for call in calls if call.key != API_VERSIONS})
    return findings, YES, f"{target} takes every version that it used, of {used} API{'s' * (used != 1)}"


def unproven(calls: list[ApiUse], login: bool) -> str | None:
    """What a capture lacks for a yes; None if brokers served the client's real work."""
    served = {call.key for call in calls if call.served}
    work = {call.key for call in calls} - BEGINNING
    refused = sorted({call.key for call in calls if call.refused} - served)
    if served - BEGINNING:
        return (
            f"a broker refused {names(refused)} here, so whether it has a feature that these need is not known"
            if refused
            else None
        )
    if work:
        return f"no response to its work was captured ({names(sorted(work))})"
    if login and not served - LOGIN - {API_VERSIONS}:
        return "its login was not seen to succeed, so the versions of its work are not known"
    if not served:
        return "no broker served a request of it"
    were = "was" if len(served) == 1 else "were"
    return f"only {names(sorted(served))} {were} seen, no work, so what else it needs is not known"


def names(keys: Sequence[int]) -> str:
    """`Fetch, Metadata`; of many, the first."""
    some = [api_name(key) or f"API {key}" for key in keys]
    return ", ".join(some[:NAMED]) + (f" and {len(some) - NAMED} more" if len(some) > NAMED else "")


def assessed(call: ApiUse, who: Software, target: str) -> Assessment | None:
    """The assessment of a version; None if the release accepts it as final."""
    mine = taken(call.key, target)
    if accepts(call.key, call.version, target):
        if mine is not None and within(mine.deprecated, call.version):
            return Assessment(call, DEPRECATED, None, f"{target} calls deprecated:")
        return None
    if call.key == API_VERSIONS:
        return None  # it got a version 0 response and sent another request (KIP-511)
    gone = removed_in(call.key, call.version)
    known = releases()
    final = stable(mine) if mine is not None else None
    below = final is not None and call.version < final[0]
    if mine is not None and within(mine.versions, call.version):
        what, head = TRIAL, f"{target} has as a trial only (unstable.api.versions.enable):"
    elif below or (gone is not None and any(line(r) == gone for r in known[: known.index(target) + 1])):
        what, head = REMOVED, f"{target} no longer takes"
    else:
        what, head = ABSENT, f"{target} does not take"
    why = because(call, target, what)
    if not call.negotiated:
        return Assessment(call, what, False, head, f"{why}, sent without requesting the broker's versions")
    steps, cause = (newer if what == REMOVED else older)(call, who, final)
    return Assessment(call, what, steps, head, why + cause)


def because(call: ApiUse, target: str, what: str) -> str:
    """Why a release rejects a version, if there is a particular reason."""
    if call.key in ZOOKEEPER_ONLY and what == REMOVED:
        return " (gone with ZooKeeper, KIP-866)"
    if call.key == JOIN_GROUP and target == KIP_896 and call.version < 2:
        return " (gone in 4.0.0 alone, back in 4.0.1: KAFKA-19444)"
    if call.key in WITH_KRAFT and what == ABSENT and taken(call.key, target) is None:
        return " (an API of clusters with KRaft)"
    return " (KIP-896)" if what == REMOVED and line(KIP_896) == removed_in(call.key, call.version) else ""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a client will do with an API on the release."""

    does: str
    """`keeps`, `up`, `down`, `breaks`, `without` or `unknown`."""
    version: int | None
    """The version that it will use there, if that is known."""


def step_of(calls: list[ApiUse], who: Software, target: str) -> Outlook:
    """The step of one API, by all versions that a client used of it."""
    highest = max(calls, key=lambda call: call.version)
    mine = taken(highest.key, target)
    final = stable(mine) if mine is not None else None
    if highest.key == API_VERSIONS:
        return Outlook("keeps", min(highest.version, final[1])) if final is not None else Outlook("unknown", None)
    found = [one for call in calls if (one := assessed(call, who, target)) is not None and one.what != DEPRECATED]
    if any(one.steps is False for one in found):
        return Outlook("breaks", None)
    own = own_range(highest, who)
    chosen = settles(own, final) if own is not None and highest.negotiated else None
    if any(one.steps is None for one in found):
        return Outlook("unknown", None)
    if final is None:
        return Outlook("without", None)
    if found:
        version = chosen if chosen is not None else settles((final[0], highest.version), final)
        does = "unknown" if version is None else "up" if version > highest.version else "down"
        return Outlook(does, version)
    bounded = highest.offered is not None and highest.version == highest.offered[1]
    if chosen is not None and bounded and chosen > highest.version:
        return Outlook("up", chosen)
    return Outlook("keeps", highest.version)


def settles(own: Versions, offered: Versions | None) -> int | None:
    """The version that a negotiating client settles on: the highest that both have; None if there is none."""
    if offered is None or max(own[0], offered[0]) > min(own[1], offered[1]):
        return None
    return min(own[1], offered[1])


def partners(who: Software) -> tuple[str | None, str | None, str]:
    """The oldest and the newest broker that a client's library works with, and the source of that; None if it is not known."""
    newest, least, mine = releases()[-1], BASELINES.get(who.family or ""), own_release(who)
    release = java_release(who)
    if release is not None:
        known = releases()
        at = known.index(release)
        if at >= known.index(KIP_896):
            return "2.1", line(newest), "Java clients of 4.0 and later need brokers of 2.1 and later (KIP-896)"
        old = "0.10.0" if at >= known.index("0.10.2") else line(release)
        if at < known.index("2.1"):
            return old, "3.9", "Java clients before 2.1 are not listed for brokers of 4.0 and later (KIP-896)"
        return old, line(newest), "compatibility of Java clients (KIP-97, KIP-896)"
    since = None if who.guessed else OWN_SINCE.get(who.family or "")
    if least is not None and mine is None and since is not None and numbers(who.version) is not None:
        return None, None, f"{who.family} before {'.'.join(map(str, since))} reports the version of its program, not its own"
    if least is None or mine is None:
        return None, None, "its library or version is not known"
    oldest = OLDEST.get(who.family or "")
    if mine >= least:
        return oldest, line(newest), f"{who.family} from {'.'.join(map(str, least))} on works with Kafka 4 (KIP-896)"
    return oldest, "3.9", f"{who.family} before {'.'.join(map(str, least))} is not listed for Kafka 4 (KIP-896)"


def earlier(one: str, other: str) -> bool:
    """Whether a release or release line is before another."""
    known = releases()
    return known.index(one if one in known else line(one)) < known.index(other)


def newer(call: ApiUse, who: Software, there: Versions | None) -> tuple[bool | None, str]:
    """For a removed version: whether the client would have used a later one."""
    if there is None:
        return (None if call.key in ZOOKEEPER_ONLY else False), ": the API is gone"
    if call.offered is not None and call.version < call.offered[1]:
        return False, f", and the client used no later one though the broker offered {call.offered[1]}"
    own = own_range(call, who)
    if own is not None:
        return own[1] >= there[0], f", but {java_name(who)} goes up to v{own[1]}" + (
            "" if own[1] >= there[0] else f": v{there[0]} is needed"
        )
    least, mine = BASELINES.get(who.family or ""), own_release(who)
    if least is not None and mine is not None:
        version = f"{who.family} {'.'.join(map(str, mine))}"
        if mine >= least:
            return True, f", but {version} can use later ones (KIP-896)"
        return None, f", and {version} is older than {'.'.join(map(str, least))} (KIP-896)"
    return None, ": the broker offered no later one, so the capture does not show whether the client has one"


def java_name(who: Software) -> str:
    """`Java client 2.8`; a guess is marked."""
    return f"Java client {who.version}" + (" (guess)" if who.guessed else "")


def older(call: ApiUse, who: Software, there: Versions | None) -> tuple[bool | None, str]:
    """For a version that is not there yet: whether the client would step down."""
    own = own_range(call, who)
    if call.key in OPTIONAL and (there is None or (own is not None and own[0] > there[1])):
        return True, ", without which clients do"
    if there is None:
        return (False if call.key in NEEDED else None), ": it does not have the API"
    if own is not None:
        return own[0] <= there[1], f", but v{there[1]} at most, and {java_name(who)} goes down to v{own[0]}"
    return True, ", but the client requests the broker's versions and can step down"


def own_range(call: ApiUse, who: Software) -> Versions | None:
    """The range of an API in the Java client's release; for several releases, that of the oldest."""
    release = java_release(who)
    own = taken(call.key, release) if release is not None else None
    return own.versions if own is not None else None


def is_named_though_gone(call: ApiUse, target: str) -> bool:
    """Produce 0-2 on Kafka 4: named for librdkafka's sake, and rejected (KAFKA-18659)."""
    known = releases()
    return call.key == PRODUCE and call.version < GONE_PRODUCE and known.index(target) >= known.index(KIP_896)


def range_in(offer: Offer | None, key: int) -> Versions | None:
    """What a broker offers of an API."""
    return offer.ranges.get(key) if offer is not None else None
