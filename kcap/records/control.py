"""Control records: key and value bytes in, the action of the transaction or the quorum out (ControlRecordType.java).

Law: never raises. An unknown type is UNKNOWN, and a value that cannot be read has no body.
"""

from typing import Final

from kcap.decode.json import read_json
from kcap.decode.plan import plan_of
from kcap.records.batch import Control

TYPES: Final = {
    0: ("ABORT", "EndTxnMarker", 2),
    1: ("COMMIT", "EndTxnMarker", 2),
    2: ("LEADER_CHANGE", "LeaderChangeMessage", 0),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord", 0),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord", 0),
    5: ("KRAFT_VERSION", "KRaftVersionRecord", 0),
    6: ("KRAFT_VOTERS", "VotersRecord", 0),
}
"""Type number -> (name, schema of the value, bytes of its version prefix)."""

_VERSION = 0
"""Kafka reads every control body at schema version 0."""


def type_of(key: bytes) -> int | None:
    """The type number in a control record's key (int16 version, int16 type); None if the key is too short."""
    return int.from_bytes(key[2:4], "big", signed=True) if len(key) >= 4 else None


def read_control(key: bytes | None, value: bytes | None) -> Control | None:
    """The meaning of a control record; None if the key is too short to hold a type (int16 version, int16 type)."""
    type_id = None if key is None else type_of(key)
    if type_id is None:
        return None
    known = TYPES.get(type_id)
    if known is None:
        return Control("UNKNOWN", type_id, None)
    name, schema, prefix = known
    plan = plan_of(schema, _VERSION)
    if plan is None or value is None:
        return Control(name, type_id, None)
    reading = read_json(plan, value, min(prefix, len(value)))
    return Control(name, type_id, None if reading.undecoded else reading.value)
