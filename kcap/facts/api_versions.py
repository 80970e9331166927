"""Reads the bodies of ApiVersions requests and responses: the client's software and the broker's version ranges.

In: bodies. Out: `Software`, `Offer`. Law: an error response offers nothing; nothing raises, and what a body lacks is None.
"""

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from typing import Final

from kcap import limits
from kcap.decode.json import read_json
from kcap.decode.plan import plan_for
from kcap.schema.quirks import API_VERSIONS, response_version
from kcap.schema.registry import REQUEST, RESPONSE

SOFTWARE_SINCE: Final = 3
"""First version of an ApiVersions request that names the client's software (KIP-511)."""

Software = tuple[str, str]
"""Name and version of a client library."""


RANGE: Final = Struct(">hhh")
"""Key of an API, its first and its last version."""


class Offer:
    """First and last version of each API that a broker names. It is packed, since the responses of unknown peers may all differ
    and a dictionary takes thirty times as much memory."""

    __slots__ = ("packed",)

    def __init__(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """`ranges`: API key -> first and last version."""
        self.packed = b"".join(RANGE.pack(key, first, last) for key, (first, last) in sorted(ranges.items()))
        """Equal for equal ranges."""

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """API key -> first and last version."""
        return unpacked(self.packed)


@lru_cache(maxsize=64)
def unpacked(packed: bytes) -> Mapping[int, tuple[int, int]]:
    """The ranges of an offer."""
    return {key: (first, last) for key, first, last in RANGE.iter_unpack(packed)}


def offer_of(body: bytes, version: int) -> Offer | None:
    """The offer in the body of a response to an ApiVersions request of that version; None if it is an error or truncated."""
    plan = plan_for(API_VERSIONS, response_version(API_VERSIONS, version, body), RESPONSE)
    if plan is None:
        return None
    reading = read_json(plan, body)
    if reading.undecoded is not None:
        return None  # missing APIs would look as if they were not offered
    value = reading.value
    entries = (value.get("apiKeys") or ())[: limits.OFFERED_APIS_MAX]
    ranges = {entry["apiKey"]: (entry["minVersion"], entry["maxVersion"]) for entry in entries if len(entry) > 2}
    return Offer(ranges) if ranges and value.get("errorCode") == 0 else None


def software_of(body: bytes, version: int, start: int) -> Software | None:
    """The client's software in the body of an ApiVersions request; the body begins at `start`, after the header's tags."""
    plan = plan_for(API_VERSIONS, version, REQUEST) if version >= SOFTWARE_SINCE else None
    value = read_json(plan, body, start).value if plan is not None else {}
    name, release = value.get("clientSoftwareName"), value.get("clientSoftwareVersion")
    return (name, release) if isinstance(name, str) and isinstance(release, str) else None
