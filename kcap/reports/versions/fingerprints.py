"""Which library a client uses: the one that it names, or else the one that the versions and order of its requests fit.

In: the connections of one client. Out: name, version, family, and the reason if it is a guess. Law: a guess is made only if
exactly one library fits, with a confidence of at least `SURE`. Otherwise the library is unknown, and the reason says which it
may be.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kcap.reports.versions.libraries import BROKER_IDS, INTERNAL, JAVA, NAMES_OF_IDS, PROFILES, Profile, family_of
from kcap.reports.versions.profile import AUTHENTICATE, HANDSHAKE, LOGIN_APIS, ConnectionProfile, Trait
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.traits import UNMISTAKABLE, excluded, numbered, weight
from kcap.schema.facts import releases
from kcap.schema.quirks import API_VERSIONS, BROKERS_ONLY
from kcap.schema.registry import api_name
from kcap.schema.releases import taken

MANY_APIS: Final = 5
CLEARLY: Final = 2
"""Minimum margin by which the defaults of one library must fit better than those of any other."""
LEAST_APIS: Final = 2
"""Minimum number of APIs beside ApiVersions for a guess: one version fits too many libraries."""
SURE: Final = 0.75
"""Minimum confidence with which a library is named. The tables lack some libraries, and a missing one can behave like one in
the tables: with each recorded library removed from the tables in turn, its clients fit another one with confidences up to 0.74,
never above."""
ITS_ID: Final = "its client id begins as that library's default does"
BROKER: Final = "kafka-broker"
SCALA: Final = "0.8.2"
"""Release of the Scala clients, whose correlation ids differ from those of the Java clients."""
JAVA_ASKS_SINCE: Final = "0.10.2"
JAVA_SAYS_SINCE: Final = "2.4"
"""First releases in which the Java client requests versions, and names itself (KIP-97, KIP-511)."""


@dataclass(frozen=True, slots=True)
class Software:
    """A client's library."""

    name: str | None
    version: str | None
    family: str | None
    guessed: bool
    why: str
    is_broker: bool = False
    confidence: float = 0.0
    """Confidence, 0 to 1, that it is this library."""
    evidence: tuple[str, ...] = ()
    """The evidence for it."""

    @property
    def text(self) -> str:
        """`librdkafka 2.6.0`; empty if nothing is known."""
        return " ".join(filter(None, (self.name, self.version)))


def hint_of(client_id: str | None) -> tuple[bool, str | None]:
    """Whether brokers use this client id, and the library whose default it is."""
    hint = next((family for start, family in NAMES_OF_IDS if re.match(start, client_id or "")), None)
    return re.fullmatch(BROKER_IDS, client_id or "") is not None, hint


def who(kept: Sequence[ConnectionProfile | StoredProfile], client_id: str | None, whole: ConnectionProfiles) -> Software:
    """The library of a client, from all of its connections."""
    profiles = [profile.open_for(client_id) for profile in kept]
    described = Counter(profile.software for profile in profiles if profile.software is not None)
    # A request at which the connection was closed is no proof: any program can send it.
    served = {
        (key, v)
        for profile in profiles
        for (one, key, v), use in profile.uses.items()
        if one == client_id and use.count > use.died
    }
    inner = sorted(of_brokers(served, all(name == JAVA for name, _ in described)))
    is_broker = bool(inner) or (hint_of(client_id)[0] and all(name == JAVA for name, _ in described))
    if described:
        (name, version), _ = described.most_common(1)[0]
        others = ", ".join(sorted({f"{n} {v}" for n, v in described} - {f"{name} {version}"}))
        why = "reported in ApiVersions (KIP-511)" + (f"; also {others}" if others else "")
        return Software(name, version, family_of(name, version), False, why, is_broker, 1.0, (why,))
    if is_broker:
        reason = (
            f"it sends {api_name(inner[0])}, which brokers use among themselves" if inner else "its client id is a broker's own"
        )
        return Software(BROKER, None, BROKER, True, reason, True, 0.95 if inner else 0.8, (reason,))
    return stated(guessed(profiles, client_id, whole))


def of_brokers(served: set[tuple[int, int]], java: bool) -> set[int]:
    """APIs of requests (key, version) that only brokers send.

    A version that Kafka's own clients leave to brokers counts only on connections that carry nothing else, as a broker's do
    (AddPartitionsToTxnManager), and not for a client that names another library (`java` is False): such a library may send it
    too (@platformatic/kafka sends AddPartitionsToTxn v5).
    """
    found = {key for key, _ in served if key in INTERNAL}
    versions = {key for key, version in served if version >= BROKERS_ONLY.get(key, 1 << 15)}
    return found | (versions if java and {key for key, _ in served} - LOGIN_APIS <= BROKERS_ONLY.keys() else set())


