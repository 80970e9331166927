"""Scenes of errors that no rule of its own judges."""

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import Row, exchange, many, observed


def refusals() -> Observed:
    """What clients get for each of their requests of an API, for a part of them, and for one."""

    def errors(client: str, count: int, api: str = "Produce", error: str = "INVALID_RECORD", good: int = 0) -> list[Row]:
        rows = many(count, 1.0, api, connection=client, client_id=client, error=error)
        return rows + [exchange(client, 100 + at, api, 50 + at, client_id=client) for at in range(good)]

    unseen = [exchange("unseen", 100 + at, "Produce", 50 + at, None, client_id="unseen") for at in range(2)]
    again = [exchange("again-unseen", 100, "EndTxn", 50, None, client_id="again-unseen")]
    return observed([
        *errors("none", 4), *errors("once", 1), *errors("part", 12, good=18), *errors("less", 12, good=29),
        *errors("unseen", 2), *unseen, *errors("admin", 5, "CreateTopics", "INVALID_REQUEST"),
        *errors("one", 3, "CreateTopics", "INVALID_REQUEST"), *errors("again", 5, "EndTxn", "CONCURRENT_TRANSACTIONS", 1),
        *errors("again-none", 5, "EndTxn", "CONCURRENT_TRANSACTIONS"),
        *errors("again-unseen", 5, "EndTxn", "CONCURRENT_TRANSACTIONS"), *again,
    ])  # fmt: skip


SCENES = [
    Scene(
        "requests-refused",
        refusals,
        """
        high 0.9: client again-none got CONCURRENT_TRANSACTIONS for 5 EndTxn requests and got none through: the last transaction
        of that id is still being ended. Seen 5 times from 0 s to 4 s, 0.005 s lost. Who: client_id again-none. Filter:
        client_id == "again-none" and api == EndTxn and error == CONCURRENT_TRANSACTIONS. Evidence: errors 5, served 0,
        unanswered 0.
        high 0.9: client none got INVALID_RECORD for 4 Produce requests and got none through: the broker does not accept the
        records. Seen 4 times from 0 s to 3 s, 0.004 s lost. Who: client_id none. Filter: client_id == "none" and api == Produce
        and error == INVALID_RECORD. Evidence: errors 4, served 0, unanswered 0.
        medium 0.9: client part got INVALID_RECORD for 12 Produce requests, while 18 went through: the broker does not accept
        the records. Seen 12 times from 0 s to 11 s, 0.012 s lost. Who: client_id part. Filter: client_id == "part" and api ==
        Produce and error == INVALID_RECORD. Evidence: errors 12, served 18, unanswered 0.
        medium 0.9: client admin got INVALID_REQUEST for 5 CreateTopics requests and got none through. Seen 5 times from 0 s to
        4 s, 0.005 s lost. Who: client_id admin. Filter: client_id == "admin" and api == CreateTopics and error ==
        INVALID_REQUEST. Evidence: errors 5, served 0, unanswered 0.
        medium 0.9: client one got INVALID_REQUEST for 3 CreateTopics requests and got none through. Seen 3 times from 0 s to 2
        s, 0.003 s lost. Who: client_id one. Filter: client_id == "one" and api == CreateTopics and error == INVALID_REQUEST.
        Evidence: errors 3, served 0, unanswered 0.
        medium 0.9: client once got INVALID_RECORD for 1 Produce request and got none through: the broker does not accept the
        records. Seen once from 0 s to 0 s, 0.001 s lost. Who: client_id once. Filter: client_id == "once" and api == Produce
        and error == INVALID_RECORD. Evidence: errors 1, served 0, unanswered 0.
        info 0.9: client less got INVALID_RECORD for 12 Produce requests, while 29 went through: the broker does not accept the
        records. Seen 12 times from 0 s to 11 s, 0.012 s lost. Who: client_id less. Filter: client_id == "less" and api ==
        Produce and error == INVALID_RECORD. Evidence: errors 12, served 29, unanswered 0.
        info 0.9: client unseen got INVALID_RECORD for 2 Produce requests (2 more without a response in the capture): the broker
        does not accept the records. Seen 2 times from 0 s to 1 s, 0.002 s lost. Who: client_id unseen. Filter: client_id ==
        "unseen" and api == Produce and error == INVALID_RECORD. Evidence: errors 2, served 0, unanswered 2.
        """,
        least={"errors": 3, "often": 12, "share": 0.4},
    )
]
