"""Which Kafka release a broker runs, by the versions that it offers.

In: the ranges of an ApiVersions response. Out: the releases that offer exactly these, with the evidence; or the nearest release
and what differs: a vendor's broker, a proxy, or a release that kcap does not know. Law: a response that a release gives is
never reported as a vendor's.

A controller's listener offers fewer APIs than a broker's. A broker with KRaft offers APIs that it forwards to the controller
only as far as the controller accepts them (ApiVersionsResponse.intersectForwardableApis): in a mixed cluster these are fewer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kcap.reports.versions.libraries import ZOOKEEPER_ONLY, keys_of_apis
from kcap.schema.facts import Versions, apis, releases, within
from kcap.schema.registry import api_name
from kcap.schema.releases import advertised, taken

PRODUCE, METADATA, LEADER_AND_ISR = 0, 3, 4
NAMES_SHOWN: Final = 4
"""Number of APIs that a reason names."""
LACKING: Final = 8
"""Number of a release's APIs that a broker may omit: those of features that are switched off."""
KRAFT_ONLY: Final = keys_of_apis(
    "UnregisterBroker", "DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter", "ListClientMetricsResources",
    "GetTelemetrySubscriptions", "PushTelemetry", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "DescribeTopicPartitions",
)  # fmt: skip
"""APIs of a broker's listener that a broker with ZooKeeper, or without the service behind them, does not name."""
SERVED: Final = keys_of_apis(
    "Fetch", "ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeAcls", "DescribeConfigs", "DescribeCluster"
)
"""APIs that brokers and controllers each serve themselves (`forwardable` of ApiKeys)."""
BEFORE_KRAFT: Final = "2.7"
"""The last release whose brokers all have the same mode."""
BROKER, CONTROLLER = "broker", "controller"
"""Roles of a listener."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The releases that fit."""

    first: str | None
    last: str | None
    why: str
    role: str
    """`broker` or `controller`, by the listener's APIs."""
    mode: str | None
    """`zookeeper` or `kraft`, if the response shows it."""
    vendor: bool = False
    """Whether no release offers this."""
    nearest: str | None = None
    differs: tuple[str, ...] = ()


def forwarded(key: int) -> bool:
    """Whether brokers may forward this API to the controller."""
    api = apis().get(key)
    return api is not None and key not in SERVED and "controller" in api.listeners and "broker" in api.listeners


def differences(ranges: Mapping[int, Versions], release: str) -> list[int]:
    """APIs whose range is not the release's."""
    out = []
    for key, found in ranges.items():
        known, whole = advertised(key, release), taken(key, release)
        if known is None or whole is None:
            trial = whole is not None and whole.versions == found
            out += [] if trial else [key]
            continue
        first, last = found
        ends = {known[1], whole.versions[1]}  # trial versions may be enabled (unstable.api.versions.enable)
        starts = {known[0], whole.versions[0]}
        cut = forwarded(key) and known[0] <= first <= last <= whole.versions[1]
        if not cut and (first not in starts or last not in ends):
            out.append(key)
    return out


def missing(ranges: Mapping[int, Versions], release: str, role: str, mode: str | None) -> int:
    """Number of APIs of the release that the broker does not name although its listener would."""
    count = 0
    for key, api in apis().items():
        if key in ranges or advertised(key, release) is None:
            continue
        if api.listeners and role not in api.listeners and not (role == "broker" and "zkBroker" in api.listeners):
            continue
        if (mode == "kraft" and key in ZOOKEEPER_ONLY) or (mode == "zookeeper" and key in KRAFT_ONLY):
            continue
        count += 1
    return count


def always(key: int) -> bool:
    """Whether every broker whose release has this API serves it itself: it is older than KRaft, and brokers still have it."""
    api = apis().get(key)
    return api is not None and BROKER in api.listeners and not forwarded(key) and taken(key, BEFORE_KRAFT) is not None


def absent(ranges: Mapping[int, Versions], release: str, role: str) -> list[int]:
    """APIs that every broker of the release names and this one does not; none if there are more than a few, which `guess`
    reports. A controller's listener is not examined."""
    found = [key for key in apis() if key not in ranges and always(key) and advertised(key, release) is not None]
    return found if role == BROKER and len(found) <= LACKING else []


def loose(ranges: Mapping[int, Versions], release: str) -> int:
    """Number of forwarded APIs whose range is smaller than the release's own."""
    whole = [(found, advertised(key, release)) for key, found in ranges.items() if forwarded(key)]
    return sum(known is not None and (found[0] > known[0] or found[1] < known[1]) for found, known in whole)


def difference_texts(ranges: Mapping[int, Versions], keys: list[int], release: str) -> tuple[str, ...]:
    """The differences in words."""
    out = []
    for key in sorted(keys):
        known = advertised(key, release)
        name = api_name(key) or f"API {key}"
        found = ranges.get(key)
        text = f"{name} {found[0]}-{found[1]}" if found else f"no {name}"
        out.append(text + (f" ({known[0]}-{known[1]})" if known else " (none)"))
    return tuple(out)


