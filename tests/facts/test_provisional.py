"""Whether a row would be different by now is never denied where one would be."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.provisional import Facts, Provisional

SERVERS = [("10.0.0.1", 9092), ("10.0.0.2", 9092), ("10.0.0.3", 9092)]
NONE: Facts = (None, None, None)


def test_ids_that_have_a_name_by_now() -> None:
    rows = Provisional()
    rows.nameless(["a", "b"])
    assert not rows.outdated({"c": "x"}, dict.fromkeys(SERVERS, NONE).__getitem__)
    assert rows.outdated({"a": "x"}, dict.fromkeys(SERVERS, NONE).__getitem__)


@given(
    st.lists(st.tuples(st.sampled_from(SERVERS), st.sampled_from([NONE, (1, "C", None), (1, "C", 2)]))),
    st.lists(st.sampled_from("abcd")),
    st.sets(st.sampled_from("abcd")),
    st.fixed_dictionaries({server: st.sampled_from([NONE, (1, "C", None), (1, "C", 2)]) for server in SERVERS}),
    st.integers(1, 4),
)
def test_no_difference_is_denied(
    had: list[tuple[tuple[str, int], Facts]],
    nameless: list[str],
    named: set[str],
    today: Mapping[tuple[str, int], Facts],
    kept: int,
) -> None:
    """Law, whatever the bound; behind `settle` nothing differs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "NAMELESS_KEPT", kept)
        rows = Provisional()
        rows.nameless(nameless)
        rows.identified(had)
        differs = bool(named & set(nameless)) or any(today[server] != ids for server, ids in had)
        assert rows.outdated(named, today.__getitem__) >= differs
        rows.settle(named, today.__getitem__)
        assert not rows.outdated(named, today.__getitem__)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the answer is yes, since it is not known."""
    monkeypatch.setattr(limits, "NAMELESS_KEPT", 3)
    rows = Provisional()
    rows.nameless("abcabc")
    assert not rows.outdated({"x"}, lambda _server: NONE)
    rows.nameless("d")
    assert rows.outdated({"x"}, lambda _server: NONE)
