"""Rules on transactions."""

from typing import Any

from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, observed


def work(at: float, number: int, api: str = "Produce", **more: Any) -> Row:
    return exchange("C1", number, api, at, transactional_id="tx", **more)


def ends(kinds: list[bool]) -> tuple[list[Row], dict[tuple[str, int, str], Row]]:
    rows, said = [], {}
    for at, committed in enumerate(kinds):
        rows += [work(at, 2 * at + 1), work(at + 0.2, 2 * at + 2, "EndTxn")]
        said["C1", 2 * at + 2, "request"] = {"committed": committed}
    return rows, said


def test_many_aborts_are_told_and_one_of_many_is_not() -> None:
    rows, said = ends([True, False] * 6)
    (row,) = found("aborted-transactions", observed(rows, messages=said))
    assert row["evidence"] == {"aborted": 6, "ended": 12}
    rows, said = ends([True] * 19 + [False])
    assert found("aborted-transactions", observed(rows, messages=said)) == []


def test_a_transaction_that_is_open_for_long() -> None:
    (row,) = found("long-transaction", observed([work(0, 1), work(4, 2), work(9, 3, "EndTxn")]))
    links = [CONNECTION | {"connection": "C1", "client_skipped": 80}]
    skipped = observed([work(0, 1), work(4, 2), work(9, 3, "EndTxn")], connections=links)
    assert found("long-transaction", skipped) == [], "an EndTxn may be among the bytes that were passed over"
    assert row["evidence"]["longest_ns"] == 9 * SECOND
    assert found("long-transaction", observed([work(0, 1), work(1, 2, "EndTxn"), work(9, 3), work(9.5, 4, "EndTxn")])) == []


def test_a_transaction_that_nobody_ends() -> None:
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND}]
    added = work(0, 1, "AddPartitionsToTxn")
    (row,) = found("hanging-transaction", observed([added, work(1, 2)], connections=links))
    assert row["who"] == {"transactional_id": "tx", "client_id": "app"}
    assert found("hanging-transaction", observed([work(0, 1), work(1, 2, "EndTxn")], connections=links)) == []
    taken_over = [work(0, 1), work(8, 2, "InitProducerId"), work(9, 3), work(9.5, 4, "EndTxn")]
    assert found("hanging-transaction", observed([*taken_over[:2]], connections=links)) == [], "the next producer aborts it"
    assert found("long-transaction", observed(taken_over)) == []
    lossy = [links[0] | {"client_missing": 80}]
    assert found("hanging-transaction", observed([added], connections=lossy)) == [], "its EndTxn may be what is missing"
    passed = [links[0] | {"client_skipped": 80}]
    assert found("hanging-transaction", observed([added], connections=passed)) == [], "or among what was passed over"
    sealed = [*links, CONNECTION | {"connection": "C2", "phase": "tls", "client_id": None, "exchanges": 0}]
    assert found("hanging-transaction", observed([added], connections=sealed)) == [], "or on a connection without keys"
    assert found("hanging-transaction", observed([work(0, 1)], connections=links)) == [], "its coordinator is not seen"
    assert found("hanging-transaction", observed([work(28, 1)], connections=links)) == [], "the capture ends too soon to say"


def test_producers_that_fence_each_other() -> None:
    (row,) = found("zombie-fenced", observed([work(0, 1, error="INVALID_PRODUCER_EPOCH"), work(1, 2)]))
    assert row["who"]["transactional_id"] == "tx"
    plain = [exchange("C1", 1, "Produce", 0, error="INVALID_PRODUCER_EPOCH")]
    assert found("zombie-fenced", observed(plain)) == [], "an idempotent producer has no transactional id"
