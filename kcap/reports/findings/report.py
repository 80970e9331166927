"""The report `check`: every rule over a capture, findings in the order of what they cost.

In: the tables as `Observed`, which rules to run, thresholds that the user changed. Out: the report as plain values: `rows`,
and `not_judged` with the reason for each rule that the capture cannot serve.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kcap.reports.findings import (
    access,
    consuming,
    encryption,
    groups,
    leaders,
    pipelines,
    producing,
    quotas,
    serving,
    transactions,
)
from kcap.reports.findings.judged import not_judged
from kcap.reports.findings.model import RULES, SEVERITIES, Finding, Rule
from kcap.reports.findings.observed import Observed

MODULES: Final = (access, consuming, encryption, groups, leaders, pipelines, producing, quotas, serving, transactions)
"""Modules whose functions are rules."""
EXCHANGE_COLUMNS: Final = (
    "connection", "exchange", "client_id", "software_name", "software_version", "principal", "sasl_mechanism", "group_id",
    "member_id", "generation", "transactional_id", "producer_id", "producer_epoch", "api", "api_version", "server_ip",
    "server_port", "client_ip", "broker_id", "error", "error_code", "outcome", "reason", "age_ns", "request_first_ns",
    "request_last_ns", "response_first_ns", "response_last_ns", "latency_ns", "rtt_ns", "queue_ns", "service_ns",
    "long_poll_ns",
    "throttle_ns", "muted_ns", "throttle_time_ms", "record_count", "batch_count", "records_bytes", "request_bytes",
    "session_epoch", "acks", "version_verdict", "flags", "tls", "capture", "response_capture", "client_port", "api_key",
    "correlation_id", "response_bytes", "request_first_packet", "response_first_packet", "request_last_capture",
    "response_last_capture", "request_pos", "request_end_pos", "response_pos", "response_end_pos", "max_wait_ms", "min_bytes",
    "transfer_ns", "request_transfer_ns",
)  # fmt: skip
PARTITION_COLUMNS: Final = (
    "connection", "exchange", "api_key", "topic", "topic_id", "partition", "error", "codec", "magic", "records", "bytes",
    "batches", "lag", "max_timestamp_ms", "producer_id", "producer_epoch", "base_offset", "fetch_offset",
    "high_watermark", "last_stable_offset",
)  # fmt: skip
CONNECTION_COLUMNS: Final = (
    "connection", "client_id", "client_ip", "server_ip", "server_port", "phase", "began", "ended", "tls", "packets",
    "retransmitted",
    "out_of_order", "zero_window_stalls", "exchanges", "client_captured", "server_captured", "first_ns", "last_ns",
    "rtt_min_ns",
    "client_rtt_min_ns", "tls_alerts", "tls_version", "tls_sni", "tls_server_subject", "tls_client_subject", "tls_ja4",
    "server_packets",
)  # fmt: skip
BROKER_COLUMNS: Final = ("host", "port", "broker_id")
COLUMNS: Final = {
    "exchanges": EXCHANGE_COLUMNS, "partitions": PARTITION_COLUMNS, "connections": CONNECTION_COLUMNS,
    "brokers": BROKER_COLUMNS,
}  # fmt: skip
"""Tables that rules look at -> their columns."""


def rules() -> Mapping[str, Rule]:
    """Every rule by id."""
    return RULES


def check(
    seen: Observed,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, Any]:
    """Findings of all rules, or of `only` some, as rows; `thresholds` has those that differ, by rule."""
    rows: list[dict[str, Any]] = []
    silent: list[Rule] = []
    mine = seen.of_clients()
    for rule in RULES.values():
        if (only and rule.id not in only) or rule.id in skip:
            continue
        limits = {**rule.thresholds, **((thresholds or {}).get(rule.id) or {})}
        found = [row_of(rule, finding) for finding in rule.find(mine, limits)]
        rows += found
        silent += [] if found else [rule]
    rows.sort(key=cost)
    return {"rows": rows, "not_judged": not_judged(mine, silent)}


def row_of(rule: Rule, finding: Finding) -> dict[str, Any]:
    """A finding as a row of the report."""
    return {
        "id": rule.id,
        "severity": finding.severity or rule.severity,
        "confidence": finding.confidence if finding.confidence is not None else rule.confidence,
        "sentence": finding.sentence,
        "advice": rule.advice,
        "who": {name: value for name, value in finding.who.items() if value not in (None, [], "")},
        "first_ns": finding.first_ns,
        "last_ns": finding.last_ns,
        "count": finding.count,
        "lost_ns": finding.lost_ns,
        "filter": finding.filter,
        "evidence": {name: value for name, value in finding.evidence.items() if value is not None},
        "instead": rule.instead,
    }


def cost(row: Mapping[str, Any]) -> tuple[int, int, int, str, str]:
    """The order of findings: severity, time lost, count; then names, so that the order is always the same."""
    return SEVERITIES.index(row["severity"]), -row["lost_ns"], -row["count"], row["id"], row["sentence"]
