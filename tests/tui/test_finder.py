"""Finding one of many things."""

from kcap.tui.finder import FinderEntry, ranked

ENTRIES = [
    FinderEntry("1", "View: Errors"),
    FinderEntry("2", "Filter: Errors"),
    FinderEntry("3", "Column: error_code"),
    FinderEntry("4", "Theme: nord", "color"),
]


def names(text: str) -> list[str]:
    return [entry.name for entry in ranked(ENTRIES, text)]


def test_letters_are_matched_in_their_order_in_any_place() -> None:
    assert names("") == ["1", "2", "3", "4"]
    assert set(names("err")) == {"1", "2", "3"}
    assert names("vwers")[0] == "1", "fuzzy"
    assert names("nord")[0] == "4"
    assert "4" in names("color"), "what the note says counts too"
    assert names("zzz") == []


def test_a_beginning_comes_before_letters_in_between() -> None:
    assert names("filter")[0] == "2"
    assert names("error_c") == ["3"]


def test_other_words_find_an_entry() -> None:
    entries = [FinderEntry("rows", "Save: rows", also="export"), FinderEntry("sort", "Sort by time")]
    assert [entry.name for entry in ranked(entries, "export")] == ["rows"]
    assert [entry.name for entry in ranked(entries, "rows")] == ["rows"]
