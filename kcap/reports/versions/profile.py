"""The profile of one connection: its opening, its ApiVersions requests, the versions that it used, how it ended.

In: what a pass over captures finds of it. Out: plain values. Law: `open` of a profile returns the profile itself, so that
reports accept profiles both as they are and deduplicated (`kcap.reports.versions.profile_store`).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import Server
from kcap.schema.quirks import API_VERSIONS

if TYPE_CHECKING:
    from kcap.identities import Identity


HANDSHAKE, AUTHENTICATE = 17, 36
LOGIN_APIS: Final = frozenset({API_VERSIONS, HANDSHAKE, AUTHENTICATE})


@dataclass(frozen=True, slots=True)
class ProfiledCall:
    """One of a connection's first requests."""

    exchange: int
    key: int
    version: int
    outcome: str
    reason: str | None
    error: int | None
    requested_ns: int | None
    responded_ns: int | None


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    """An ApiVersions response."""

    error: int | None
    form: int
    """Version of the body; 0 for a response to a version that the broker does not know (KIP-511)."""
    apis: int
    features: dict[str, Any] = field(default_factory=dict)
    offer: Offer | None = None
    legible: bool = True
    """Whether the body can be read to its end in that version; a truncated body cannot."""


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest:
    """An ApiVersions request of a connection and its response."""

    step: ProfiledCall
    answer: ApiVersionsResponse | None
    """None if there is none, or it was not captured."""


@dataclass(slots=True)
class Use:
    """One version of one API as one connection used it under one client id."""

    count: int = 0
    first_ns: int = 1 << 62
    last_ns: int = 0
    example: int = 1 << 62
    """Number of the first exchange."""
    refused: int = 0
    """Number of responses with UNSUPPORTED_VERSION."""
    served: int = 0
    """Number of responses other than UNSUPPORTED_VERSION, and of requests that expect no response."""
    died: int = 0
    """Number of requests without a response when the connection was closed."""
    died_example: int | None = None
    codecs: int = 0
    """Bit mask of codecs, as in batches."""
    verdicts: Counter[int] = field(default_factory=Counter)


Trait = tuple[str, str]
"""A default setting of libraries and its value: `assignors`, `range,roundrobin`."""


@dataclass(slots=True)
class ConnectionProfile:
    """One connection that spoke Kafka."""

    identity: "Identity"
    software: Software | None = None
    principal: str | None = None
    """The name of the login, if the wire shows it in clear text."""
    offer: Offer | None = None
    """The API versions that the broker offered it."""
    midstream: bool = False
    opening: list[ProfiledCall] = field(default_factory=list)
    probes: list[ApiVersionsRequest] = field(default_factory=list)
    probe_count: int = 0
    uses: dict[tuple[str | None, int, int], Use] = field(default_factory=dict)
    """(client id, key, version) -> use."""
    errors: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(key, error code) of the two SASL requests -> count."""
    error_example: dict[tuple[int, int], int] = field(default_factory=dict)
    mechanism: str | None = None
    mechanisms: tuple[str, ...] = ()
    """The mechanisms that the broker offered when it refused the requested one."""
    ids_from: int | None = None
    """The lower correlation id of its first two requests, 2 for any higher one; None if neither was captured."""
    traits: set[Trait] = field(default_factory=set)
    """The library defaults that its first requests show."""
    line: dict[str, Any] = field(default_factory=dict)
    """The columns `LINE` of its row of `connections`."""

    @property
    def uid(self) -> str:
        """The connection."""
        return self.identity.uid

    @property
    def server(self) -> Server:
        """The broker's address."""
        return self.identity.server_ip, self.identity.server_port

    def open(self) -> "ConnectionProfile":
        """The profile itself."""
        return self

    def open_for(self, _: str | None) -> "ConnectionProfile":
        """The profile itself: the functions that use it select the client id anyway."""
        return self


LINE: Final = (
    "connection", "client_ip", "client_port", "server_ip", "server_port", "phase", "detail", "began", "ended", "packets",
    "client_packets", "server_packets", "client_captured", "server_captured", "server_framed", "client_missing",
    "server_missing", "exchanges", "first_ns", "last_ns", "closed_by", "tls_version", "tls_server_subject", "alerts",
    "hello_bytes",
)  # fmt: skip
"""Columns of `connections` that are retained, and what the analyzer reports beside them."""


def is_proven(errors: Iterable[tuple[int, int]], used: Iterable[tuple[int, bool]]) -> bool:
    """Whether a principal is more than the name in a token that the broker then refused: no login failed, or another request
    was served. `errors`: APIs of SASL with their error codes; `used`: APIs, and whether some were served."""
    refused = any(key == AUTHENTICATE for key, _ in errors)
    return not refused or any(served for key, served in used if key not in LOGIN_APIS)
