"""The grammar: every part has a name for people."""

from lark import Tree

from kcap.filter.grammar import NAMES, parser


def test_terminals_that_can_be_missing_have_names() -> None:
    known = {terminal.name for terminal in parser().terminals} | {"$END"}
    assert set(NAMES) <= known


def test_places_are_kept() -> None:
    tree = parser().parse("api == Fetch")
    assert isinstance(tree, Tree)
    (compare,) = tree.children
    assert isinstance(compare, Tree)
    assert (compare.meta.start_pos, compare.meta.end_pos) == (0, 12)


def test_words_hold_what_people_type() -> None:
    for word in ("50ms", "10.0.0.0/8", "::1", "2026-11-21T06:00:00", "a-b.c_d", "-1", "0x1f"):
        tree = parser().parse(f"x == {word}")
        assert [str(token) for token in tree.scan_values(lambda token: token.type == "WORD")] == ["x", word]
