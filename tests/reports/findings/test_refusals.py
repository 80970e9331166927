"""Errors without a rule of their own: each is found where a client gets nothing else, or much of it."""

import re
from pathlib import Path

from kcap.reports.findings import refusals
from kcap.reports.findings.report import check
from kcap.schema.errors import CODES
from tests.reports.findings.tables import exchange, found, many, observed

RULE = "requests-refused"
FINDINGS = Path(refusals.__file__).parent


def test_a_client_that_gets_none_of_an_api_through_is_found_with_what_the_error_says() -> None:
    rows = many(3, 1.0, "InitProducerId", error="INVALID_TRANSACTION_TIMEOUT")
    (row,) = found(RULE, observed(rows))
    assert (row["severity"], row["count"]) == ("high", 3)
    assert "none through: the transaction timeout is more than the broker allows" in row["sentence"]
    assert "transaction.max.timeout.ms" in row["advice"]
    (row,) = found(RULE, observed(rows[:1]))
    assert row["severity"] == "medium", "it gets none through, however seldom it tries"
    served = exchange("C9", 1, "InitProducerId", 9)
    assert found(RULE, observed([*rows, served])) == [], "a few among others are worth knowing"
    (row,) = found(RULE, observed([*rows, served]), loud=False)
    assert row["severity"] == "info"
    often = many(12, 1.0, "InitProducerId", error="INVALID_TRANSACTION_TIMEOUT")
    (row,) = found(RULE, observed([*often, served]))
    assert (row["severity"], row["evidence"]["served"]) == ("medium", 1)


def test_records_whose_checksum_does_not_fit_are_said() -> None:
    (row,) = found(RULE, observed(many(3, 1.0, error="CORRUPT_MESSAGE")))
    assert "the checksum of the records does not fit them" in row["sentence"]


def test_an_administrator_s_request_that_is_refused_once_is_worth_knowing_and_three_are_a_problem() -> None:
    rows = many(3, 1.0, "CreateDelegationToken", error="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
    assert found(RULE, observed(rows[:1])) == []
    assert [row["severity"] for row in found(RULE, observed(rows))] == ["medium"]


def test_transactions_that_wait_for_the_last_one_s_end_are_usual_as_long_as_some_go_through() -> None:
    rows = many(18, 0.1, "AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS")
    assert len(found(RULE, observed(rows))) == 1
    assert found(RULE, observed([*rows, exchange("C1", 99, "AddPartitionsToTxn", 9)]), loud=False) == []


def test_a_request_that_is_tried_again_is_judged_by_what_it_gets_in_the_end() -> None:
    """EndTxn of a producer that is fenced gets CONCURRENT_TRANSACTIONS as long as the coordinator ends its transaction."""
    waits = many(3, 0.1, "EndTxn", error="CONCURRENT_TRANSACTIONS", transactional_id="tx")
    fenced = exchange("C1", 99, "EndTxn", 1, error="PRODUCER_FENCED", transactional_id="tx")
    assert found(RULE, observed([*waits, fenced]), loud=False) == []
    before = exchange("C0", 1, "EndTxn", -1, error="PRODUCER_FENCED", transactional_id="tx")
    assert len(found(RULE, observed([*waits, before]))) == 1, "what came before it says nothing of these"


def test_what_the_capture_does_not_show_may_have_gone_through() -> None:
    rows = many(3, 1.0, "InitProducerId", error="INVALID_TRANSACTION_TIMEOUT")
    lost = exchange("C1", 99, "InitProducerId", 9, latency=None)
    (row,) = found(RULE, observed([*rows, lost]))
    assert "3 InitProducerId requests (1 more without a response in the capture): the transaction timeout" in row["sentence"]
    assert row["evidence"]["unanswered"] == 1
    assert found(RULE, observed([rows[0], lost])) == [], "the next one has no response in the capture"
    waits = many(18, 0.1, "AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS")
    assert found(RULE, observed([*waits, exchange("C1", 99, "AddPartitionsToTxn", 9, latency=None)]), loud=False) == []


def test_errors_by_which_the_protocol_works_and_those_of_other_rules_are_left_alone() -> None:
    quiet = sorted(refusals.USUAL | refusals.JUDGED | {"NONE", "TOPIC_AUTHORIZATION_FAILED"})
    rows = [row for error in quiet for row in many(20, 1.0, "Produce", error=error, client_id=error, connection=error)]
    assert found(RULE, observed(rows), loud=False) == []


def test_every_error_that_kafka_has_is_judged_by_some_rule_or_is_usual() -> None:
    """An error that is said to be judged elsewhere is named by another module of rules; names are Kafka's."""
    assert set(CODES) >= refusals.JUDGED | refusals.USUAL | set(refusals.MEANINGS)
    assert not refusals.JUDGED & refusals.USUAL
    elsewhere = "".join(file.read_text() for file in FINDINGS.glob("*.py") if file.name != "refusals.py")
    words = set(re.findall(r"[A-Z][A-Z_]+[A-Z]", elsewhere))
    assert words >= refusals.JUDGED
    rest = set(CODES) - refusals.JUDGED - refusals.USUAL - {"NONE"}
    rest = {name for name in rest if "AUTHORIZATION" not in name}
    rows = [exchange(f"C{at}", 1, "Produce", at, error=error, client_id=error) for at, error in enumerate(sorted(rest))]
    assert {row["who"]["client_id"] for row in check(observed(rows), {RULE})["rows"]} == rest
