"""Finds the plan for a bytes field that holds a message: message, field and bytes in, plan out.

Law: a blob is decoded only if its schema reads it to the last byte. Bytes that another program put there (Kafka Connect uses
the same fields) remain bytes.
"""

from typing import Final

from kcap.decode.json import read_json
from kcap.decode.plan import Plan, plan_of

VERSION_BYTES: Final = 2
"""Every blob here starts with the int16 version of its schema."""

BLOBS: Final = {
    ("JoinGroupRequest", "Metadata"): "ConsumerProtocolSubscription",
    ("JoinGroupResponse", "Metadata"): "ConsumerProtocolSubscription",
    ("DescribeGroupsResponse", "MemberMetadata"): "ConsumerProtocolSubscription",
    ("SyncGroupRequest", "Assignment"): "ConsumerProtocolAssignment",
    ("SyncGroupResponse", "Assignment"): "ConsumerProtocolAssignment",
    ("DescribeGroupsResponse", "MemberAssignment"): "ConsumerProtocolAssignment",
    ("EnvelopeRequest", "RequestPrincipal"): "DefaultPrincipalData",
}
"""(message, field) -> schema of its bytes (ConsumerProtocol.java, DefaultKafkaPrincipalBuilder.java)."""


def blob_plan(message: str, field: str, data: bytes) -> Plan | None:
    """The plan that reads `data` after its version; None if the field holds no message, or not one that this plan can read."""
    schema = BLOBS.get((message, field))
    if schema is None or len(data) < VERSION_BYTES:
        return None
    plan = plan_of(schema, int.from_bytes(data[:VERSION_BYTES], "big", signed=True))
    if plan is None:
        return None
    reading = read_json(plan, data, VERSION_BYTES)
    return plan if reading.undecoded is None and reading.position == len(data) else None
