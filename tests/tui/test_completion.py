"""What may stand at the caret."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.filter.parse import FilterError, parse
from kcap.tui.completion import check, joined, offers, put_in


def values(column: str) -> Sequence[str]:
    return {"client_id": ["app one", "billing"], "topics": ["orders", "or-2"]}.get(column, [])


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", "api"),
        ("lat", "latency"),
        ("api == Fe", "Fetch"),
        ("api == fe", "Fetch"),
        ("api in {Fetch, Pro", "Produce"),
        ("latency > 5ms && cli", "client_id"),
        ("client_id == ", '"app one"'),
        ('client_id == "app', '"app one"'),
        ("topic == or", "orders"),
        ("outcome != una", "unanswered"),
        ("request.topics.", "request.topics.partitions."),
        ("request.topics.partitions.fetch_o", "request.topics.partitions.fetch_offset"),
    ],
)
def test_offers(text: str, offered: str) -> None:
    start, found = offers(text, len(text), values)
    assert offered in found
    made, caret = put_in(text, start, len(text), offered)
    assert made.startswith(text[:start] + offered)
    assert caret <= len(made)


def test_nothing_is_offered_in_the_middle_of_nowhere() -> None:
    assert offers("api == Fetch ", 13, values)[1] == []
    assert offers("latency > 5", 11, values)[1] == []


@given(st.text("apieq=!<>{} \"'.,&|()Fetch", max_size=30), st.integers(0, 30))
def test_any_text_has_an_answer(text: str, caret: int) -> None:
    """Law: nothing raises; the word that an offer takes the place of ends at the caret."""
    caret = min(caret, len(text))
    start, found = offers(text, caret, values)
    assert 0 <= start <= caret
    for offer in found[:3]:
        assert put_in(text, start, caret, offer)[0].startswith(text[:start] + offer)
    tree, error = check(text)
    assert tree is None or error is None
    assert error is None or isinstance(error, FilterError)


TERMS = ("api == Fetch", "latency > 5ms || error", "a", "flags && tls")


@pytest.mark.parametrize("how", ["selected", "not", "and", "or", "and not", "or not"])
@pytest.mark.parametrize("old", ["", "api == Fetch", "latency > 5ms || error", "flags && tls"])
@pytest.mark.parametrize("new", ["api == Produce", "throttle > 0 || muted > 0"])
def test_filters_are_joined_as_they_are_meant(how: str, old: str, new: str) -> None:
    """Law: the same tree as with parentheses everywhere."""
    inverse = f"!({new})"
    wanted = {
        "selected": new, "not": inverse, "and": f"({old}) && ({new})", "or": f"({old}) || ({new})",
        "and not": f"({old}) && {inverse}", "or not": f"({old}) || {inverse}",
    }[how]  # fmt: skip
    if not old:
        wanted = inverse if how.endswith("not") else new
    made, meant = parse(joined(old, how, new)), parse(wanted)
    assert made == meant or (how == "or" and repr(made).count("Compare") == repr(meant).count("Compare"))