def stated(known: Software) -> Software:
    """The statement about a guess: below `SURE` it names no library, and its reason says which is nearest."""
    if not known.guessed or known.confidence >= SURE:
        return known
    nearest, by = f"{known.text} (confidence {known.confidence:.2f})", known.why.removeprefix("guessed ")
    why = f"most like {nearest}: not sure enough to name it ({by})"
    return Software(None, None, None, False, why)


def used(
    profiles: Iterable[ConnectionProfile], client_id: str | None, whole: ConnectionProfiles
) -> dict[int, dict[int, int | None]]:
    """API key -> version -> the last version that its broker offers, None if that is not known."""
    out: dict[int, dict[int, int | None]] = {}
    for profile in profiles:
        offer = whole.offer(profile)
        for one, key, version in profile.uses:
            if one == client_id:
                last = offer.ranges.get(key, (0, None))[1] if offer is not None else None
                versions = out.setdefault(key, {})
                versions[version] = last if versions.get(version) is None else versions[version]
    return out


def asks_of(profiles: Iterable[ConnectionProfile]) -> tuple[set[int], bool]:
    """Version of the first ApiVersions request of each connection, after its login if there is one; and whether beginnings were
    captured.

    A Java client requests version 0 before its login, and its own version after it.
    """
    found = set()
    for profile in profiles:
        login = next((step.exchange for step in profile.opening if step.key == HANDSHAKE), None)
        behind = [probe for probe in profile.probes if login is not None and probe.step.exchange > login]
        if profile.probes:
            found.add((behind or profile.probes)[0].step.version)
    return found, any(not profile.midstream for profile in profiles)


def opening_of(profile: ConnectionProfile, count: int) -> tuple[str, ...]:
    """First requests as `Metadata0`."""
    return tuple(f"{api_name(step.key)}{step.version}" for step in profile.opening[:count])


def fits(library: Profile, found: dict[int, dict[int, int | None]], profiles: Sequence[ConnectionProfile]) -> bool:
    """Whether the profile has everything that a client used."""
    for key, versions in found.items():
        if key == API_VERSIONS:
            continue
        known = library.versions.get(key)
        if known is None:
            return False
        for version, last in versions.items():
            allowed = known if last is None or library.probes is None else tuple(min(one, last) for one in known)
            if version not in allowed:
                return False
    return library.seldom or opens(library, profiles)


def opens(library: Profile, profiles: Sequence[ConnectionProfile]) -> bool:
    """Whether one of the connections begins as the library's connections do, if these have a beginning of their own."""
    size = len(library.opening)
    return not size or any(opening_of(profile, size) == library.opening for profile in profiles if not profile.midstream)


def java_releases(found: dict[int, dict[int, int | None]], probes: set[int]) -> list[str]:
    """Releases of the Java client, which does not name itself before 2.4, that would have used these versions."""
    known = releases()
    first = known.index(JAVA_ASKS_SINCE)
    some = known[first : known.index(JAVA_SAYS_SINCE)] if probes else known[:first]
    return [release for release in some if java_fits(release, found, probes)]


def java_fits(release: str, found: dict[int, dict[int, int | None]], probes: set[int]) -> bool:
    """The Java client uses the highest version that it and the broker have."""
    for key, versions in found.items():
        mine = taken(key, release)
        if mine is None:
            return False
        if key == API_VERSIONS:
            if probes != {mine.versions[1]}:
                return False
            continue
        version, last = max(versions.items(), key=lambda pair: pair[0])
        if version != (mine.versions[1] if last is None or not probes else min(mine.versions[1], last)):
            return False
    return True


def java_login(profiles: Sequence[ConnectionProfile], found: dict[int, dict[int, int | None]]) -> Software | None:
    """A Java client whose login did not succeed: it names itself only in its second ApiVersions request, after the login.

    The first has version 0 (SaslClientAuthenticator). No other library that begins so sends SaslAuthenticate v2 next, which the
    Java client has since 2.5.
    """
    if not set(found) <= LOGIN_APIS:
        return None
    for profile in profiles:
        keys = [(step.key, step.version) for step in profile.opening[:3]]
        if keys[:2] == [(API_VERSIONS, 0), (HANDSHAKE, 1)] and keys[2:3] == [(AUTHENTICATE, 2)]:
            evidence = "its login: ApiVersions v0, SaslHandshake v1, SaslAuthenticate v2, as Java clients send it"
            return Software(JAVA, "2.5 or later", JAVA, True, f"guessed by {evidence}", False, 0.8, (evidence,))
    return None