def evidence(ranges: Mapping[int, Versions], first: str, last: str) -> str:
    """The ranges that exclude the neighbouring releases."""
    known = releases()
    low, high = known.index(first), known.index(last)
    parts = []
    for words, at in (("not in", low - 1), ("no more in", high + 1)):
        if 0 <= at < len(known):
            keys = sorted(differences(ranges, known[at]))[:NAMES_SHOWN]
            some = ", ".join(f"{api_name(k) or k} {ranges[k][0]}-{ranges[k][1]}" for k in keys)
            parts += [f"{some} ({words} {known[at]})"] if some else []
    return "; ".join(parts)


def took(calls: Iterable[tuple[int, int]]) -> Guess | None:
    """The releases that accept all of these APIs and versions, for a broker of unknown ranges; None if all or none do."""
    known, some = releases(), list(calls)
    fit = [release for release in known if all(takes(key, version, release) for key, version in some)]
    if not fit or len(fit) == len(known):
        return None
    parts = []
    at = known.index(fit[-1])
    if at + 1 < len(known):
        above = [call for call in some if not takes(*call, known[at + 1])]
        parts.append(f"took {named(above)}: at most {fit[-1]}")
    if fit[0] != known[0]:
        below = [call for call in some if not takes(*call, known[known.index(fit[0]) - 1])]
        parts.append(f"took {named(below)}: at least {fit[0]}")
    # The broker that is the controller of a cluster with ZooKeeper accepts what only controllers accept today, and more.
    inner = any(on_controllers_alone(key) for key, _ in some) and all(on_controllers(key) for key, _ in some)
    role = CONTROLLER if inner else BROKER
    return Guess(fit[0], fit[-1], f"no ApiVersions response; {'; '.join(parts)}", role, None)


def on_controllers(key: int) -> bool:
    """Whether controllers serve this API."""
    api = apis().get(key)
    return api is not None and CONTROLLER in api.listeners


def on_controllers_alone(key: int) -> bool:
    """Whether only a controller's listener serves this API."""
    api = apis().get(key)
    return api is not None and api.listeners == (CONTROLLER,)


def takes(key: int, version: int, release: str) -> bool:
    """Whether a release accepts a version of an API, trial versions included."""
    found = taken(key, release)
    return found is not None and within(found.versions, version)


def named(calls: list[tuple[int, int]]) -> str:
    """Some APIs and versions in words."""
    some = [f"{api_name(key) or f'API {key}'} v{version}" for key, version in sorted(calls)]
    return ", ".join(some[:NAMES_SHOWN]) + (f" and {len(some) - NAMES_SHOWN} more" if len(some) > NAMES_SHOWN else "")


def guess(ranges: Mapping[int, Versions]) -> Guess:
    """The releases that a response fits."""
    role = BROKER if PRODUCE in ranges or METADATA in ranges else CONTROLLER
    mode = "zookeeper" if LEADER_AND_ISR in ranges else None
    if mode is None and (role == CONTROLLER or any(key in ranges for key in KRAFT_ONLY)):
        mode = "kraft"
    wrong = {release: differences(ranges, release) + absent(ranges, release, role) for release in releases()}
    fit = [release for release, keys in wrong.items() if not keys]
    count = f"{len(ranges)} APIs"
    if not fit:
        nearest = min(wrong, key=lambda release: (len(wrong[release]), missing(ranges, release, role, mode)))
        some = difference_texts(ranges, wrong[nearest], nearest)
        text = f"no release offers this: {count}, nearest {nearest}, but {', '.join(some[:NAMES_SHOWN])}"
        text += f" and {len(some) - NAMES_SHOWN} more differ" if len(some) > NAMES_SHOWN else ""
        return Guess(None, None, text, role, mode, True, nearest, some)
    scores = {r: (loose(ranges, r), missing(ranges, r, role, mode)) for r in fit}
    best = min(scores.values())
    if best[0]:  # forwarded APIs are limited by the controllers of a mixed cluster: only those served here count
        least = min(score[1] for score in scores.values())
        some_fit = [release for release in fit if scores[release][1] == least]
    else:
        some_fit = [release for release in fit if scores[release] == best]
    first, last = some_fit[0], some_fit[-1]
    shut = evidence(ranges, first, last)
    text = f"its {count} have the ranges of {first if first == last else f'{first} to {last}'}" + (f": {shut}" if shut else "")
    if best[0]:
        text += f"; {best[0]} APIs that it forwards have less, as in a mixed cluster"
    lacks = missing(ranges, last, role, mode)
    if lacks > LACKING:
        text += f"; it lacks {lacks} APIs of {last}, as behind a proxy, or a broker of another product"
    return Guess(first, last, text, role, mode)
