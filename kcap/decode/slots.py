"""What the projection takes from a message: the slots, and which fields are stored in them. Pure data and look-ups.

A message's path is its field names from the outermost struct inwards. Law: a scalar slot is filled from the outermost struct,
or from the first element of an array if a later version of the API moved the field into one.
"""

from typing import Final

SLOTS: Final = (
    "throttle_time_ms",
    "error_code",
    "top_error_code",
    "error_count",
    "partition_count",
    "batch_count",
    "record_count",
    "records_bytes",
    "codecs",
    "magics",
    "acks",
    "timeout_ms",
    "max_wait_ms",
    "min_bytes",
    "max_bytes",
    "isolation_level",
    "session_id",
    "session_epoch",
    "generation",
    "producer_id",
    "producer_epoch",
)
"""The integer columns, in order. `codecs` and `magics` are bit masks: bit n is codec or magic n."""

TEXTS: Final = ("group_id", "member_id", "transactional_id")
"""The text columns, as spans; their presence bits follow those of SLOTS."""

SLOT: Final = {name: at for at, name in enumerate(SLOTS)}
TEXT: Final = {name: at for at, name in enumerate(TEXTS)}

(
    THROTTLE,
    ERROR_CODE,
    TOP_ERROR,
    ERROR_COUNT,
    PARTITION_COUNT,
    BATCH_COUNT,
    RECORD_COUNT,
    RECORDS_BYTES,
    CODECS,
    MAGICS,
) = range(10)

WHOLE: Final = sum(
    1 << at for at in (ERROR_CODE, ERROR_COUNT, PARTITION_COUNT, BATCH_COUNT, RECORD_COUNT, RECORDS_BYTES, CODECS, MAGICS)
)
"""Presence bits of slots that are only valid for a message that was read to its end."""

WIDTH: Final = len(SLOTS) + 2 * len(TEXTS)
"""Numbers that the projection stores per message: the integers, then start and end of each text."""

OUTERMOST: Final[dict[str, str]] = {
    "ThrottleTimeMs": "throttle_time_ms",
    "Acks": "acks",
    "TimeoutMs": "timeout_ms",
    "timeoutMs": "timeout_ms",
    "MaxWaitMs": "max_wait_ms",
    "MinBytes": "min_bytes",
    "MaxBytes": "max_bytes",
    "IsolationLevel": "isolation_level",
    "SessionId": "session_id",
    "SessionEpoch": "session_epoch",
    "ShareSessionEpoch": "session_epoch",
    "GenerationId": "generation",
    "GenerationIdOrMemberEpoch": "generation",
    "MemberEpoch": "generation",
    "ProducerId": "producer_id",
    "V3AndBelowProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "V3AndBelowProducerEpoch": "producer_epoch",
    "GroupId": "group_id",
    "MemberId": "member_id",
    "TransactionalId": "transactional_id",
    "V3AndBelowTransactionalId": "transactional_id",
}
"""Field of the outermost struct -> slot."""

NESTED: Final[dict[tuple[str, str], str]] = {
    ("OffsetFetchRequest", "Groups.GroupId"): "group_id",
    ("OffsetFetchRequest", "Groups.MemberId"): "member_id",
    ("OffsetFetchRequest", "Groups.MemberEpoch"): "generation",
    ("OffsetFetchResponse", "Groups.GroupId"): "group_id",
    ("DescribeShareGroupOffsetsRequest", "Groups.GroupId"): "group_id",
    ("LeaveGroupRequest", "Members.MemberId"): "member_id",
    ("AddPartitionsToTxnRequest", "Transactions.TransactionalId"): "transactional_id",
    ("AddPartitionsToTxnRequest", "Transactions.ProducerId"): "producer_id",
    ("AddPartitionsToTxnRequest", "Transactions.ProducerEpoch"): "producer_epoch",
    ("WriteTxnMarkersRequest", "Markers.ProducerId"): "producer_id",
    ("WriteTxnMarkersRequest", "Markers.ProducerEpoch"): "producer_epoch",
}
"""(message, path) -> slot, if newer versions have several; the first one is stored for the message."""

