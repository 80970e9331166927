"""What is known of each API: names, version ranges, header versions.

API keys and versions in, plain values out. Unknown ones give None or the most likely header, never an exception. Law: every
number comes from the facts or from `kcap.schema.quirks`, none from a formula.
"""

import functools
from bisect import bisect_right

from kcap.schema.facts import Api, MessageSpec, apis, message, message_names
from kcap.schema.quirks import REQUEST_HEADERS, RESPONSE_HEADERS

REQUEST, RESPONSE = 0, 1
"""Numbers of the two sides of an exchange in all tables of programs."""

_REQUEST_HEADER_UNKNOWN = 1
_RESPONSE_HEADER_UNKNOWN = 0


def api_keys() -> list[int]:
    """Every API key of any Kafka release, ascending."""
    return list(apis())


def api(key: int) -> Api | None:
    """All facts of one API, including its version range in each release; None for an unknown key."""
    return apis().get(key)


def api_name(key: int) -> str | None:
    """Kafka's own name (`Produce`, `ListOffsets`), None for an unknown key."""
    found = apis().get(key)
    return found.name if found else None


@functools.cache
def _keys_by_name() -> dict[str, int]:
    return {found.name: key for key, found in apis().items()}


def api_key(name: str) -> int | None:
    """The key of an API by Kafka's name; None if no API has this name."""
    return _keys_by_name().get(name)


def version_range(key: int) -> tuple[int, int] | None:
    """First and last version of any release, unstable ones included; None for an unknown key."""
    found = apis().get(key)
    return found.versions if found else None


def known(key: int, version: int) -> bool:
    """Whether some Kafka release has this version of this API."""
    found = apis().get(key)
    return found is not None and found.versions[0] <= version <= found.versions[1]


def _step(steps: tuple[tuple[int, int], ...], version: int) -> int:
    """The header version of the last step at or before `version`. A version above the newest one has the newest header."""
    return steps[max(0, bisect_right(steps, (version, 1 << 16)) - 1)][1]


def request_header_version(key: int, version: int) -> int:
    """0 without a client id, 1 with it, 2 with a tag section after it (KIP-482); 1 for an unknown key."""
    quirk = REQUEST_HEADERS.get((key, version))
    if quirk is not None:
        return quirk
    found = apis().get(key)
    return _step(found.request_headers, version) if found else _REQUEST_HEADER_UNKNOWN


def response_header_version(key: int, version: int) -> int:
    """0, or 1 with a tag section after the correlation id (KIP-482); 0 for an unknown key."""
    quirk = RESPONSE_HEADERS.get(key)
    if quirk is not None:
        return quirk
    found = apis().get(key)
    return _step(found.response_headers, version) if found else _RESPONSE_HEADER_UNKNOWN


def body(key: int, side: int) -> MessageSpec | None:
    """The message of an API's request (side 0) or response (side 1), None for an unknown key."""
    found = apis().get(key)
    return message(found.name + ("Request", "Response")[side]) if found else None


@functools.cache
def _records(family: str, kind: str) -> dict[int, str]:
    found = (message(name) for name in message_names())
    return {m.key: m.name for m in found if m and m.key is not None and (m.family, m.kind) == (family, kind)}


def record_message(family: str, kind: str, record_type: int) -> MessageSpec | None:
    """The schema of a record in an internal topic: `("group-coordinator", "coordinator-value", 1)` is OffsetCommitValue."""
    name = _records(family, kind).get(record_type)
    return message(name) if name else None
