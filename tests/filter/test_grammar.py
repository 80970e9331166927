"""The grammar: every part has a name for people."""

from pathlib import Path

import pytest
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


def test_tables_of_the_parser_are_kept_for_later_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = ("api == Fetch && !(latency > 5ms)", "any topic in {a, b}")
    made = [parser.__wrapped__().parse(text) for text in texts]
    (kept,) = (tmp_path / "kcap" / "filters").iterdir()
    time = kept.stat().st_mtime_ns
    assert [parser.__wrapped__().parse(text) for text in texts] == made
    assert kept.stat().st_mtime_ns == time
    kept.write_bytes(kept.read_bytes()[:100])
    assert [parser.__wrapped__().parse(text) for text in texts] == made, "a damaged file is made again"


def test_a_folder_that_others_can_write_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "kcap" / "filters"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    parser.__wrapped__()
    assert not list(folder.iterdir())