PARTITION_FIELDS: Final = frozenset({"Partition", "PartitionIndex", "PartitionId", "Index"})
"""An array whose struct starts with one of these int32 fields has one element per partition."""

PARTITION_NUMBERS: Final = frozenset({"Partitions", "PartitionIndexes"})
"""int32 arrays with these names list partitions."""

NOT_COUNTED: Final = frozenset({"ForgottenTopicsData", "Assignments"})
"""Arrays whose partitions are not what the message is about: those that a fetch session drops, and those of a new topic."""


WITH_PARTITIONS: Final = frozenset(
    {
        "Produce", "Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "DeleteRecords", "OffsetForLeaderEpoch",
        "AddPartitionsToTxn", "TxnOffsetCommit", "WriteTxnMarkers", "ShareFetch", "ShareAcknowledge", "Metadata",
    }
)  # fmt: skip
"""APIs whose partitions are read one by one."""
LISTING: Final = "Metadata"
"""The one of these APIs that is not about partitions but lists their leaders. Its partitions become rows only on request."""

ELEMENTS: Final = (
    "message", "topic", "group_start", "group_end", "records_start", "records_end",
    "partition", "error_code", "fetch_offset", "base_offset", "high_watermark", "last_stable_offset", "log_start_offset",
    "committed_offset", "timestamp_ms", "leader_epoch", "leader_id", "delivery_count",
    "acknowledge_error",
)  # fmt: skip
"""The columns of the side buffer of partitions. `topic` is an entry of the side buffer of topics."""
ELEMENT_AT: Final = {name: at for at, name in enumerate(ELEMENTS)}
MESSAGE, TOPIC, GROUP_START, GROUP_END, RECORDS_START, RECORDS_END, PARTITION = range(7)
NOTHING: Final = -0x4B434150_4B434151
"""Value of a column that a partition's message does not have. No field has this number for another reason."""

PARTITION_COLUMNS: Final[dict[str, str]] = {
    "Partition": "partition",
    "PartitionIndex": "partition",
    "Index": "partition",
    "ErrorCode": "error_code",
    "PartitionErrorCode": "error_code",
    "AcknowledgeErrorCode": "acknowledge_error",
    "FetchOffset": "fetch_offset",
    "BaseOffset": "base_offset",
    "Offset": "base_offset",
    "EndOffset": "base_offset",
    "HighWatermark": "high_watermark",
    "LastStableOffset": "last_stable_offset",
    "LogStartOffset": "log_start_offset",
    "LowWatermark": "log_start_offset",
    "CommittedOffset": "committed_offset",
    "Timestamp": "timestamp_ms",
    "LogAppendTimeMs": "timestamp_ms",
    "CommitTimestamp": "timestamp_ms",
    "LeaderEpoch": "leader_epoch",
    "LeaderId": "leader_id",
    "CommittedLeaderEpoch": "leader_epoch",
    "CurrentLeaderEpoch": "leader_epoch",
}
"""Field of a partition's struct -> column."""
LARGEST_COLUMNS: Final = {("ShareFetchResponse", "AcquiredRecords.DeliveryCount"): "delivery_count"}
"""(message, path within a partition's struct) -> column, for a field in an array of which the largest value is stored."""

NOT_OF_PARTITIONS: Final = frozenset(
    {
        ("DeleteRecordsRequest", "Offset"),  # up to where to delete, not a position of data
        ("FetchRequest", "LogStartOffset"),  # the follower's own
        ("OffsetForLeaderEpochRequest", "CurrentLeaderEpoch"),  # in addition to the epoch that is requested
    }
)
"""(message, field) that matches a column by name but means something else."""


def partition_column(message: str, field: str) -> str | None:
    """The column of the side buffer of partitions for a field of a partition's struct; None for most."""
    return None if (message, field) in NOT_OF_PARTITIONS else PARTITION_COLUMNS.get(field)


def slot_of(message: str, path: tuple[str, ...]) -> str | None:
    """The slot for the field at `path` of a request or response; None for most."""
    if len(path) == 1:
        return OUTERMOST.get(path[0])
    return NESTED.get((message, ".".join(path)))
