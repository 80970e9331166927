"""Whether clients work with another broker release, older or newer, by the versions they use.

In: what one client used, its library, the release. Out: findings a version, and a verdict. Law: `no` only where a version that
the client sends, and would send again, is not taken there; `yes` only where all that was seen is taken, or a known library can
step to what is; else `unknown`, and the reason says what is missing. APIs that the capture does not show are not judged.
"""

import re
from dataclasses import dataclass
from typing import Final

from kcap.errors import UsageError
from kcap.facts.api_versions import Offer
from kcap.reports.versions.fingerprints import JAVA, Software
from kcap.reports.versions.libraries import BASELINES
from kcap.schema.facts import Versions, within
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_key, api_name
from kcap.schema.releases import accepts, line, releases, removed_in, taken

YES, NO, UNKNOWN = "yes", "no", "unknown"
REMOVED, DEPRECATED, ABSENT = "removed", "deprecated", "not_yet"
"""What a release does with a version: it has dropped it, calls it deprecated, does not have it yet."""
KIP_896: Final = "4.0.0"
PRODUCE: Final = 0
GONE_PRODUCE: Final = 3
"""First Produce version that Kafka 4 takes, while it names 0 (KAFKA-18659)."""
OPTIONAL: Final = frozenset(
    key
    for name in (
        "GetTelemetrySubscriptions",
        "PushTelemetry",
        "OffsetForLeaderEpoch",
        "DescribeCluster",
        "DescribeTopicPartitions",
    )
    if (key := api_key(name)) is not None
)
"""APIs that a client does without where the broker does not offer them."""

NEEDED: Final = frozenset(
    key
    for name in ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch", "StreamsGroupHeartbeat")
    if (key := api_key(name)) is not None
)
"""APIs of group protocols that a client is told to use: it does not fall back to another."""


@dataclass(frozen=True, slots=True)
class ApiUse:
    """A version of an API as a client used it."""

    key: int
    version: int
    count: int
    first_ns: int
    last_ns: int
    example: str
    asked: bool
    """Its connections had the broker's ranges."""
    offered: Versions | None
    """The broker's range, where it is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What stands against a release."""

    call: ApiUse
    what: str
    steps: bool | None
    """Whether the client would send another version there; None where nobody can tell."""
    head: str
    cause: str = ""

    @property
    def name(self) -> str:
        """`Fetch v12`."""
        return f"{api_name(self.call.key) or self.call.key} v{self.call.version}"

    @property
    def why(self) -> str:
        """In words."""
        return f"{self.head} {self.name}{self.cause}"


def reasons(findings: list[Finding]) -> str:
    """Findings in words, those of one cause together."""
    by: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        by.setdefault((one.head, one.cause), []).append(one.name)
    return "; ".join(f"{head} {', '.join(dict.fromkeys(names))}{cause}" for (head, cause), names in by.items())


def release_of(text: str) -> str:
    """A release as the facts name it: `4.0`, `3.9.2`, `0.10.2.2`, `newest`. Raises UsageError for an unknown name."""
    known = releases()
    if text == "newest":
        return known[-1]
    if text in known:
        return text
    if re.fullmatch(r"\d+(\.\d+){1,3}", text) and line(text) in known:
        return line(text)
    raise UsageError(f"--target {text!r} is no Kafka release that kcap knows; there are {', '.join(known)}")


def numbers(text: str | None) -> tuple[int, ...] | None:
    """The first number with points in a version: `2.16.1-rdkafka-2.16.0` is 2.16.0, librdkafka's own."""
    if not text:
        return None
    match = re.search(r"rdkafka-v?(\d+(?:\.\d+)+)", text) or re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(map(int, match[1].split("."))) if match else None


def java_release(who: Software) -> str | None:
    """The release of a Java client, the oldest where it is a range."""
    if who.family != JAVA or not who.version:
        return None
    match = re.match(r"(\d+(?:\.\d+)+)", who.version)
    found = line(match[1]) if match else None
    return found if found in releases() else None


