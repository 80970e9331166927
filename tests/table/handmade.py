"""Batches of rows made by hand: what the analyzer would hand over."""

from typing import Any

from kcap.analyzer import RowBatch
from kcap.decode.projection import project
from kcap.identities import Identities, Identity, uid_of_number
from kcap.kafka.body_batch import BodyBatch
from kcap.model import ROW

UIDS = uid_of_number(1), uid_of_number(2)

NO_BODIES = BodyBatch(bytearray(), [], [], [], project(b"", [], [], []), {})
SECOND = 1_000_000_000
DEFAULTS: dict[str, Any] = {
    "identity": 0, "exchange": 1, "api_key": 3, "api_version": 12, "correlation_id": 7, "client_id": "shop",
    "outcome": "answered", "flags": 0, "request_slot": -1, "response_slot": -1, "request_flags": 0, "response_flags": 0,
    "request_bytes": 30, "request_first_ns": SECOND, "request_first_ref": 1, "request_last_ns": SECOND + 10,
    "request_last_ref": 2,
    "response_bytes": 40, "response_first_ns": SECOND + 1010, "response_first_ref": 3, "response_last_ns": SECOND + 1030,
    "response_last_ref": 4,
}  # fmt: skip


def row(**parts: Any) -> tuple[Any, ...]:
    """An answered Metadata request, but for the parts that are given."""
    assert parts.keys() <= set(ROW)
    return tuple((DEFAULTS | parts).get(name) for name in ROW)


def unanswered(**parts: Any) -> tuple[Any, ...]:
    """A request without answer."""
    nothing = dict.fromkeys(name for name in ROW if name.startswith("response_") and not name.endswith(("slot", "flags")))
    return row(outcome="unanswered", reason="fin", age_ns=5, **nothing, **parts)


def batch(*rows: tuple[Any, ...]) -> RowBatch:
    """Rows of two connections, without bodies."""
    identities = [Identity(UIDS[0], "10.0.0.1", 50000, "10.0.0.9", 9092), Identity(UIDS[1], "fd00::1", 50001, "fd00::9", 9092)]
    return RowBatch(list(rows), Identities(identities), NO_BODIES)
