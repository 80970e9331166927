"""`kcap transactions` as people and pipelines run it."""

import json

import pytest

from kcap.cli.report_output import formatted
from kcap.cli.transactions import OUTCOMES, document, sentence
from kcap.reports.source import ReportInput
from kcap.reports.transactions.report import transactions
from tests.cli.running import PCAPS, kcap, run_here

FENCED = PCAPS / "problems" / "zombie-fenced.pcap"


@pytest.mark.parametrize(("outcome", "code"), [("fenced", 1), ("open,timed_out", 0), ("close", 2)])
def test_a_pipeline_fails_on_outcomes(outcome: str, code: int) -> None:
    done = kcap("transactions", FENCED, "--id", "room-tx", "--fail-on", outcome, "--format", "json")
    assert done.returncode == code
    if code < 2:
        assert len(json.loads(done.stdout)["rows"]) == 6


def test_one_request_is_one_request() -> None:
    row = dict.fromkeys((*OUTCOMES, "transactions", "fences"), 1) | {"max_ns": None, "group_ids": [], "transactional_id": "x"}
    row["ended_again"] = 0
    assert sentence(row | {"p50_ns": None}).startswith("x: 1 transaction (")
    assert sentence(row).endswith("; 1 request refused as fenced")
    assert sentence(row | {"fences": 2}).endswith("; 2 requests refused as fenced")


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_each_form_shows_ids_transactions_fences_and_producers(form: str) -> None:
    made = formatted(transactions(ReportInput([str(FENCED)])), form, None, document)
    out = " ".join(made.replace("\\", "").split())
    for word in ("room-tx: 6 transactions (1 committed, 5 fenced)", "INVALID_PRODUCER_EPOCH", "producers of room-tx", "424ms"):
        assert word in out


def test_an_end_that_was_sent_again_is_not_fenced() -> None:
    code, text = run_here("transactions", str(PCAPS / "problems" / "healthy-flink-restore.pcap"))
    out = " ".join(text.split())
    assert not code
    ended = "2 EndTxn requests for a transaction that had ended already"
    assert f"flink-job-0-16: 1 transaction (1 committed); median 2.89s, longest 2.89s; {ended}" in out
    assert "refused as fenced;" not in out
    assert out.count("it had ended already") == 3


def test_a_capture_without_transactions_says_so() -> None:
    done = kcap("transactions", PCAPS / "problems" / "static-member-fenced.pcap")
    assert done.returncode == 0
    assert "no transaction was found" in done.stdout.decode()
    done = kcap("transactions", PCAPS / "java-transactions.pcap", "--id", "orders")
    assert "no transactional id is 'orders'; without --id all are listed" in done.stdout.decode()
