"""Rules on transactions."""

from typing import Any

from kcap.reports.findings.transactions import steps
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
    rows, said = ends([False, True, True] * 100)
    (row,) = found("aborted-transactions", observed(rows, messages=said))
    assert row["sentence"].endswith("aborted 36 of 100 transactions that were looked at, of 300 that ended")
    assert row["evidence"] == {"aborted": 36, "ended": 300, "looked_at": 100}, "a third, whatever their order"
    rows, said = ends([True] * 19 + [False])
    assert found("aborted-transactions", observed(rows, messages=said)) == []


def readers(level: int, until: int) -> tuple[list[Row], list[Row]]:
    """Fetch requests, one a second, whose partition has a last stable offset that stands still, and that partition."""
    rows = [exchange("C2", at + 1, "Fetch", at, client_id="reader", isolation_level=level) for at in range(until)]
    place = {"topic": "t", "partition": 0}
    parts = [place | {"connection": "C1", "exchange": 1, "api_key": 0}]
    parts += [place | {"connection": "C2", "exchange": at + 1, "api_key": 1, "last_stable_offset": 5, "high_watermark": 9}
              for at in range(until)]  # fmt: skip
    return rows, parts


def test_a_transaction_behind_which_readers_wait() -> None:
    rows = [work(0, 1), work(4, 2), work(9, 3, "EndTxn")]
    polls, parts = readers(1, 9)
    (row,) = found("long-transaction", observed([*rows, *polls], parts))
    assert (row["evidence"]["longest_ns"], row["evidence"]["waited_ns"]) == (9 * SECOND, 8 * SECOND)
    links = [CONNECTION | {"connection": "C1", "client_skipped": 80}]
    skipped = observed([*rows, *polls], parts, connections=links)
    assert found("long-transaction", skipped) == [], "an EndTxn may be among the bytes that were passed over"
    polls, parts = readers(0, 9)
    assert found("long-transaction", observed([*rows, *polls], parts)) == [], "readers of uncommitted records do not wait"
    polls, parts = readers(1, 3)
    assert found("long-transaction", observed([*rows, *polls], parts)) == [], "they waited for a moment"


def test_a_transaction_that_a_crashed_producer_left_is_not_for_committing_more_often() -> None:
    """As where a sink of Flink is restored from a checkpoint: the new producer commits what the old one wrote."""
    polls, parts = readers(1, 40)
    rows = [work(0, 1), work(30, 1, "EndTxn") | {"connection": "C3"}, *polls]
    links = [CONNECTION | {"connection": name, "first_ns": START + first * SECOND, "last_ns": START + last * SECOND}
             for name, first, last in (("C1", 0, 2), ("C2", 0, 40), ("C3", 29, 40))]  # fmt: skip

    def advice(*rows: Row) -> tuple[str, int | None]:
        (row,) = found("long-transaction", observed(list(rows), parts, connections=links))
        return row["advice"].split(":")[0].split(" (")[0], row["evidence"].get("gone_ns")

    assert advice(*rows) == ("See why the producer that began it ended", 27 * SECOND)
    assert advice(rows[0], rows[1] | {"connection": "C2", "exchange": 90}, *rows[2:]) == ("Commit more often", None)
    refused = work(0, 1, error="NOT_LEADER_OR_FOLLOWER"), work(3, 2), work(4, 3, "EndTxn")
    assert found("long-transaction", observed([*refused, *polls], parts)) == [], "it began with the work that was done"


def test_how_long_is_too_long_depends_on_the_timeout_of_the_producer() -> None:
    def severity(lasted: float, timeout: int | None) -> list[str]:
        rows = [exchange("C1", 1, "InitProducerId", 0, transactional_id="tx"), work(1, 2), work(1 + lasted, 3, "EndTxn")]
        said = {} if timeout is None else {("C1", 1, "request"): {"transactionTimeoutMs": timeout}}
        return [row["severity"] for row in found("long-transaction", observed(rows, messages=said), loud=False)]

    assert severity(50, 60_000) == ["medium"]
    assert severity(50, 900_000) == ["info"], "Flink commits with its checkpoints, once in minutes"
    assert severity(50, None) == ["info"]
    assert severity(500, None) == ["medium"], "no broker of default settings lets it last 15 minutes"
    assert severity(4, 60_000) == []


