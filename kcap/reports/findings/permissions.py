"""The operations that a principal lacks where a broker refuses its requests.

In: refused requests: their APIs, and the kind of resource that the error names. Out: the operations in Kafka's words, and the
next step. Law: if the operation of one of the APIs is not known, none is named.

Source: the table of operations and resources on protocols in Kafka's documentation (security, authorization and ACLs).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kcap.reports.findings.model import named

OPERATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "TOPIC": {
        "Write": "Produce AddPartitionsToTxn",
        "Read": "Fetch ShareFetch ShareAcknowledge OffsetCommit TxnOffsetCommit",
        "Describe": "Metadata ListOffsets OffsetFetch OffsetForLeaderEpoch DescribeTopicPartitions ConsumerGroupHeartbeat",
        "Create": "CreateTopics", "Delete": "DeleteTopics DeleteRecords", "Alter": "CreatePartitions",
        "DescribeConfigs": "DescribeConfigs", "AlterConfigs": "AlterConfigs IncrementalAlterConfigs",
    },
    "GROUP": {
        "Read": "JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit TxnOffsetCommit AddOffsetsToTxn ConsumerGroupHeartbeat "
        "ShareGroupHeartbeat StreamsGroupHeartbeat ShareFetch ShareAcknowledge",
        "Describe": "FindCoordinator OffsetFetch DescribeGroups ConsumerGroupDescribe ShareGroupDescribe",
        "Delete": "DeleteGroups OffsetDelete",
    },
    "TRANSACTIONAL_ID": {
        "Write": "InitProducerId Produce AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit",
        "Describe": "FindCoordinator DescribeTransactions",
    },
    "CLUSTER": {
        "IdempotentWrite": "InitProducerId Produce", "Create": "CreateTopics", "Alter": "CreateAcls DeleteAcls",
        "Describe": "DescribeAcls DescribeLogDirs DescribeCluster DescribeQuorum",
    },
}  # fmt: skip
"""Kind of the resource -> operation -> the APIs that need it."""
OPTIONS: Final = {"TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id", "CLUSTER": "--cluster"}
"""Kind of the resource -> option of kafka-acls.sh."""
INCLUDING: Final = {"TOPIC": ("Read", "Write"), "GROUP": ("Read",), "TRANSACTIONAL_ID": ("Write",)}
"""Kind of the resource -> operations that clients go on to need, and that include Describe (StandardAuthorizerData)."""
PLAIN: Final = frozenset("-._@/")
"""Characters beside letters and digits that no shell changes."""


def operations(kind: str, apis: Iterable[str]) -> list[str]:
    """The operations that these APIs need on a kind of resource; empty if that of one is not known."""
    known = {api: operation for operation, names in OPERATIONS.get(kind, {}).items() for api in names.split()}
    needed = {known.get(api) for api in apis}
    return [] if None in needed else sorted(one for one in needed if one)


def next_step(principal: str, kind: str, apis: Iterable[str], resources: Collection[str]) -> str | None:
    """What to grant, with a command for a principal and a resource whose names a shell leaves as they are; None if the
    operation is not known.

    `kind`: that of the error, such as `TOPIC`. `principal`: the name of the login, empty if it is not known.
    """
    needed = operations(kind, apis)
    if not needed:
        return None
    thing, looks = kind.replace("_", " ").lower(), needed == ["Describe"] and kind in INCLUDING
    granted = list(INCLUDING[kind]) if looks else needed
    words = f"Grant {' or '.join(granted) if looks else named(granted)} on the {thing}"
    if looks:
        words += (
            f", which include{'s' * (len(granted) == 1)} the refused Describe; a tool that only looks needs no more than that"
        )
    if principal and len(resources) == (kind != "CLUSTER") and all(map(is_plain, (principal, *resources))):
        operation = "OPERATION" if looks and len(granted) > 1 else " --operation ".join(granted)
        target = " ".join([OPTIONS[kind], *resources])
        words += (
            f" (kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:{principal} --operation {operation} "
            f"{target})"
        )
    return f"{words}." if kind == "CLUSTER" else f"{words}, or remove the {thing} from the client's configuration."


def is_plain(name: str) -> bool:
    """Whether a name can be given to a shell as it is."""
    return bool(name) and not name.startswith("-") and all(one.isascii() and (one.isalnum() or one in PLAIN) for one in name)
