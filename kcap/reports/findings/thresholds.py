"""Thresholds of rules that a user sets in place of a rule's own.

In: the table `[check]` of the configuration file, where a rule's id names a table of its thresholds. Out: thresholds that
differ, by rule. Law: a rule or a threshold that does not exist is refused with the nearest name, so that a slip does not go
unseen.
"""

from collections.abc import Mapping
from typing import Any

from kcap.errors import UsageError, did_you_mean
from kcap.reports.findings.model import Rule


def thresholds_of(table: Mapping[str, Any], rules: Mapping[str, Rule], place: str = "[check]") -> dict[str, dict[str, float]]:
    """The thresholds that `table` sets; entries that are no tables are options of the command, which are not looked at.

    Raises UsageError, which begins with `place`, for an unknown rule or threshold and for a value that is no number of 0 or
    more.
    """
    found: dict[str, dict[str, float]] = {}
    for name, values in table.items():
        if not isinstance(values, dict):
            continue
        if name not in rules:
            raise UsageError(f"{place} {name} is no rule{did_you_mean(name, rules)}; kcap check --list names all")
        known = rules[name].thresholds
        for key, value in values.items():
            if key not in known:
                there = did_you_mean(key, known) or (f"; it has {', '.join(known)}" if known else "; it has none")
                raise UsageError(f"{place} {name}.{key} is no threshold of this rule{there}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise UsageError(f"{place} {name}.{key}: {value!r} is no number of 0 or more")
            found.setdefault(name, {})[key] = value
    return found
