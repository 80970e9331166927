"""The report `check`: every rule over a capture, findings in the order of what they cost.

In: the tables as `Observed`, which rules to run, thresholds that the user changed. Out: the report as plain values: `rows`,
`judged`, how many rules judged the capture, and `not_judged` with the reason for each rule that the capture cannot serve.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kcap import limits
from kcap.reports.definition import Report, ReportRequest
from kcap.reports.findings import (  # noqa: F401 - their functions are rules
    access,
    closing,
    consuming,
    encryption,
    groups,
    leaders,
    losses,
    network,
    pipelines,
    producing,
    proxies,
    quotas,
    refusals,
    refusing,
    releases,
    replication,
    serving,
    sharing,
    slow_logins,
    stalls,
    static_members,
    timeouts,
    topics,
    transactions,
    unavailable,
)
from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.judged import not_judged
from kcap.reports.findings.model import JAVA, OF_VERSIONS, RULES, SETTING, SEVERITIES, Finding, Rule, concerned, where
from kcap.reports.findings.observed import Observed
from kcap.reports.names import OTHERS
from kcap.reports.run import columns_of, computed
from kcap.reports.source import ReportInput

NAMING: Final = (
    consuming, groups, leaders, losses, pipelines, producing, refusals, releases, replication, sharing, static_members, topics,
    transactions,
)  # fmt: skip
OF_NAMES: Final = frozenset(module.__name__ for module in NAMING)
"""Modules whose rules tell apart by names and numbers that mean something in one cluster alone: topics, groups, offsets. So do
rules that compare brokers, which need `peers`."""
UNNAMED: Final = "unnamed_findings"
"""Reason for which findings are left out."""


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
    chosen = [rule for rule in RULES.values() if (not only or rule.id in only) and rule.id not in skip]
    seen.selected = frozenset(rule.id for rule in chosen)
    mine = seen.of_clients()
    carried = mine.once(proxies.carried)
    if carried:
        mine = mine.of_front(carried)
    clusters = mine.once(Observed.by_cluster)
    for rule in chosen:
        limit = {**rule.thresholds, **((thresholds or {}).get(rule.id) or {})}
        apart = clusters if rule.find.__module__ in OF_NAMES or "peers" in rule.needs else [(None, mine)]
        every = [
            of_cluster(finding, name)
            for name, one in apart
            for finding in (one.once(rule.by_default) if limit == rule.thresholds else rule.find(one, limit))
        ]
        found = [row_of(rule, finding, mine) for finding in every if of_one(finding.who)]
        if len(found) < len(every):
            mine.left_out[UNNAMED] = mine.left_out.get(UNNAMED, 0) + len(every) - len(found)
        rows += found
        silent += [] if found else [rule]
    rows.sort(key=cost)
    filters = [row["filter"] for row in rows[: limits.REPORT_COURSES]]
    made = seen.courses(filters, mine.span) if seen.courses is not None and filters else []
    for at, row in enumerate(rows):
        row["course"] = made[at] if at < len(made) else []
    unjudged = not_judged(mine, silent)
    judged = sum(rule.id not in unjudged for rule in chosen)
    return {"rows": rows, "span_ns": list(mine.span), "judged": judged, "not_judged": unjudged} | (
        {"left_out": mine.left_out} if mine.left_out else {}
    )


def tables_with(report: Report, request: ReportRequest) -> dict[str, Sequence[str]]:
    """The tables of rules with the columns that another report needs beside."""
    more = (name for name in columns_of(report, request) if name not in COLUMNS["exchanges"])
    return {**COLUMNS, "exchanges": (*COLUMNS["exchanges"], *more)}


def with_findings(
    report: Report, given: ReportInput, request: ReportRequest, thresholds: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, Any]:
    """Another report with what this one finds as `findings`, of one reading of captures.

    Raises as `observed` does.
    """
    from kcap.reports.findings.source import observed_by

    with observed_by(given, tables_with(report, request)) as (engine, seen):
        seen.courses = None  # the report has the course of everything
        found = check(seen, thresholds=thresholds)["rows"]
        made = computed(engine, ["exchanges"], report, given, request)
    return {"report": made["report"], "captures": made["captures"], "findings": found} | made


def of_cluster(finding: Finding, cluster: str | None) -> Finding:
    """The finding with the cluster in which it was made, where there are several."""
    if cluster is None:
        return finding
    only = where(cluster_id=cluster) if not finding.filter else where(finding.filter, cluster_id=cluster)
    return replace(finding, who={**finding.who, "cluster_id": cluster}, filter=only)


def of_one(who: Mapping[str, Any]) -> bool:
    """Whether each name is that of one client, group or topic: those that a report does not tell apart did nothing together."""
    return not any(OTHERS in (value if isinstance(value, list) else [value]) for value in who.values())


def of_java(seen: Observed) -> set[str | None]:
    """The client ids whose requests name Kafka's Java client."""
    return {call["client_id"] for call in seen.calls if call["software_name"] == JAVA}


def row_of(rule: Rule, finding: Finding, seen: Observed) -> dict[str, Any]:
    """A finding as a row of the report."""
    advice = finding.advice or rule.advice
    settings = SETTING.search(advice) or rule.id == OF_VERSIONS
    if settings and not seen.once(of_java).issuperset(concerned(finding.who, seen)):
        from kcap.reports.findings.settings import for_clients

        advice = for_clients(advice, rule.id, finding.who, seen)
    return {
        "id": rule.id,
        "severity": finding.severity or rule.severity,
        "confidence": finding.confidence if finding.confidence is not None else rule.confidence,
        "sentence": finding.sentence,
        "advice": advice,
        "who": {name: shortened(value) for name, value in finding.who.items() if value not in (None, [], "")},
        "first_ns": finding.first_ns,
        "last_ns": finding.last_ns,
        "count": finding.count,
        "lost_ns": finding.lost_ns,
        "filter": finding.filter,
        "evidence": {name: shortened(value) for name, value in finding.evidence.items() if value is not None},
        "instead": rule.instead,
    }


def shortened(value: Any) -> Any:
    """A value of a finding; of a list as much as a finding names."""
    return value[: limits.NAMES_MOST] if isinstance(value, list) else value


def cost(row: Mapping[str, Any]) -> tuple[int, int, int, str, str]:
    """The order of findings: severity, time lost, count; then names, so that the order is always the same."""
    return SEVERITIES.index(row["severity"]), -row["lost_ns"], -row["count"], row["id"], row["sentence"]
