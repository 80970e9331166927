"""Completes the word at the caret of the filter bar: names, operators, values.

In: the text, the caret, the values in the capture. Out: the range of the word, and its completions. Law: a completion starts
with the word or contains it; a text with a completion inserted still parses as far as it parsed before.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from kcap.errors import UsageError
from kcap.filter.ast import Filter
from kcap.filter.parse import FilterError, parse
from kcap.reports.drill_down import quoted

WORD: Final = re.compile(r'"[^"]*$|[A-Za-z0-9_.:/+-]*$')
BEFORE: Final = re.compile(
    r"([A-Za-z_][\w.]*)\s*(===|==|!==|!=|~=|<=|>=|<|>|\b(?:eq|ne|any_eq|all_eq|any_ne|all_ne|lt|le|gt|ge|contains)\b"
    r"|\bin\s*\{(?:[^}]*[,\s])?)\s*$"
)
"""A name and an operator, which a value follows."""
OFFERS: Final = 50
FIRST: Final = (
    "api", "client_id", "latency", "error", "topic", "throttle", "outcome", "group_id", "client_ip", "server_ip", "api_version",
    "software_name", "connection", "flags", "time",
)  # fmt: skip
"""Names that are suggested first if nothing was typed."""
PLAIN: Final = re.compile(r"[A-Za-z0-9_:/.+-]+")


def offers(text: str, caret: int, values: Callable[[str], Sequence[str]]) -> tuple[int, list[str]]:
    """The start of the word at the caret, and its completions. `values`: returns those of a column in the capture."""
    from kcap.filter.fields import fields, named_values  # the start completes no text, and schemas are large

    found = WORD.search(text[:caret])
    assert found is not None
    start, word = found.start(), found.group()
    before = BEFORE.search(text[:start])
    if before is not None and (field := fields().get(before[1])) is not None:
        known = [str(value) for value in named_values(field.columns[0]).values()] if field.kind == "text" else []
        if field.columns[0] == "api_key":
            known = [str(word) for word in named_values("api")]
        seen = [value for name in field.columns for value in values(name)]
        wanted = word.strip('"').lower()
        every = dict.fromkeys([*seen, *known])
        able = [value for value in every if value.lower().startswith(wanted)]
        able += [value for value in every if wanted and wanted in value.lower() and value not in able]
        return start, [value if PLAIN.fullmatch(value) else quoted(value) for value in able[:OFFERS]]
    if word.startswith('"'):
        return start, []
    if word.partition(".")[0] in ("request", "response") and "." in word:
        return start, _steps(word)
    every_name = [*FIRST, *(name for name in fields() if name not in FIRST), "request.", "response."]
    able = [name for name in every_name if name.startswith(word.lower())]
    able += [name for name in every_name if len(word) > 1 and word.lower() in name and name not in able]
    return start, [name for name in able if name != word][:OFFERS] if word or not text.strip() else []


def _steps(word: str) -> list[str]:
    """Names of fields within messages, one step at a time."""
    from kcap.filter.fields import deep_fields

    depth = word.count(".") + 1
    found = dict.fromkeys(
        ".".join(name.split(".")[:depth]) + ("." if name.count(".") + 1 > depth else "") for name in deep_fields()
        if name.startswith(word)
    )  # fmt: skip
    return [name for name in found if name != word][:OFFERS]


def put_in(text: str, start: int, caret: int, offer: str) -> tuple[str, int]:
    """The text with a completion in place of the word, and the new position of the caret."""
    made = text[:start] + offer
    if not offer.endswith(".") and not text[caret:].startswith(" "):
        made += " "
    return made + text[caret:], len(made)


def check(text: str) -> tuple[Filter | None, FilterError | UsageError | None]:
    """Parses a filter; returns its tree and the error, one of which is None (both for an empty text)."""
    try:
        return parse(text), None
    except UsageError as error:
        return None, error


def joined(old: str, how: str, new: str) -> str:
    """Combines a filter with another: `selected`, `not`, `and`, `or`, `and not`, `or not`."""
    inverse = f"!({new})"
    if how in ("selected", "not") or not old.strip():
        return inverse if how.endswith("not") else new
    sign, term = ("&&" if how.startswith("and") else "||"), (inverse if how.endswith("not") else new)
    left = f"({old})" if ("||" in old or " or " in old) and sign == "&&" else old
    right = f"({term})" if "||" in term and sign == "&&" and not term.startswith("!(") else term
    return f"{left} {sign} {right}"
