"""Scenes of topics that are not there, that were created again, and of metadata."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, many, observed

UNKNOWN = "UNKNOWN_TOPIC_ID"


def life(client: str, times: range, error: str = "NONE", topic_id: str | None = "A") -> list[tuple[Row, Row]]:
    """Fetch requests of a client for topic `t`, one each second."""
    return [
        (exchange(client, at + 1, "Fetch", at, 0.01, error=error, client_id=client),
         {"connection": client, "exchange": at + 1, "api_key": 1, "topic": "t", "topic_id": topic_id, "partition": 0,
          "error": error})
        for at in times
    ]  # fmt: skip


def created_again() -> Observed:
    """A topic is gone from the third second on and there again in the seventh. Two clients keep the old id, up to 5 s and
    3 s behind that; a third one gets two errors, and its records again under the new id."""
    some = [
        *life("a", range(3)), *life("a", range(3, 5), UNKNOWN), *life("a", range(7, 9), topic_id="B"),
        *life("b", range(8, 13), UNKNOWN), *life("c", range(5, 11), UNKNOWN),
        *life("d", range(9, 12), "OFFSET_OUT_OF_RANGE", "B"),
    ]  # fmt: skip
    return observed([row for row, _ in some], [part for _, part in some])


def missing(**more: Any) -> Observed:
    """One client gets five errors of one topic in 4 s, another three of a topic in 2 s, a third two, and one five in less than
    a second; members of groups get one, and their heartbeats go on for 12 s, 9 s, and 12 s with another client that finds the
    topic."""
    error: Row = {"error": "UNKNOWN_TOPIC_OR_PARTITION"}
    rows = many(5, 1.0, "Metadata", topics=["ordres"], **error)
    rows += many(3, 1.0, "Metadata", connection="C2", client_id="b", topics=["u"], **error)
    rows += many(2, 1.0, "Metadata", connection="C3", client_id="c", topics=["v"], **error)
    rows += many(5, 0.2, "Metadata", connection="C4", client_id="d", topics=["w"], **error)
    for name, beats in (("e", 5), ("f", 4), ("g", 5)):
        rows += many(beats, 3.0, "Heartbeat", connection=name, client_id=name)
        rows.append(exchange(name, 99, "Metadata", 0, client_id=name, topics=[f"of-{name}"], **error))
    rows.append(exchange("h", 1, "Metadata", 1, client_id="h", topics=["of-g"]))
    return observed(rows, [{"connection": "h", "exchange": 1, "api_key": 3, "topic": "of-g", "partition": 0, "error": "NONE"}])


def metadata() -> Observed:
    """80 Metadata requests in 10 s on two connections of three and four openings; another client has ten for each opening."""
    rows = [exchange(f"C{at % 2}", at + 1, "Metadata", at * 10 / 79, 0.002) for at in range(80)]
    rows += [exchange(f"C{at % 2}", 100 + at, "ApiVersions", at) for at in range(10)]
    rows += [exchange("D1", at + 1, "Metadata", at * 0.1, client_id="b") for at in range(49)]
    return observed(rows)


SCENES = [
    Scene(
        "topic-recreated",
        created_again,
        """
        high 0.95: client c still used the id of the deleted topic t 3.0 s after there was a new one: 6 responses with
        UNKNOWN_TOPIC_ID. Seen 6 times from 5 s to 10 s, 0.06 s lost. Who: client_id c, topic t. Filter: client_id ==
        "c" and topic == "t" and error == UNKNOWN_TOPIC_ID. Evidence: errors 6, topic_id A.
        high 0.95: client b still used the id of the deleted topic t 4.0 s after there was a new one: 5 responses with
        UNKNOWN_TOPIC_ID. Seen 5 times from 8 s to 12 s, 0.05 s lost. Who: client_id b, topic t. Filter: client_id ==
        "b" and topic == "t" and error == UNKNOWN_TOPIC_ID. Evidence: errors 5, topic_id A.
        medium 0.95: topic t was deleted and created again: for 5.0 s no request for it succeeded. Seen once from 2 s to
        7 s, 5 s lost. Who: topic t. Filter: topic == "t" and error in {UNKNOWN_TOPIC_ID, OFFSET_OUT_OF_RANGE}.
        Evidence: clients 4, errors 16, topic_id A.
        """,
        least={"errors": 5, "seconds": 3.0},
    ),
    Scene(
        "unknown-topic-loop",
        missing,
        """
        medium 0.95: client app got 5 responses that topic ordres does not exist. Seen 5 times from 0 s to 4.001 s,
        0.005 s lost. Who: client_id app, topic ordres. Filter: client_id == "app" and error ==
        UNKNOWN_TOPIC_OR_PARTITION and topic == "ordres". Evidence: errors 5, topics ['ordres'].
        low 0.95: client b got 3 responses that topic u does not exist. Seen 3 times from 0 s to 2.001 s, 0.003 s lost.
        Who: client_id b, topic u. Filter: client_id == "b" and error == UNKNOWN_TOPIC_OR_PARTITION and topic == "u".
        Evidence: errors 3, topics ['u'].
        low 0.8: client e got 1 response that topic of-e does not exist; as a member of a group it went on without the topic.
        Seen once from 0 s to 0.001 s, 0.001 s lost. Who: client_id e, topic of-e. Filter: client_id == "e" and error ==
        UNKNOWN_TOPIC_OR_PARTITION and topic == "of-e". Evidence: errors 1, topics ['of-e'].
        """,
        least={"errors": 5, "few": 3, "seconds": 2.001, "after": 11.999},
    ),
    Scene(
        "metadata-storm",
        metadata,
        """
        medium 0.85: client app sent 80 Metadata requests, 8 a second. Seen 80 times from 0 s to 10 s, 0.16 s lost. Who:
        client_id app. Filter: client_id == "app" and api == Metadata. Evidence: requests 80, requests_a_second 8.0, errors 0.
        """,
        least={"requests": 80, "a_second": 8.0, "each": 7},
    ),
]