def guessed(profiles: Sequence[ConnectionProfile], client_id: str | None, whole: ConnectionProfiles) -> Software:
    """The library that fits all of the evidence."""
    found = used(profiles, client_id, whole)
    probes, begun = asks_of(profiles)
    _, hint = hint_of(client_id)
    nothing = Software(None, None, None, False, "")
    if not begun:
        if hint is None:
            return replace(nothing, why="its connections had begun before the capture")
        return by_id(hint, client_id)
    if len(found.keys() - {API_VERSIONS}) < LEAST_APIS:
        return by_id(hint, client_id) if hint is not None else replace(nothing, why="too few different requests to tell")
    before = java_login(profiles, found)
    if before is not None:
        return before
    matches: dict[str, list[str]] = {}
    for profile in PROFILES:
        of_profile = {profile.probes} if profile.probes is not None else set()
        if of_profile == probes and fits(profile, found, profiles):
            matches.setdefault(profile.family, []).append(profile.releases)
    java = java_releases(found, probes)
    if java:
        matches.setdefault(JAVA, []).append(java[0] if len(java) == 1 else f"{java[0]}-{java[-1]}")
    opened = {p.family for p in PROFILES if p.opening and p.releases in matches.get(p.family, ()) and opens(p, profiles)}
    shown = {trait for profile in profiles for trait in profile.traits}
    fitting = set(matches)
    left = chosen(matches, opened, shown, profiles, hint)
    text = ", ".join(f"{api_name(key)} {'/'.join(map(str, sorted(versions)))}" for key, versions in sorted(found.items())[:4])
    pinned = "" if probes else ", sent without an ApiVersions request"
    if len(left) == 1:
        ((family, some),) = left.items()
        evidence, confidence = weighed(
            family, f"its versions ({text}{pinned})", found, client_id, len(fitting), family in opened, profiles
        )
        why = f"guessed by {listed(evidence)}"
        return Software(family, " or ".join(some), family, True, why, False, confidence, evidence)
    alone = {UNMISTAKABLE[trait] for trait in shown & UNMISTAKABLE.keys()}
    if not matches and len(alone) == 1 and not any(excluded(family, profiles) for family in alone):
        family = alone.pop()
        evidence = tuple(f"{kind} {value}" for kind, value in sorted(shown & UNMISTAKABLE.keys()))
        return Software(family, None, family, True, f"guessed by {listed(evidence)}", False, 0.6, evidence)
    if hint is not None and not matches:
        return by_id(hint, client_id)
    if left:
        both = ", ".join(f"{family} {' or '.join(some)}" for family, some in sorted(left.items()))
        return replace(nothing, why=f"its versions ({text}{pinned}) fit several: {both}")
    if matches:
        both = ", ".join(sorted(matches))
        return replace(nothing, why=f"its versions ({text}{pinned}) fit {both}, and its correlation ids do not")
    return replace(nothing, why=f"its versions ({text}{pinned}) fit no library that kcap knows")


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def chosen(
    matches: dict[str, list[str]], opened: set[str], shown: set[Trait], profiles: Sequence[ConnectionProfile], hint: str | None
) -> dict[str, list[str]]:
    """Of the libraries that the versions fit (name -> releases), those that remain after all other evidence: one if it is
    clear."""
    left = {family: some for family, some in matches.items() if SCALA in some or not excluded(family, profiles)}
    if len(left) < 2:
        return left
    best, *others = sorted(((weight(family, shown)[0], family) for family in left), reverse=True)
    if best[0] - others[0][0] >= CLEARLY:
        return {best[1]: left[best[1]]}
    for family in (hint, *(opened & left.keys() if len(opened & left.keys()) == 1 else ())):
        if family in left:
            return {family: left[family]}
    return left


def weighed(
    family: str, first: str, found: dict[int, dict[int, int | None]], client_id: str | None, fitting: int, opened: bool,
    profiles: Sequence[ConnectionProfile],
) -> tuple[tuple[str, ...], float]:  # fmt: skip
    """The evidence for a library, and the confidence that it gives. `fitting`: libraries that the versions fit; `opened`: the
    order of the first requests is the library's."""
    evidence, confidence = [first], 0.7 if fitting == 1 else 0.5
    _, hint = hint_of(client_id)
    if hint == family:
        evidence.append(ITS_ID)
        confidence += 0.2
    elif hint is not None:
        confidence -= 0.3
    if opened:
        evidence.append("the order of its first requests")
        confidence += 0.1
    ids = numbered(family, profiles)
    if ids is not None:
        evidence.append(ids)
        confidence += 0.1
    score, defaults = weight(family, {trait for profile in profiles for trait in profile.traits})
    if score > 0:
        evidence.append(f"the library's defaults ({', '.join(defaults)})")
    confidence += 0.03 * max(-4, min(score, 4))
    if len(found) > MANY_APIS:
        evidence.append(f"{len(found)} APIs that all fit")
        confidence += 0.05
    return tuple(evidence), round(max(0.1, min(confidence, 0.95)), 2)


def by_id(family: str, client_id: str | None) -> Software:
    """A guess by the client id alone, which anyone may choose: the version, if the id contains it."""
    return Software(family, release_in(client_id), family, True, f"guessed by {ITS_ID}", False, 0.4, (ITS_ID,))


def release_in(client_id: str | None) -> str | None:
    """The library's release in a default client id such as `kafka-python-2.0.2`."""
    release = re.fullmatch(r"(?:kafka-python|aiokafka)-(\d+(?:\.\d+)+)(?:-\S*)?", client_id or "")
    return release[1] if release else None
