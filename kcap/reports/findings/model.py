"""What a rule is and what it finds."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kcap.limits import CONNECTED_MOST, FILTER_MAX, NAMES_MOST, PICKED_MOST
from kcap.output.grid import duration
from kcap.reports import text
from kcap.reports.drill_down import UUID, about, quoted

if TYPE_CHECKING:
    from kcap.reports.findings.observed import Observed

SEVERITIES: Final = ("critical", "high", "medium", "low", "info")
"""From worst to least: data at risk or work stopped; errors that clients see; time lost; waste; worth knowing."""
EXPLANATIONS: Final = "other explanations"
"""Label of what else may explain a finding (`instead`)."""


SETTING: Final = re.compile(r"\b[a-z]+(?:\.[a-z]+)+\b")
"""A setting of Kafka in a sentence, such as `request.timeout.ms`."""

JAVA: Final = "apache-kafka-java"
"""What Kafka's Java client calls itself (KIP-511). Advice has its names of settings: it needs no table of others."""
OF_VERSIONS: Final = "version-refused"
"""The rule whose advice depends on the setting of a client's library for the versions of its requests."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, of one client, group, topic, broker or connection."""

    sentence: str
    """What happens, in plain words with its numbers."""
    who: Mapping[str, Any]
    """Whom it concerns: any of client_id, software, principal, group_id, topic, partition, transactional_id, server, broker_id,
    connection, client_ips, instance_id; cluster_id where the capture has several clusters."""
    count: int
    """How often it was seen."""
    filter: str
    """A display filter that passes the exchanges concerned; empty where no exchange is."""
    first_ns: int | None = None
    """Capture time of the first sighting, ns since the epoch."""
    last_ns: int | None = None
    lost_ns: int = 0
    """Time that it cost, as far as the capture shows: waiting, repeated work."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Numbers that the sentence rests on."""
    severity: str | None = None
    """Where it differs from the rule's."""
    confidence: float | None = None
    """Where it differs from the rule's."""
    advice: str | None = None
    """Where it differs from the rule's."""


Found = Iterable[Finding]
Find = Callable[["Observed", Mapping[str, float]], Found]
"""What a rule does: it looks at tables, with its thresholds."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    id: str
    severity: str
    confidence: float
    """0 to 1: how often such evidence has this cause."""
    looks_at: str
    """What it looks at, for `--explain`."""
    advice: str
    """The next step: setting, KIP or page of Kafka's documentation."""
    instead: str
    """What else the evidence could mean."""
    find: Find
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sources: str = ""
    needs: tuple[str, ...] = ()
    """What the capture must hold for this rule to be judged: names in `judged.NEEDS`."""
    encrypted: bool = False
    """Whether it judges TLS connections whose exchanges nothing can read."""
    between_brokers: bool = False
    """Whether it judges what brokers and controllers send each other."""

    @property
    def about(self) -> str:
        """The paragraphs of its function's docstring, each on one line."""
        return "\n\n".join(" ".join(one.split()) for one in (self.find.__doc__ or "").split("\n\n"))

    def by_default(self, seen: "Observed") -> "list[Finding]":
        """What it finds by its own thresholds, for rules on what follows from that: `seen.once(rule.by_default)`."""
        return list(self.find(seen, self.thresholds))


RULES: Final[dict[str, Rule]] = {}
"""Every rule by id."""


def rule(
    id: str,  # noqa: A002 - it is the finding's id
    severity: str,
    confidence: float,
    *,
    looks_at: str,
    advice: str,
    instead: str,
    sources: str = "",
    needs: str = "",
    encrypted: bool = False,
    between_brokers: bool = False,
    **thresholds: float,
) -> Callable[[Find], Find]:
    """Enters a function as a rule; `needs` has words of `judged.NEEDS`, `encrypted` rules judge TLS without keys,
    `between_brokers` what brokers send each other; keywords beyond the named ones are thresholds with their defaults.
    """

    def enter(find: Find) -> Find:
        if id in RULES:
            raise ValueError(f"two rules are called {id}")
        RULES[id] = Rule(
            id, severity, confidence, looks_at, advice, instead, find, thresholds, sources, tuple(needs.split()), encrypted,
            between_brokers,
        )  # fmt: skip
        return find

    return enter


def where(*conditions: str, **equal: object) -> str:
    """A display filter: columns that equal values, and conditions as they are; columns whose value is None are left out, and so
    is what would make the filter longer than one may be, so that it passes more.
    """
    given = ((name, value) for name, value in equal.items() if value is not None)
    parts = [equal_to(name, value) for name, value in given]
    made = ""
    for part in (*parts, *(f"({one})" if " or " in one else one for one in conditions if one)):
        longer = f"{made} and {part}" if made else part
        made = longer if len(longer) <= FILTER_MAX else made
    return made


def equal_to(column: str, value: object) -> str:
    """A condition that a column has a value. The id of a topic stands for its name where none is known."""
    if not isinstance(value, str):
        return f"{column} == {value}"
    made = about(column, value)
    return f"({made} or {about('topic_id', value)})" if column == "topic" and UUID.fullmatch(value) else made


def these(rows: Sequence[Mapping[str, Any]]) -> str:
    """A condition of a display filter that the requests of these rows alone meet, where they are few; empty where they are
    many, or some were not captured.
    """
    packets = {row["request_first_packet"] for row in rows}
    if not packets or len(rows) > PICKED_MOST or None in packets:
        return ""
    return f"request_first_packet in {{{', '.join(map(str, sorted(packets)))}}}"