def test_short_transactions_and_pauses_between_them_are_not_long() -> None:
    assert found("long-transaction", observed([work(0, 1), work(1, 2, "EndTxn"), work(9, 3), work(9.5, 4, "EndTxn")])) == []


def test_a_transaction_that_nobody_ends() -> None:
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND}]
    added = work(0, 1, "AddPartitionsToTxn")
    (row,) = found("hanging-transaction", observed([added, work(1, 2)], connections=links))
    assert row["who"] == {"transactional_id": "tx", "client_id": "app"}
    assert found("hanging-transaction", observed([work(0, 1), work(1, 2, "EndTxn")], connections=links)) == []
    taken_over = [work(0, 1), work(8, 2, "InitProducerId"), work(9, 3), work(9.5, 4, "EndTxn")]
    assert found("hanging-transaction", observed([*taken_over[:2]], connections=links)) == [], "the next producer aborts it"
    for error in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE"):
        over = work(5, 9) | {"error": error}
        assert found("hanging-transaction", observed([added, work(1, 2), over], connections=links)) == [], "it has been aborted"
        other = over | {"client_id": "other"}
        assert len(found("hanging-transaction", observed([added, work(1, 2), other], connections=links))) == 1
    assert found("long-transaction", observed(taken_over)) == []
    lossy = [links[0] | {"client_missing": 80}]
    assert found("hanging-transaction", observed([added], connections=lossy)) == [], "its EndTxn may be what is missing"
    passed = [links[0] | {"client_skipped": 80}]
    assert found("hanging-transaction", observed([added], connections=passed)) == [], "or among what was passed over"
    sealed = [*links, CONNECTION | {"connection": "C2", "phase": "tls", "client_id": None, "exchanges": 0}]
    assert found("hanging-transaction", observed([added], connections=sealed)) == [], "or on a connection without keys"
    assert found("hanging-transaction", observed([work(0, 1)], connections=links)) == [], "its coordinator is not seen"
    assert found("hanging-transaction", observed([work(28, 1)], connections=links)) == [], "the capture ends too soon to say"


def test_a_transaction_that_is_open_as_long_as_others_of_its_id_were_is_none_that_hangs() -> None:
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND}]

    def seen(*rows: Row) -> bool:
        return bool(found("hanging-transaction", observed(list(rows), connections=links)))

    usual = work(0, 1, "AddPartitionsToTxn"), work(12, 2, "EndTxn")
    assert not seen(*usual, work(18, 3)), "open for 12 s as the one before was"
    assert seen(*usual, work(17, 3)), "longer than that"
    assert seen(usual[0], work(12, 2, "InitProducerId"), work(18, 3)), (
        "one that is aborted in its place took no time of its own"
    )


def test_producers_that_fence_each_other() -> None:
    (row,) = found("zombie-fenced", observed([work(0, 1, error="INVALID_PRODUCER_EPOCH"), work(1, 2, "InitProducerId")]))
    assert (row["severity"], row["confidence"]) == ("medium", 0.5), "the capture does not show who took its transactional id"
    taken = work(0, 1, "InitProducerId")
    (row,) = found("zombie-fenced", observed([taken, work(0.5, 2, error="INVALID_PRODUCER_EPOCH"), work(1, 3)]))
    assert row["severity"] == "high"
    assert row["who"]["transactional_id"] == "tx"
    plain = [exchange("C1", 1, "Produce", 0, error="INVALID_PRODUCER_EPOCH")]
    assert found("zombie-fenced", observed(plain)) == [], "an idempotent producer has no transactional id"


def test_an_end_that_is_sent_again_shows_no_other_producer() -> None:
    """As those that Flink sends for the transactions of the checkpoint that it restores (transaction.version 2, KIP-890)."""

    def fenced(raised: int, again: int, *between: Row) -> int:
        rows = [work(0, 1), work(1, 2, "EndTxn"), *between, work(9, 4, "EndTxn", error="PRODUCER_FENCED")]
        said = {
            ("C1", 2, "request"): {"producerId": 7, "producerEpoch": 3},
            ("C1", 2, "response"): {"producerId": 7, "producerEpoch": raised},
            ("C1", 4, "request"): {"producerId": 7, "producerEpoch": again},
        }
        return len(found("zombie-fenced", observed(rows, messages=said)))

    assert fenced(4, 3) == fenced(4, 3, work(2, 3)) == 0
    assert fenced(4, 4) == 1, "it ends another transaction"
    assert fenced(3, 3) == 1, "before transaction.version 2 all transactions have one epoch"
    assert fenced(4, 3, work(2, 3, error="PRODUCER_FENCED")) == 1, "a write that was refused is not explained"


