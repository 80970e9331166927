"""Coloring rules of the list: display filters with a tone and a sign; the first that matches applies.

In: rules, some rows. Out: the rule of each row. Law: a rule has a sign as well as a tone, so that color is never the
only carrier of a meaning; a user's rule that does not parse is reported and ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kcap.errors import UsageError
from kcap.filter.ast import And, Compare, FieldRef, Filter, Membership, Not, Or, columns_of, is_deep
from kcap.filter.row_predicate import Columns, RowSelector
from kcap.tui.views.sheet import TONES


@dataclass(frozen=True, slots=True)
class ColorRule:
    """A kind of row."""

    name: str
    text: str
    """Display filter."""
    sign: str
    """One letter at the row's left."""
    tone: str
    tree: Filter | None = None


ERROR: Final = "error && error != NONE"
NEW_MEMBER_ERROR: Final = "MEMBER_ID_REQUIRED"
"""The error of the first response to each new member of a group, which has its id (KIP-394): nothing went wrong."""
NEW_MEMBER: Final = f"error == {NEW_MEMBER_ERROR}"
UNANSWERED: Final = "outcome in {unanswered, orphan}"
THROTTLED: Final = "throttle > 0 || throttle_ns > 0 || muted > 0"
SLOW: Final = "latency >= 500ms && !(long_poll > 0)"
LONG_POLL: Final = "long_poll > 0"
DEFAULTS: Final = (
    ("new member", NEW_MEMBER, "i", "dim"),
    ("error", ERROR, "E", "bad"),
    ("unanswered", UNANSWERED, "?", "three"),
    ("throttled", THROTTLED, "T", "two"),
    ("slow", SLOW, "S", "care"),
    ("long poll", LONG_POLL, "~", "dim"),
)
"""Name, filter, sign, tone; a user's rules come before them."""


def _number(name: str, column: str, operator: str, value: int) -> Compare:
    return Compare(FieldRef(name, "number", (column,)), operator, value)


_FAILED: Final = Compare(FieldRef("error", "text", ("error",)), "!=", "NONE", every=True)
_POLLED: Final = _number("long_poll", "long_poll_ns", ">", 0)
TREES: Final[dict[str, Filter]] = {
    ERROR: And(_FAILED, _FAILED),
    NEW_MEMBER: Compare(FieldRef("error", "text", ("error",)), "==", NEW_MEMBER_ERROR),
    UNANSWERED: Membership(FieldRef("outcome", "text", ("outcome",)), ("unanswered", "orphan"), ()),
    THROTTLED: Or(
        Or(_number("throttle", "throttle_time_ms", ">", 0), _number("throttle_ns", "throttle_ns", ">", 0)),
        _number("muted", "muted_ns", ">", 0),
    ),
    SLOW: And(_number("latency", "latency_ns", ">=", 500_000_000), Not(_POLLED)),
    LONG_POLL: _POLLED,
}
"""The parsed filters of DEFAULTS, written out, since the parser takes 0.03 s of a start."""
FAILING: Final = Or(TREES[ERROR], TREES[UNANSWERED])


def rules_of(given: Iterable[dict[str, Any]]) -> tuple[list[ColorRule], list[str]]:
    """The user's rules and the defaults; and the errors of the rules that do not parse."""
    rules: list[ColorRule] = []
    wrong: list[str] = []
    for entry in given:
        name, text = str(entry.get("name", "rule")), str(entry.get("filter", ""))
        tone = str(entry.get("tone", "key"))
        from kcap.filter.parse import parse

        try:
            tree = parse(text)
        except UsageError as error:
            wrong.append(f"rule {name!r}: {error}")
            continue
        if tree is None or is_deep(tree) or tone not in TONES:
            wrong.append(f"rule {name!r}: the filter must be on columns, and the tone one of {', '.join(filter(None, TONES))}")
            continue
        rules.append(ColorRule(name, text, str(entry.get("sign", "*"))[:1] or "*", tone, tree))
    rules += [ColorRule(name, text, sign, tone, TREES[text]) for name, text, sign, tone in DEFAULTS]
    return rules, wrong


def columns(rules: Sequence[ColorRule]) -> list[str]:
    return list(dict.fromkeys(name for rule in rules if rule.tree is not None for name in columns_of(rule.tree)))


def apply(rules: Sequence[ColorRule], values: Columns, count: int) -> list[ColorRule | None]:
    """The rule of each of `count` rows, by the values of their columns.

    It works row by row, since a page has few. Each call of Arrow releases the interpreter's lock, and while another thread
    computes, a repaint would wait for it a hundred times.
    """
    chosen: list[ColorRule | None] = [None] * count
    left: Sequence[int] = range(count)
    selector = RowSelector(values)
    for rule in rules:
        for row in left if rule.tree is None else selector.rows(rule.tree, left):
            chosen[row] = rule
        left = [row for row in left if chosen[row] is None]
    return chosen
