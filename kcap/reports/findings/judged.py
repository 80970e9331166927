"""What a capture must hold for rules to be judged, and what of it is missing.

In: the tables of a capture. Out: rule -> why the capture cannot say. Law: a rule that found something was judged; a rule whose
needs are met and that found nothing is silent because nothing is wrong.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from kcap.reports.findings.model import NO_CLIENTS, NO_KAFKA, Rule
from kcap.reports.findings.observed import Observed

PART: Final = 0.2
"""Share of exchanges from which on something that they lack stands in the way."""
SHORT_NS: Final = 5_000_000_000
"""Captures that are shorter show nothing that takes its time."""


def _lacking(name: str, words: str, seen: Observed) -> str | None:
    """The reason where a large part of the exchanges lacks something; `name`: how `Observed.quality` calls their number."""
    part = seen.quality[name] / max(seen.quality["n"], 1)
    return f"{part:.0%} of {words}" if part >= PART else None


def _messages(seen: Observed) -> str | None:
    return None if seen.has_messages else "saved tables have no messages, which this rule reads"


def _beginnings(seen: Observed) -> str | None:
    begun = any(began == "syn" for _, began in seen.begun)
    return None if begun else "the capture began after all of its connections"


def _peers(seen: Observed) -> str | None:
    servers = [
        {(call["server_ip"], call["server_port"]) for call in one.calls if call["api"] in ("Produce", "Fetch")}
        for _, one in seen.once(Observed.by_cluster)
    ]
    if not any(servers):
        return "the capture has no Produce and no Fetch"
    if any(len(some) > 1 for some in servers):
        return None
    where = "of each cluster" if len(servers) > 1 else "in the capture"
    return f"one broker serves all Produce and Fetch {where}: there is none to compare it with"


def _time(seen: Observed) -> str | None:
    first, last = seen.span
    short = f"the capture lasts {(last - first) / 1e9:.1f} s, and the rule needs {SHORT_NS // 10**9}"
    return short if last - first < SHORT_NS else None


NEEDS: Final[Mapping[str, Callable[[Observed], str | None]]] = {
    "requests": partial(_lacking, "orphans", "the responses have no request in the capture"),
    "responses": partial(_lacking, "lost", "the requests have no response in the capture"),
    "bodies": partial(_lacking, "cut", "the messages are not in the capture as a whole (snapshot length, lost packets)"),
    "messages": _messages, "beginnings": _beginnings, "peers": _peers, "time": _time,
}  # fmt: skip
"""Need -> what gives the reason why it is not met, None where it is."""


def not_judged(seen: Observed, rules: Collection[Rule]) -> dict[str, str]:
    """Of rules that found nothing: those that the capture cannot serve, with the reason."""
    unread: dict[str, str] = {}
    if not seen.quality["n"]:
        tls = any(phase == "tls" for phase, _ in seen.begun)
        brokers = bool(seen.run(seen.every.select("connection").limit(1)))
        why = NO_CLIENTS + ": TLS hides these" * tls if brokers else NO_KAFKA + " that is not encrypted" * tls
        unread = {rule.id: why for rule in rules if not (tls and rule.encrypted) and not (brokers and rule.between_brokers)}
    missing = {name: reason for name, need in NEEDS.items() if (reason := need(seen)) is not None}
    return unread | {
        rule.id: "; ".join(missing[need] for need in rule.needs if need in missing)
        for rule in rules if rule.id not in unread and missing.keys() & set(rule.needs)
    }  # fmt: skip