def of(calls: list[ApiUse], who: Software, target: str) -> tuple[list[Finding], str, str]:
    """What stands against a release, the verdict, and its reason."""
    if who.is_broker:
        return [], UNKNOWN, "it is a broker: it is upgraded with its cluster"
    findings = [found for call in calls if (found := assessed(call, who, target)) is not None]
    work = [call for call in calls if call.key != API_VERSIONS]
    against = [f for f in findings if f.what != DEPRECATED]
    broken = [f for f in against if f.steps is False]
    open_ = [f for f in against if f.steps is None]
    if broken:
        return findings, NO, reasons(broken)
    if open_:
        return findings, UNKNOWN, reasons(open_)
    if not work:
        return findings, UNKNOWN, "it has done nothing yet that a broker could refuse"
    if against:
        return findings, YES, reasons(against)
    return findings, YES, f"{target} takes all {len(work)} versions that it was seen to use"


def assessed(call: ApiUse, who: Software, target: str) -> Finding | None:
    """What a release has against a version; None for nothing."""
    mine = taken(call.key, target)
    if accepts(call.key, call.version, target):
        if mine is not None and within(mine.deprecated, call.version):
            return Finding(call, DEPRECATED, None, f"{target} calls deprecated:")
        return None
    if call.key == API_VERSIONS:
        return None  # answered in version 0, and asked again (KIP-511)
    gone = removed_in(call.key, call.version)
    known = releases()
    what = REMOVED if gone is not None and any(line(r) == gone for r in known[: known.index(target) + 1]) else ABSENT
    head = f"{target} no longer takes" if what == REMOVED else f"{target} does not take"
    if not call.asked:
        return Finding(call, what, False, head, ", sent without asking for the broker's versions")
    steps, cause = (newer if what == REMOVED else older)(call, who, mine.versions if mine else None)
    return Finding(call, what, steps, head, cause)


def newer(call: ApiUse, who: Software, there: Versions | None) -> tuple[bool | None, str]:
    """A version that is gone: would the client have used a later one?"""
    if there is None:
        return None, ": the API is gone"
    if call.offered is not None and call.version < call.offered[1]:
        return False, ", and the client used no later one though the broker offered it"
    own = own_range(call, who)
    if own is not None:
        return own[1] >= there[0], f", but Java client {who.version} goes up to v{own[1]}" + (
            "" if own[1] >= there[0] else f": v{there[0]} is needed"
        )
    least, mine = BASELINES.get(who.family or ""), numbers(who.version)
    if least is not None and mine is not None and not who.guessed:
        version = f"{who.family} {'.'.join(map(str, mine))}"
        if mine >= least:
            return True, f", but {version} can use later ones (KIP-896)"
        return None, f", and {version} is older than {'.'.join(map(str, least))} (KIP-896)"
    return None, ": this was the broker's last, so nobody can tell whether the client has a later one"


def older(call: ApiUse, who: Software, there: Versions | None) -> tuple[bool | None, str]:
    """A version that is not there yet: would the client step down?"""
    own = own_range(call, who)
    if call.key in OPTIONAL and (there is None or (own is not None and own[0] > there[1])):
        return True, ", without which clients do"
    if there is None:
        return (False if call.key in NEEDED else None), ": it does not have the API"
    if own is not None:
        return own[0] <= there[1], f", but v{there[1]} at most, and Java client {who.version} goes down to v{own[0]}"
    return True, ", but the client asks for the broker's versions and can step down"


def own_range(call: ApiUse, who: Software) -> Versions | None:
    """What a Java client's release has of an API."""
    release = java_release(who)
    own = taken(call.key, release) if release is not None else None
    return own.versions if own is not None else None


def is_named_though_gone(call: ApiUse, target: str) -> bool:
    """Produce 0-2 on Kafka 4: named for librdkafka's sake, and refused (KAFKA-18659)."""
    known = releases()
    return call.key == PRODUCE and call.version < GONE_PRODUCE and known.index(target) >= known.index(KIP_896)


def range_in(offer: Offer | None, key: int) -> Versions | None:
    """What a broker offers of an API."""
    return offer.ranges.get(key) if offer is not None else None