def test_an_end_that_may_be_missing_goes_to_the_coordinator() -> None:
    """Bytes that are missing elsewhere hide no EndTxn of this producer."""
    other: Row = {"client_id": "other", "server_ip": "10.0.0.2"}
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND}]
    links.append(CONNECTION | other | {"connection": "C2", "client_missing": 80})
    rows = [work(0, 1, "AddPartitionsToTxn"), work(1, 2), exchange("C2", 1, "Produce", 1, **other)]
    lost = {"api": None, "outcome": "orphan", "client_id": None}
    elsewhere = [*rows, exchange("C2", 2, "Fetch", 2) | other | lost]
    assert [row["id"] for row in found("hanging-transaction", observed(elsewhere, connections=links))] == [
        "hanging-transaction"
    ]
    here = [*rows, exchange("C1", 3, "EndTxn", 2) | lost]
    assert found("hanging-transaction", observed(here, connections=links)) == [], "its request may be an EndTxn"


def test_where_packets_were_displaced_work_next_to_an_end_may_belong_before_it() -> None:
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND}]
    rows = [work(0, 1, "AddPartitionsToTxn"), work(1, 2, "EndTxn"), work(1.01, 3)]
    assert len(found("hanging-transaction", observed(rows, connections=links))) == 1
    mixed = [links[0] | {"out_of_order": 30}]
    assert found("hanging-transaction", observed(rows, connections=mixed)) == []
    later = [*rows[:2], work(9, 3)]
    assert len(found("hanging-transaction", observed(later, connections=mixed))) == 1, "no packet is displaced by seconds"


def test_the_last_stable_offset_proves_an_open_transaction() -> None:
    """Also where packets are missing or were displaced: nothing but the end of the oldest transaction moves it (KIP-98)."""
    links = [CONNECTION | {"connection": "C1", "last_ns": START + 30 * SECOND, "client_missing": 80}]
    polls, parts = readers(0, 7)
    parts[0] = parts[0] | {"base_offset": 5, "exchange": 2}
    rows = [work(0, 1, "AddPartitionsToTxn"), work(0.1, 2), *polls]
    (row,) = found("hanging-transaction", observed(rows, parts, connections=links))
    assert row["evidence"]["stood_ns"] == 6 * SECOND
    elsewhere = [parts[0] | {"base_offset": 4}, *parts[1:]]
    assert found("hanging-transaction", observed(rows, elsewhere, connections=links)) == [], "of another producer"
    moved = [*parts[:-1], parts[-1] | {"last_stable_offset": 7}]
    assert found("hanging-transaction", observed(rows, moved, connections=links)) == [], "it moved on"
    whole = [links[0] | {"client_missing": 0}]
    (row,) = found("hanging-transaction", observed(rows, moved, connections=whole))
    assert row["severity"] == "medium", "no EndTxn can be missing: the coordinator ended it"
    assert row["sentence"].endswith("; it was over 6.0 s after its first work")
    soon = [*parts[:3], parts[3] | {"last_stable_offset": 7}, *parts[4:]]
    assert found("hanging-transaction", observed(rows, soon, connections=whole), loud=False) == [], (
        "no coordinator ends it so soon"
    )
    read = [part | {"high_watermark": part.get("last_stable_offset")} for part in parts]
    assert found("hanging-transaction", observed(rows, read, connections=links)) == [], "nothing is behind it"
    polls, parts = readers(0, 4)
    parts[0] = parts[0] | {"base_offset": 5, "exchange": 2}
    rows = [work(0, 1, "AddPartitionsToTxn"), work(0.1, 2), *polls]
    assert found("hanging-transaction", observed(rows, parts, connections=links)) == [], "open for a moment, and then unseen"


def test_of_much_work_the_first_request_stands_for_all() -> None:
    """A transaction of ten thousand requests takes no more memory than one of ten."""
    good = [work(at / 10, at + 1) for at in range(50)]
    bad = [work(5 + at / 10, 51 + at, error="INVALID_TXN_STATE") for at in range(20)]
    (some,) = steps(observed([*good, *bad, work(8, 71, "EndTxn"), work(8.5, 72), work(9, 73)])).values()
    assert [row["exchange"] for row in some] == [1, 51, 71, 72, 73]


