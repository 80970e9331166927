"""Common display filters, each with a key.

In: the row under the cursor. Out: display filters. Law: each of them parses; those built from a row select that row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kcap.tui.color_rules import ERROR, LONG_POLL, SLOW, THROTTLED, UNANSWERED
from kcap.tui.list_columns import client_filter, end_filter, equals, topics_filter

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    key: str
    title: str
    text: Callable[[Row], str | None] | str
    """The filter, or the function that builds it from a row; None if the row lacks the value."""


def _of(name: str) -> Callable[[Row], str | None]:
    return lambda row: equals(name, row[name]) if row[name] is not None else None


QUICK: Final = (
    Quick("errors", "e", "Errors", ERROR),
    Quick("slow", "s", "Slow: 500 ms and more, without long polls", SLOW),
    Quick("throttled", "t", "Throttled", THROTTLED),
    Quick("unanswered", "u", "Requests without a response, responses without a request", UNANSWERED),
    Quick("no_polls", "p", "Without long polls", f"!({LONG_POLL})"),
    Quick("odd", "o", "Flagged", "flags"),
    Quick("connection", "c", "This connection", _of("connection")),
    Quick("client", "i", "This client", client_filter),
    Quick("host", "h", "This client address", lambda row: f"client_ip == {row['client_ip']}"),
    Quick("broker", "b", "This broker", lambda row: end_filter(row, "server")),
    Quick("api", "a", "This API", _of("api")),
    Quick("topic", "T", "This topic", topics_filter),
    Quick("group", "g", "This group", _of("group_id")),
)  # fmt: skip


def text_of(quick: Quick, row: Row | None) -> str | None:
    """The filter; None if there is none for the row."""
    if isinstance(quick.text, str):
        return quick.text
    return quick.text(row) if row is not None else None
