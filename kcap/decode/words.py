"""Values in words: a field's name, type and value in, what a person reads out. Tables over Kafka's field names."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from kcap.schema.errors import error_name
from kcap.schema.quirks import ERROR_SUFFIX
from kcap.schema.registry import api_name
from kcap.wire.codecs import CODECS

_YEAR_2000_MS: Final = 946_684_800_000
_YEAR_2100_MS: Final = 4_102_444_800_000

_PATTERNS: Final = ("unknown", "any", "match", "literal", "prefixed")
_OPERATIONS: Final = (
    "unknown",
    "any",
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster action",
    "describe configs",
    "alter configs",
    "idempotent write",
    "create tokens",
    "describe tokens",
    "two phase commit",
)


def _named(table: dict[int, str]) -> Callable[[Any], str]:
    return lambda value: f"{value} {table[value]}" if value in table else str(value)


def _numbered(names: tuple[str, ...]) -> Callable[[Any], str]:
    return _named(dict(enumerate(names)))


def _api(value: Any) -> str:
    return f"{value} {api_name(value) or 'unknown'}"


def error_words(value: int) -> str:
    """An error code with Kafka's name."""
    return f"{value} {error_name(value) or 'unknown'}"


def timestamp_words(value: int) -> str:
    """Milliseconds since the epoch with the time in UTC, where that is what they look like."""
    if not _YEAR_2000_MS <= value < _YEAR_2100_MS:
        return str(value)
    time = datetime.fromtimestamp(value // 1000, UTC)
    return f"{value} {time:%Y-%m-%dT%H:%M:%S}.{value % 1000:03}Z"


_FIELDS: Final[dict[str, Callable[[Any], str]]] = {
    "RequestApiKey": _api,
    "ApiKey": _api,
    "Acks": _named({-1: "all", 0: "none", 1: "leader"}),
    "IsolationLevel": _named({0: "read_uncommitted", 1: "read_committed"}),
    "KeyType": _named({0: "group", 1: "transaction", 2: "share"}),
    "CompressionType": _numbered(CODECS),
    "ElectionType": _numbered(("preferred", "unclean")),
    "Mechanism": _numbered(("unknown", "SCRAM-SHA-256", "SCRAM-SHA-512")),
    "PatternType": _numbered(_PATTERNS),
    "PatternTypeFilter": _numbered(_PATTERNS),
    "ResourcePatternType": _numbered(_PATTERNS),
    "PermissionType": _numbered(("unknown", "any", "deny", "allow")),
    "ConfigOperation": _numbered(("set", "delete", "append", "subtract")),
    "ConfigSource": _numbered(
        (
            "unknown",
            "topic config",
            "dynamic broker config",
            "dynamic default broker config",
            "static broker config",
            "default config",
            "dynamic broker logger config",
            "client metrics config",
            "group config",
        )
    ),
    "Operation": _numbered(_OPERATIONS),
    "SessionEpoch": _named({-1: "no session", 0: "new session"}),
    "ShareSessionEpoch": _named({-1: "close session", 0: "new session"}),
    "Timestamp": _named({-1: "latest", -2: "earliest", -3: "max timestamp", -4: "earliest local", -5: "latest tiered"}),
}
"""Field name -> words. Sources: ListOffsetsRequest, FindCoordinatorRequest, CompressionType, ElectionType, ScramMechanism,
PatternType, AclPermissionType, AclOperation, AlterConfigOp, DescribeConfigsResponse.ConfigSource (all .java)."""


def words(name: str, kind: str, value: Any) -> str:
    """What a person reads for the value of a field; empty for structs."""
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if kind == "int16" and name.endswith(ERROR_SUFFIX):
        return error_words(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = _FIELDS[name](value) if name in _FIELDS else str(value)
    if kind == "int64" and shown == str(value):
        return timestamp_words(value) if name.endswith(("Ms", "Timestamp")) else shown
    return shown
