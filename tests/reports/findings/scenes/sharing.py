"""Scenes of share groups."""

from typing import Any

from kcap.reports.findings.observed import Observed
from kcap.reports.findings.sharing import LOST
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, observed

ACCEPT, RELEASE = 1, 2


def mine(connection: str, number: int, api: str, at: float, **more: Any) -> Row:
    """A request of share group `g`."""
    return exchange(connection, number, api, at, 0, **{"group_id": "g", "client_id": connection, **more})


def acquires(first: int, last: int, count: int = 1) -> Row:
    """A ShareFetch response, whose locks last 3 s."""
    some = [{"firstOffset": first, "lastOffset": last, "deliveryCount": count}]
    return {
        "acquisitionLockTimeoutMs": 3000,
        "responses": [{"topicId": "T", "partitions": [{"partitionIndex": 0, "acquiredRecords": some}]}],
    }


def acknowledges(first: int, last: int, kind: int = ACCEPT) -> Row:
    """A ShareAcknowledge request."""
    some = [{"firstOffset": first, "lastOffset": last, "acknowledgeTypes": [kind]}]
    return {"topics": [{"topicId": "T", "partitions": [{"partitionIndex": 0, "acknowledgementBatches": some}]}]}


def late() -> Observed:
    """One member acknowledges 3 s and 4 s after it got the records, and once sooner; another one what it did not get."""
    rows: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    for member, times, last in (("a", (3.0, 4.0, 2.999), 8), ("b", (5.0,), 99)):
        for at, held in enumerate(times):
            number = 2 * at + 1
            rows.append(mine(member, number, "ShareFetch", 10 * at, record_count=9))
            rows.append(mine(member, number + 1, "ShareAcknowledge", 10 * at + held, error=LOST))
            said[member, number, "response"] = acquires(0, 8)
            said[member, number + 1, "request"] = acknowledges(last, last)
    return observed(rows, messages=said)


def again_and_again() -> Observed:
    """Offsets 7 to 9 are delivered up to 6 times: from the third time on in four fetches of two members, of which one releases
    them twice. Those of another topic three times."""
    rows: list[Row] = []
    parts: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    for at, (member, count, topic, kind) in enumerate(
        (("a", 2, "t", RELEASE), ("a", 3, "t", RELEASE), ("b", 4, "t", ACCEPT), ("a", 5, "t", RELEASE), ("b", 6, "t", ACCEPT),
         ("c", 3, "u", ACCEPT))
    ):  # fmt: skip
        number = 2 * at + 1
        rows += [mine(member, number, "ShareFetch", at, record_count=3), mine(member, number + 1, "ShareAcknowledge", at + 0.5)]
        parts.append({"connection": member, "exchange": number, "api_key": 78, "group_id": "g", "topic": topic, "topic_id": "T",
                      "partition": 0, "delivery_count": count})  # fmt: skip
        said[member, number, "response"] = acquires(7, 9, count)
        said[member, number + 1, "request"] = acknowledges(8, 9, kind)
    return observed(rows, parts, messages=said)


SCENES = [
    Scene(
        "share-lock-expired",
        late,
        """
        high 0.95: client a of share group g acknowledged records too late 2 times: up to 4.0 s after it got them, and their
        locks last 3.0 s. Seen 3 times from 3 s to 22.999 s, 7 s lost. Who: client_id a, group_id g. Filter: client_id == "a"
        and group_id == "g" and error == INVALID_RECORD_STATE. Evidence: refused 3, too_late 2, held_ns 4000000000, lock_ns
        3000000000.
        medium 0.7: share group g refused acknowledgements of client b 1 time: these records were not, or no longer, its own.
        Seen once from 5 s to 5 s, 0 s lost. Who: client_id b, group_id g. Filter: client_id == "b" and group_id == "g" and
        error == INVALID_RECORD_STATE. Evidence: refused 1, too_late 0, held_ns 0, lock_ns 0.
        """,
    ),
    Scene(
        "share-redelivery",
        again_and_again,
        """
        high 0.9: share group g got 3 records of topic t again and again, up to 6 times each; a released 2 of them in 2
        requests. Seen 4 times from 1 s to 4 s, 0 s lost. Who: group_id g, topic t, client_ids ['a', 'b']. Filter: group_id ==
        "g" and api == ShareFetch. Evidence: records 3, deliveries 6, released 2, fetches 4.
        medium 0.9: share group g got 3 records of topic u again and again, up to 3 times each. Seen once from 5 s to 5 s, 0 s
        lost. Who: group_id g, topic u, client_ids ['c']. Filter: group_id == "g" and api == ShareFetch. Evidence: records 3,
        deliveries 3, released 0, fetches 1.
        """,
        least={"deliveries": 3, "last": 6},
    ),
]
