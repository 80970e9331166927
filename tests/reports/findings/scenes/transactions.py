"""Scenes of transactions: aborted, long, left open, fenced."""

from typing import Any

from kcap.reports.findings.observed import Observed
from tests.reports.findings.scenes.scene import Scene
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, observed


def work(at: float, number: int, api: str = "Produce", name: str = "tx", **more: Any) -> Row:
    """A request of a transactional id, on a connection of its own."""
    return exchange(name, number, api, at, 0.001, transactional_id=name, **more)


def aborted() -> Observed:
    """One transactional id aborts 6 of 15 transactions, of which one more is not known; another 4 of 4, a third 5 of 20."""
    rows: list[Row] = []
    said: dict[tuple[str, int, str], Row] = {}
    for name, kinds in (("tx", [False, True, True] * 3 + [False, True] * 3), ("few", [False] * 4),
                        ("less", [False, True, True, True] * 5)):  # fmt: skip
        for at, committed in enumerate(kinds):
            rows += [work(1 + at, 2 * at + 1, name=name), work(1.2 + at, 2 * at + 2, "EndTxn", name)]
            rows[-1]["request_first_packet"] = 100 + at
            said[name, 2 * at + 2, "request"] = {"committed": committed}
    rows.append(work(40, 99, "EndTxn"))
    return observed(rows, messages=said)


def long_ones() -> Observed:
    """Two transactions of one id are open for 10 s and 8 s, while a reader of committed records waits for 6 s behind the
    second; one of another id is open for 30 s of its timeout of 60 s, one of a third for 29 s; one of a fourth for 19 s,
    most of them without its producer."""
    rows = [work(1, 1, "AddPartitionsToTxn"), work(2, 2), work(11, 3, "EndTxn"), work(12, 4, "AddPartitionsToTxn"),
            work(20, 5, "EndTxn"), work(20.5, 6), work(21, 7, "EndTxn")]  # fmt: skip
    for name, lasts in (("half", 30), ("less", 29)):
        rows += [work(0.5, 1, "InitProducerId", name), work(1, 2, name=name), work(1 + lasts, 3, "EndTxn", name)]
    rows += [exchange("R", at + 1, "Fetch", 13 + at, 0.001, client_id="reader", isolation_level=1) for at in range(7)]
    place = {"topic": "t", "partition": 0}
    parts = [place | {"connection": "tx", "exchange": 2, "api_key": 0}]
    parts += [place | {"connection": "R", "exchange": at + 1, "api_key": 1, "last_stable_offset": 5, "high_watermark": 9 + at}
              for at in range(7)]  # fmt: skip
    rows += [work(1, 1, name="crash"), work(20, 1, "EndTxn", "crash") | {"connection": "again"}]
    lives = {"crash": (0, 3), "again": (19, 25)}
    links = [CONNECTION | {"connection": name, "first_ns": START + begin * SECOND, "last_ns": START + end * SECOND}
             for name in ("tx", "half", "less", "R", *lives) for begin, end in (lives.get(name, (0, 10)),)]  # fmt: skip
    said: dict[tuple[str, int, str], Row] = {
        (name, 1, "request"): {"transactionTimeoutMs": 60_000} for name in ("half", "less")
    }
    return observed(rows, parts, links, messages=said)


def left_open() -> Observed:
    """A transaction begins at 22 s, and nothing follows its last request at 23 s until the capture ends at 30 s; another one of
    the id was open for 7.5 s before. Transactions of other ids are open for as long as one before, or for less."""
    rows = [work(1, 1, "AddPartitionsToTxn"), work(8.5, 2, "EndTxn"), work(22, 3, "AddPartitionsToTxn"), work(23, 4),
            work(1, 1, "AddPartitionsToTxn", "alike"), work(9, 2, "EndTxn", "alike"),
            work(22, 3, "AddPartitionsToTxn", "alike"), work(26, 1, "AddPartitionsToTxn", "short")]  # fmt: skip
    links = [CONNECTION | {"connection": name, "last_ns": START + 30 * SECOND} for name in ("tx", "alike", "short")]
    return observed(rows, connections=links)


def fenced() -> Observed:
    """Producers of one transactional id are fenced twice, behind one that took it."""
    errors = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    rows = [work(at, at + 1, error=error, client_id="ba"[at]) for at, error in enumerate(errors)]
    return observed([*rows, work(0, 9, "InitProducerId", client_id="a")])


SCENES = [
    Scene(
        "aborted-transactions",
        aborted,
        """
        medium 0.9: transactional id tx aborted 6 of 15 transactions. Seen 6 times from 1.2 s to 40 s, 0 s lost. Who:
        transactional_id tx, client_id app. Filter: transactional_id == "tx" and api == EndTxn and request_first_packet in {100,
        103, 106, 109, 111, 113}. Evidence: aborted 6, ended 15.
        """,
        least={"aborted": 6, "share": 0.4},
    ),
    Scene(
        "long-transaction",
        long_ones,
        """
        medium 0.85: 1 transaction of half was open for up to 30.0 s. Seen once from 1 s to 31 s, 30 s lost. Who:
        transactional_id half, client_id app. Filter: transactional_id == "half". Evidence: longest_ns 30000000000, transactions
        1, waited_ns 0, timeout_ns 60000000000.
        medium 0.85: 2 transactions of tx were open for up to 10.0 s; readers of committed records waited 6.0 s behind one. Seen
        2 times from 1 s to 11 s, 18 s lost. Who: transactional_id tx, client_id app. Filter: transactional_id == "tx".
        Evidence: longest_ns 10000000000, transactions 2, waited_ns 6000000000.
        info 0.85: 1 transaction of less was open for up to 29.0 s. Seen once from 1 s to 30 s, 29 s lost. Who: transactional_id
        less, client_id app. Filter: transactional_id == "less". Evidence: longest_ns 29000000000, transactions 1, waited_ns 0,
        timeout_ns 60000000000.
        info 0.85: 1 transaction of crash was open for up to 19.0 s; the connection of its first work ended 16.0 s before that
        of its EndTxn began. Seen once from 1 s to 20 s, 19 s lost. Who: transactional_id crash, client_id app. Filter:
        transactional_id == "crash". Evidence: longest_ns 19000000000, transactions 1, waited_ns 0, gone_ns 16000000000.
        """,
        least={"seconds": 8.0, "of_timeout": 0.5, "waited": 0.75},
    ),
    Scene(
        "hanging-transaction",
        left_open,
        """
        high 0.8: a transaction of tx was left open: nothing followed its last request for 7.0 s. Seen once from 22 s to 30 s,
        6.999 s lost. Who: transactional_id tx, client_id app. Filter: transactional_id == "tx". Evidence: quiet_ns 6999000000,
        open_ns 8000000000, stood_ns 0.
        info 0.8: a transaction of alike was left open: nothing followed its last request for 8.0 s. Seen once from 22 s to 30
        s, 7.999 s lost. Who: transactional_id alike, client_id app. Filter: transactional_id == "alike". Evidence: quiet_ns
        7999000000, open_ns 8000000000, stood_ns 0.
        """,
        least={"seconds": 6.999},
    ),
    Scene(
        "zombie-fenced",
        fenced,
        """
        high 0.9: producers of transactional id tx were fenced 2 times (a, b). Seen 2 times from 0 s to 1.001 s, 0 s lost. Who:
        transactional_id tx, client_ids ['a', 'b']. Filter: transactional_id == "tx" and error in {INVALID_PRODUCER_EPOCH,
        PRODUCER_FENCED}. Evidence: fenced 2, clients 2.
        """,
    ),
]
