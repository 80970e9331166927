"""The report of all rules."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kcap.filter.parse import parse
from kcap.reports.findings.model import RULES, SEVERITIES
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.report import UNNAMED, check
from kcap.reports.findings.running import Runner
from kcap.reports.names import OTHERS
from kcap.reports.recorded import name_of
from tests.reports.findings.tables import exchange, many, observed

ROOT = Path(__file__).resolve().parents[3]
PLANTED = """aborted-transactions authentication-failed-loop authorization-denied client-clock-skew commit-storm compression-off
connection-churn down-conversion fetch-session-churn hanging-transaction head-of-line idle-disconnect listener-is-controller
long-transaction message-too-large metadata-storm not-enough-replicas not-leader offset-out-of-range rebalance-loop
request-timeout retransmission-bound sasl-mechanism-mismatch skewed-partitions slow-broker slow-consumer-fetch slow-network
static-member-fenced throttled-disobedient throttled-obedient tiny-batches tls-plaintext-confusion unknown-topic-loop
wrong-advertised-listener zombie-fenced""".split()


def test_every_id_of_the_contract_has_a_rule() -> None:
    assert set(PLANTED) <= RULES.keys()


def test_findings_stand_in_the_order_of_what_they_cost_and_lead_to_their_exchanges() -> None:
    rows = many(100, 0.01, "OffsetCommit", group_id="g") + many(5, 1.0, "SaslAuthenticate", error="SASL_AUTHENTICATION_FAILED")
    found = check(observed(rows))["rows"]
    assert {row["id"] for row in found} == {"commit-storm", "authentication-failed-loop"}
    assert [SEVERITIES.index(row["severity"]) for row in found] == sorted(SEVERITIES.index(row["severity"]) for row in found)
    for row in found:
        assert parse(row["filter"]) is not None
        assert {"sentence", "advice", "instead", "confidence", "who", "evidence", "count", "first_ns", "last_ns"} <= row.keys()


def test_an_empty_capture_has_no_findings() -> None:
    assert check(observed([], connections=[]))["rows"] == []


def test_names_that_are_not_told_apart_are_accused_of_nothing() -> None:
    """What stands for many clients did nothing together."""
    found = check(observed(many(100, 0.01, "OffsetCommit", group_id="g", client_id=OTHERS)))
    assert found["rows"] == []
    assert found["left_out"] == {UNNAMED: 1}


def test_topics_and_groups_of_one_name_in_two_clusters_are_not_mixed() -> None:
    """One cluster's group commits slowly what is written slowly there; the other's topic of that name grows quickly."""
    rows, parts = [], []
    for cluster, quick in (("A", 1), ("B", 9)):
        mine: dict[str, Any] = {"cluster_id": cluster, "group_id": "g", "server_port": 9092 + quick}
        for api, key in (("Fetch", 1), ("OffsetCommit", 8)):
            rows += [exchange(f"{cluster}{key}", at + 1, api, 2 * at + key / 8, **mine) for at in range(9)]
            parts += [
                {"connection": f"{cluster}{key}", "exchange": at + 1, "api_key": key, "topic": "t", "partition": 0, "lag": 0,
                 "error": "NONE", "group_id": "g", "high_watermark" if key == 1 else "committed_offset": 100 * at * quick}
                for at in range(9)
            ]  # fmt: skip
    assert check(observed(rows, parts))["rows"] == []
    slow = [one | {"committed_offset": 0} if one["connection"] == "B8" else one for one in parts]
    (found,) = check(observed(rows, slow))["rows"]
    assert found["who"] == {"client_id": "app", "group_id": "g", "topic": "t", "cluster_id": "B"}
    assert 'cluster_id == "B"' in found["filter"]
    (alone,) = check(observed([row | {"cluster_id": None} for row in rows], slow))["rows"]
    assert alone["who"] == {"client_id": "app", "group_id": "g", "topic": "t"}, "nothing tells them apart"


def test_rules_can_be_chosen_and_thresholds_changed() -> None:
    rows = many(100, 0.01, "OffsetCommit", group_id="g")
    assert check(observed(rows), skip=["commit-storm"])["rows"] == []
    assert check(observed(rows), only=["rebalance-loop"])["rows"] == []
    assert check(observed(rows), thresholds={"commit-storm": {"commits": 101}})["rows"] == []


def test_the_page_of_findings_is_what_the_rules_say() -> None:
    words = [sys.executable, "docs/findings_page.py", "--check"]
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def named_tables(names: int) -> Observed:
    """A capture in which each of some transactional ids, clients, groups and topics gives rules something to look at."""
    rows, parts = [], []
    for name in range(names):
        link = f"C{name}"
        who: dict[str, Any] = {"client_id": f"app{name}", "group_id": f"g{name}", "transactional_id": f"tx{name}"}
        calls: list[tuple[str, float, str]] = [
            ("InitProducerId", 0, "NONE"), ("Produce", 1, "NONE"), ("EndTxn", 9, "NONE"),
            ("Produce", 10, "INVALID_PRODUCER_EPOCH"), ("JoinGroup", 11, "FENCED_INSTANCE_ID"),
            ("Produce", 12, "NOT_ENOUGH_REPLICAS"), ("Produce", 13, "NOT_ENOUGH_REPLICAS"),
        ]  # fmt: skip
        for number, (api, at, error) in enumerate(calls, 1):
            rows.append(exchange(link, number, api, at, error=error, **who))
            if api == "Produce":
                place = {"topic": f"t{name}", "partition": 0, "connection": link, "exchange": number}
                parts.append(place | {"api_key": 0, "error": error, "records": 9, "bytes": 900, "batches": 1, "codec": "none"})
    return observed(rows, parts)


def test_more_names_are_no_more_questions_and_other_names_no_other_ones() -> None:
    """Each question is compiled to SQL and planned: one for each of a thousand names takes minutes."""

    def asked(names: int) -> tuple[list[str], int, int]:
        seen, made, prepared = named_tables(names), list[str](), list[Any]()
        run = seen.runner

        def noted(expression: Any) -> list[Row]:
            made.append(name_of(expression))
            return run(expression)

        seen.runner, seen.prepare = Runner(noted), prepared.append  # type: ignore[method-assign, assignment]
        found = check(seen)["rows"]
        return made, len(prepared), len(found)

    few, more = asked(12), asked(24)
    assert few[0] == more[0]
    assert few[1] == more[1]
    assert more[2] - few[2] >= 3 * 12, "each name has its findings"


def test_each_name_is_accused_of_its_own_errors_alone() -> None:
    found = [row for row in check(named_tables(3))["rows"] if row["id"] == "not-enough-replicas"]
    assert [(row["who"]["topic"], row["who"]["client_ids"]) for row in found] == [(f"t{n}", [f"app{n}"]) for n in range(3)]
