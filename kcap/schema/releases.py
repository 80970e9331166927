"""Which versions of each API a Kafka release accepts, advertises, deprecates and has removed.

API keys, versions and releases in, ranges and release names out. Law: every result comes from the facts, which the importer
took from the releases themselves, or from `quirks`. Unknown keys, versions and releases give None or False, never an exception.
"""

import functools
from itertools import pairwise

from kcap.schema.facts import Release, Versions, apis, releases, within
from kcap.schema.quirks import ADVERTISED


@functools.cache
def _ranges(api_key: int) -> dict[str, Release]:
    """Release -> the versions it accepts. A release that is missing does not have the API."""
    api = apis().get(api_key)
    changes = dict(api.changes) if api else {}
    found: dict[str, Release] = {}
    current: Release | None = None
    for name in releases():
        current = changes.get(name, current)
        if current is not None:
            found[name] = current
    return found


def line(release: str) -> str:
    """The release without the number of an early patch: `4.0` for `4.0.0`."""
    parts = release.split(".")
    return ".".join(parts[: 3 if parts[0] == "0" else 2])


def taken(api_key: int, release: str) -> Release | None:
    """All versions of an API that a release's classes support; None if it does not have the API."""
    return _ranges(api_key).get(release)


def stable(found: Release) -> Versions | None:
    """The final versions. The last one may be unstable; brokers refuse it by default (`latestVersionUnstable`)."""
    first, last = found.versions[0], found.versions[1] - found.unstable
    return (first, last) if first <= last else None


def accepts(api_key: int, version: int, release: str) -> bool:
    """Whether a broker of that release, in its default configuration, accepts this version of this API."""
    found = taken(api_key, release)
    return found is not None and within(stable(found), version)


def advertised(api_key: int, release: str) -> Versions | None:
    """First and last version that a broker of that release advertises in its ApiVersions response; None if there are none."""
    found = taken(api_key, release)
    final = stable(found) if found else None
    if final is None:
        return None
    known = releases()
    for since, first in ADVERTISED.get(api_key, ()):
        if known.index(release) >= known.index(since):
            final = first, final[1]
    return final


def first_release(api_key: int, version: int) -> str | None:
    """The first release that has this version, even as an unstable one; None if no release has it."""
    return next((name for name, found in _ranges(api_key).items() if within(found.versions, version)), None)


@functools.cache
def removed_in(api_key: int, version: int) -> str | None:
    """The first release that no longer accepts this version (KIP-896 and others); None if the newest does or none ever did."""
    having = [name for name, found in _ranges(api_key).items() if within(found.versions, version)]
    known = releases()
    after = known.index(having[-1]) + 1 if having else len(known)
    return line(known[after]) if after < len(known) else None


@functools.cache
def absent_from(api_key: int, version: int) -> tuple[str, str] | None:
    """The release that does not accept this version although earlier ones did, and the next one, which accepts it again
    (JoinGroup 0-1 in 4.0.0, KAFKA-19444); None if there is no such release."""
    having = [name for name in releases() if (found := taken(api_key, name)) is not None and within(found.versions, version)]
    known = releases()
    for one, other in pairwise(map(known.index, having)):
        if other > one + 1:
            return known[one + 1], known[other]
    return None


@functools.cache
def deprecated_in(api_key: int, version: int) -> str | None:
    """The first release that deprecated this version without a later one reverting that; None if there is none."""
    since: str | None = None
    for name, found in _ranges(api_key).items():
        if within(found.deprecated, version):
            since = since or line(name)
        elif within(found.versions, version):
            since = None
    return since