def producer(timeout: int | None, *rows: Row, **of_owner: Any) -> Any:
    """What a producer with a transaction.timeout.ms does, as the rules see it."""
    begin = exchange("C1", 1, "InitProducerId", 0, transactional_id="tx", **of_owner)
    said = {} if timeout is None else {("C1", 1, "request"): {"transactionTimeoutMs": timeout}}
    return observed([begin, *rows], messages=said)


def refused(at: float, number: int, error: str = "PRODUCER_FENCED", api: str = "EndTxn", **more: Any) -> Row:
    return work(at, number, api, error=error, **more)


def test_a_transaction_whose_timeout_was_over_is_no_second_producer() -> None:
    for error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"):
        seen = producer(3000, work(1, 2), refused(17, 3, error))
        (row,) = found("transaction-timed-out", seen)
        assert row["who"] == {"transactional_id": "tx", "client_id": "app"}
        assert (row["count"], row["evidence"]["timeout_ns"]) == (1, 3 * SECOND)
        assert (
            f"timeout of 3.0 s was over; a request of the producer, 16.0 s after its first work, got {error}" in row["sentence"]
        )
        for other in ("zombie-fenced", "long-transaction", "requests-refused"):
            assert found(other, seen, loud=False) == [], f"{other} would name another cause"


def test_what_a_producer_is_refused_after_a_timeout_counts_up_to_its_next_begin() -> None:
    again = exchange("C1", 5, "InitProducerId", 18, transactional_id="tx", error="PRODUCER_FENCED")
    seen = producer(3000, work(1, 2), refused(17, 3, "INVALID_PRODUCER_EPOCH", "Produce"), refused(17.1, 4), again)
    (row,) = found("transaction-timed-out", seen)
    assert row["count"] == 3
    assert found("zombie-fenced", seen) == []
    healed = exchange("C1", 6, "InitProducerId", 19, transactional_id="tx")
    seen = producer(3000, work(1, 2), refused(17, 3), healed, work(20, 7), refused(20.5, 8))
    assert [row["count"] for row in found("transaction-timed-out", seen)] == [1]
    assert [row["count"] for row in found("zombie-fenced", seen)] == [2], "the second refusal has another cause"


def test_a_producer_that_another_one_fenced_did_not_time_out() -> None:
    taken = exchange("C2", 1, "InitProducerId", 5, transactional_id="tx", client_id="other")
    waits = taken | {"error": "CONCURRENT_TRANSACTIONS"}
    for rows in ([work(1, 2), taken], [work(1, 2), waits], [taken, work(6, 2)]):
        seen = producer(3000, *rows, refused(17, 3))
        assert found("transaction-timed-out", seen) == []
        assert len(found("zombie-fenced", seen)) == 1
    for seen in (
        producer(60_000, work(1, 2), refused(17, 3)),
        producer(None, work(1, 2), refused(17, 3)),
        producer(3000, work(1, 2), work(2, 3, "EndTxn"), refused(17, 4)),
        producer(3000, work(1, 2), refused(17, 3), client_id="elsewhere"),
    ):
        assert found("transaction-timed-out", seen) == [], "not over, not known, ended before, or of another client"
        assert len(found("zombie-fenced", seen)) == 1


def test_many_transactions_that_time_out_are_read_as_far_as_the_bound_allows(monkeypatch: Any) -> None:
    monkeypatch.setattr("kcap.reports.findings.transactions.READ_ALL_MOST", 0)
    seen = producer(3000, work(1, 2), refused(17, 3))
    assert found("transaction-timed-out", seen) == []


def test_without_messages_nothing_tells_a_timeout_from_a_second_producer() -> None:
    """As of saved tables: the timeout stands in the InitProducerId alone."""

    def saved(*rows: Row) -> Any:
        seen = observed(rows)
        seen._message, seen.has_messages = None, False
        return seen

    begin = exchange("C1", 1, "InitProducerId", 0, transactional_id="tx")
    (row,) = found("zombie-fenced", saved(begin, work(1, 2), refused(17, 3)))
    assert (row["severity"], row["confidence"]) == ("medium", 0.5)
    assert "transaction.timeout.ms" in row["advice"]
    taken = exchange("C2", 1, "InitProducerId", 5, transactional_id="tx", client_id="other")
    (row,) = found("zombie-fenced", saved(begin, work(1, 2), taken, refused(17, 3)))
    assert row["severity"] == "high", "another producer took the id"
