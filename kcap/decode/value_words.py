"""Values as text: a field's name, type and value in, what a person reads out. Tables over Kafka's field names."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from kcap.schema.errors import error_name, retriable
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


_ACL_RESOURCES: Final = _numbered(
    ("unknown", "any", "topic", "group", "cluster", "transactional id", "delegation token", "user")
)
_CONFIG_RESOURCES: Final = _named(
    {0: "unknown", 2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
)
"""ResourceType.java of ACLs, and ConfigResource.Type."""


def _api(value: Any) -> str:
    return f"{value} {api_name(value) or 'unknown'}"


def error_words(value: int) -> str:
    """An error code with Kafka's name, and whether clients may retry."""
    return f"{value} {error_name(value) or 'unknown'}" + (" (retriable)" if retriable(value) else "")


def _allowed(value: Any) -> str:
    """A bit field of ACL operations (KIP-430). The smallest int32 means that they were not requested."""
    if value == -(1 << 31):
        return f"{value} not requested"
    return f"{value} " + (", ".join(name for bit, name in enumerate(_OPERATIONS) if value >> bit & 1) or "none")


def timestamp_words(value: int) -> str:
    """Milliseconds since the epoch, followed by the time in UTC if the value looks like one."""
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
    "ConfigType": _numbered(("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")),
    "Operation": _numbered(_OPERATIONS),
    "AuthorizedOperations": _allowed,
    "ClusterAuthorizedOperations": _allowed,
    "TopicAuthorizedOperations": _allowed,
    "MatchType": _numbered(("exact name", "default", "any name")),
    "EndpointType": _numbered(("unknown", "brokers", "controllers")),
    "UpgradeType": _numbered(("unknown", "upgrade", "safe downgrade", "unsafe downgrade")),
    "MemberType": _named({-1: "unknown", 0: "classic", 1: "consumer"}),
    "LeaderRecoveryState": _numbered(("recovered", "recovering")),
    "TransactionStatus": _numbered(
        ("empty", "ongoing", "prepare commit", "prepare abort", "complete commit", "complete abort", "dead", "prepare fence")
    ),
    "AcknowledgeTypes": _numbered(("gap", "accept", "release", "reject", "renew")),
    "ShareAcquireMode": _numbered(("batch optimized", "record limit")),
    "DeliveryState": _named({0: "available", 2: "acknowledged", 4: "archived"}),
    "RemoteLogSegmentState": _numbered(("copy started", "copy finished", "delete started", "delete finished")),
    "RemotePartitionDeleteState": _numbered(("delete marked", "delete started", "delete finished")),
    "ZkMigrationState": _numbered(("none", "pre-migration", "migration", "post-migration", "post-migration done")),
    "AcceptedCompressionTypes": _numbered(CODECS),
    "SessionEpoch": _named({-1: "no session", 0: "new session"}),
    "ShareSessionEpoch": _named({-1: "close session", 0: "new session"}),
    "Timestamp": _named({-1: "latest", -2: "earliest", -3: "max timestamp", -4: "earliest local", -5: "latest tiered"}),
}
"""Field name -> function that makes the text. Sources: ListOffsetsRequest, FindCoordinatorRequest, CompressionType,
ElectionType, ScramMechanism, PatternType, AclPermissionType, AclOperation, AlterConfigOp, DescribeConfigsResponse.ConfigSource
and ConfigType, DescribeClientQuotasRequest, DescribeClusterRequest, FeatureUpdate.UpgradeType,
ConsumerGroupDescribeResponse.json, LeaderRecoveryState, TransactionState, AcknowledgeType, ShareAcquireMode, ShareFetch state
machine, RemoteLogSegmentState, RemotePartitionDeleteState, ZkMigrationState (all .java but the one).
"""

_ACL_MESSAGES: Final = ("AccessControl", "CreateAcls", "DeleteAcls", "DescribeAcls")
"""Beginnings of the names of messages whose resource types are those of ACLs; in all others they are those of configs."""


def words(name: str, kind: str, value: Any, message: str = "") -> str:
    """What a person reads for the value of a field of a message; empty for structs."""
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if kind == "int16" and name.endswith(ERROR_SUFFIX):
        return error_words(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if name.startswith("ResourceType") and kind == "int8":
        return (_ACL_RESOURCES if message.startswith(_ACL_MESSAGES) else _CONFIG_RESOURCES)(value)
    shown = _FIELDS[name](value) if name in _FIELDS else str(value)
    if kind == "int64" and shown == str(value):
        return timestamp_words(value) if name.endswith(("Ms", "Timestamp")) else shown
    return shown