def connected(rows: Sequence[Mapping[str, Any]]) -> str:
    """A condition that the exchanges of these connections meet; empty where they are many."""
    if len(rows) > CONNECTED_MOST:
        return ""
    return f"connection in {{{', '.join(sorted(quoted(row['connection']) for row in rows))}}}"


def of_clients(names: Sequence[str | None]) -> str:
    """A condition that an exchange is of one of these clients; empty where they are many or one has no id."""
    if len(names) > CONNECTED_MOST or not all(names):
        return ""
    return f"client_id in {{{', '.join(quoted(name) for name in sorted(map(str, names)))}}}"


def picking(seen: "Observed", chosen: Any, *keys: str) -> Callable[..., str]:
    """A function that gives the same for groups of the exchanges of an expression, as rows with `keys` and a count `n`.

    It reads all small groups when it is first called for one: findings may be many, and a query for each would be all for each.
    """
    from kcap.reports.findings.observed import rows_by  # what shows findings finds none

    @cache
    def small() -> dict[Any, list[dict[str, Any]]]:
        sized = chosen.mutate(many=chosen.count().over(group_by=keys))
        return rows_by(seen.run(sized.filter(sized.many <= PICKED_MOST).select(*keys, "request_first_packet")), keys)

    def condition(*groups: Mapping[str, Any]) -> str:
        if sum(group["n"] for group in groups) > PICKED_MOST:
            return ""
        return these([row for group in groups for row in small().get(tuple(group[key] for key in keys), ())])

    return condition


def picking_parts(seen: "Observed", parts: Any, *keys: str) -> Callable[..., str]:
    """`picking` for the exchanges of partitions, once for each value of `keys`."""
    key = ["connection", "exchange"]
    packets = seen.exchanges.select(*key, "request_first_packet")
    return picking(seen, parts.select(*key, *keys).distinct().inner_join(packets, key), *keys)


def erring(seen: "Observed", names: Sequence[str]) -> str:
    """A condition that an exchange has one of these errors; it names those that the capture has."""
    there = seen.errors_of_partitions | {call["error"] for call in seen.calls}
    one, *more = [name for name in names if name in there] or names
    return f"error in {{{', '.join((one, *more))}}}" if more else f"error == {one}"


def without_response(call: Mapping[str, Any]) -> bool:
    """Whether a class of exchanges got no responses, and the capture has lost none of them."""
    return call["outcome"] == "unanswered" and not call["lost"]


def passed(row: Mapping[str, Any]) -> str:
    """How many exchanges the filter of a finding passes, where its count is another: that of members, connections, packets, or
    of some among them that no filter picks. `156 exchanges; the count of the finding is 1`.
    """
    count = sum(row.get("course") or ())
    if not count or count == row["count"]:
        return ""
    return f"{text.count(count, 'exchange')}; the count of the finding is {row['count']:,}"


def in_versions(rows: Iterable[Mapping[str, Any]]) -> str:
    """A display filter: requests of the APIs and versions of these rows."""
    by: dict[str, set[int]] = {}
    for row in rows:
        by.setdefault(row["api"], set()).add(row["api_version"])
    some = (f"api == {api} and api_version in {{{', '.join(map(str, sorted(by[api])))}}}" for api in sorted(by))
    return " or ".join(some)


def named(values: Iterable[object], most: int = 5) -> str:
    """A list of names in a sentence."""
    known = [str(value) for value in values]
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def called(client: str | None) -> str:
    """A client in a sentence, by its client id."""
    return f"client {client}" if client else "a client of unknown id" if client is None else "a client without a client id"


def concerned(who: Mapping[str, Any], seen: "Observed") -> Sequence[str]:
    """The client ids that a finding is about: those that it names, or those of its group; the first NAMES_MOST."""
    if who.get("client_id"):
        return [who["client_id"]]
    group = who.get("group_id")
    every: Sequence[str] = who.get("client_ids") or (seen.clients_of(group_id=group) if group else [])
    return every[:NAMES_MOST]


def seconds(ns: float) -> str:
    """A duration in a sentence."""
    value = ns / 1e9
    if 0 < value < 0.001:
        return f"{value * 1e6:.0f} us"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 60 else duration(int(ns))


NO_KAFKA: Final = "the capture holds no Kafka exchange"
"""How the reason begins for which no rule can be judged."""
NO_CLIENTS: Final = "the capture holds exchanges of brokers and controllers alone, not of clients"
"""The reason where rules that judge clients have none."""


def nothing_judged(result: Mapping[str, Any]) -> str | None:
    """Says of a capture without Kafka's clients that nothing could be judged, or only what TLS or the traffic of brokers shows,
    and why; None of others.
    """
    why = next((why for why in result["not_judged"].values() if why.startswith((NO_KAFKA, NO_CLIENTS))), None)
    if why is None:
        return None
    if result.get("judged"):
        part = "what TLS shows without keys" if why.startswith(NO_KAFKA) else "what connections of brokers show"
        return f"no problem was found in {part}; nothing else could be judged: {why}"
    return f"nothing could be judged: {why}"


def headline(rows: Sequence[Mapping[str, Any]], result: Mapping[str, Any] | None = None) -> str:
    """How many findings a report has, by severity; `result`: the report whose rows they are."""
    nothing = None if rows or result is None else nothing_judged(result)
    if nothing is not None:
        return nothing
    counts = {severity: sum(row["severity"] == severity for row in rows) for severity in SEVERITIES}
    info = counts.pop("info")
    serious, beside = sum(counts.values()), f" ({info} info)" if info else ""
    summary = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    found = f"{serious} finding{'' if serious == 1 else 's'}: {summary}" if serious else "no problem was found"
    return found + beside
