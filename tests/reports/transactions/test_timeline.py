"""Steps of a transactional id become the transactions that its producers had."""

from typing import Any

import pytest

from kcap.reports.transactions.timeline import TransactionCall, TransactionTimeline, summary

S = 1_000_000_000


def step(api: str, at: float, epoch: int | None = 0, client: str = "a", error: str = "NONE", **more: Any) -> TransactionCall:
    """A step that takes 10 ms."""
    pid = None if epoch is None else 7
    return TransactionCall(api, client, round(at * S), round((at + 0.01) * S), error, pid, epoch, **more)


INIT = step("InitProducerId", 0, timeout_ms=5000, coordinator="b1:9092")
WRITE = step("Produce", 1, partitions=(("t", 0), ("t", 1)), records=5, bytes=500)


def made(*steps: TransactionCall, end: float = 4) -> TransactionTimeline:
    return TransactionTimeline("tx").run(steps, round(end * S))


@pytest.mark.parametrize(("committed", "outcome"), [(True, "committed"), (False, "aborted"), (None, None)])
def test_a_transaction_lasts_from_its_first_work_to_the_response_to_its_end(
    committed: bool | None, outcome: str | None
) -> None:
    (row,) = [one.row() for one in made(INIT, WRITE, WRITE, step("EndTxn", 2, committed=committed)).done]
    assert (row["outcome"], row["duration_ns"], row["records"], row["bytes"]) == (outcome, 1_010_000_000, 10, 1000)
    assert row["partitions"] == ["t/0", "t/1"]
    assert (row["producer_id"], row["producer_epoch"], row["coordinator"]) == (7, 0, "b1:9092")


def test_epochs_of_kip_890_are_one_transaction_each() -> None:
    done = made(
        INIT, WRITE, step("EndTxn", 2, committed=True), step("Produce", 3, 1), step("EndTxn", 3.5, 1, committed=False)
    ).done
    assert [(one.producer_epoch, one.outcome) for one in done] == [(0, "committed"), (1, "aborted")]


@pytest.mark.parametrize(("end", "outcome"), [(4, "open"), (6.5, "timed_out")])
def test_what_is_open_at_the_end_is_timed_out_once_its_timeout_is_over(end: float, outcome: str) -> None:
    (one,) = made(INIT, WRITE, end=end).done
    assert (one.outcome, one.end_ns) == (outcome, None)


@pytest.mark.parametrize("error", ["NONE", "CONCURRENT_TRANSACTIONS"])
def test_another_producer_fences_what_is_open(error: str) -> None:
    other = step("InitProducerId", 2, 2, "b", error)
    late = step("Produce", 3, 0, error="INVALID_PRODUCER_EPOCH")
    timeline = made(INIT, WRITE, other, late)
    assert [(one.outcome, one.end_ns) for one in timeline.done] == [("fenced", other.last_ns)]
    assert [(row["client_id"], row["error"]) for row in timeline.fences] == [("a", "INVALID_PRODUCER_EPOCH")]


@pytest.mark.parametrize(("at", "outcome"), [(3, "fenced"), (9, "timed_out")])
def test_a_refusal_of_an_open_transaction_ends_it(at: float, outcome: str) -> None:
    refused = step("EndTxn", at, error="PRODUCER_FENCED", committed=True)
    (one,) = made(INIT, WRITE, refused, end=10).done
    assert one.outcome == outcome
    assert one.end_ns == (refused.last_ns if outcome == "fenced" else None), "when its timeout ended it no packet says"


@pytest.mark.parametrize(
    ("following", "between", "again"),
    [
        ((7, 1), (), True),
        ((7, 0), (), False),  # transaction.version 0 and 1 leave the epoch alone
        ((7, 1), (step("InitProducerId", 2.5, 2, "b"),), True),
        ((None, None), (), True),
        ((None, None), (step("InitProducerId", 2.5, 2, "b"),), False),
    ],
)
def test_an_end_for_what_had_ended_shows_no_other_producer(
    following: tuple[int | None, int | None], between: tuple[TransactionCall, ...], again: bool
) -> None:
    ended = step("EndTxn", 2, committed=True, next_producer=following)
    timeline = made(INIT, WRITE, ended, *between, *(step("EndTxn", at, error="PRODUCER_FENCED") for at in (3, 3.5)))
    row = summary("tx", timeline)
    assert [one["ended_again"] for one in timeline.fences] == [again] * 2
    assert (row["fences"], row["ended_again"], row["committed"]) == (0 if again else 2, 2 if again else 0, 1)


def test_an_end_whose_beginning_is_not_in_the_capture_is_a_transaction_without_one() -> None:
    (row,) = [one.row() for one in made(step("EndTxn", 2, committed=True)).done]
    assert (row["begin_ns"], row["duration_ns"], row["outcome"]) == (None, None, "committed")


def test_refused_work_begins_nothing_and_a_refused_end_ends_nothing() -> None:
    assert made(INIT, step("Produce", 1, error="NOT_LEADER_OR_FOLLOWER")).done == []
    assert made(INIT, WRITE, step("EndTxn", 2, error="CONCURRENT_TRANSACTIONS", committed=True)).done[0].outcome == "open"


def test_offsets_are_part_of_their_clients_transaction() -> None:
    (one,) = made(INIT, WRITE, step("TxnOffsetCommit", 1.5, None, group_id="g"), step("EndTxn", 2, committed=True)).done
    assert one.group_id == "g"


def test_figures_of_an_id_count_outcomes_and_producers() -> None:
    row = summary("tx", made(INIT, WRITE, step("EndTxn", 2, committed=True)))
    assert (row["transactions"], row["committed"], row["aborted"], row["max_ns"]) == (1, 1, 0, 1_010_000_000)
    assert [one["producer_epoch"] for one in row["producers"]] == [0]
    assert summary("tx", TransactionTimeline("tx"))["p50_ns"] is None
