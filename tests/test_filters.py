"""The page about filters: what it shows can be typed."""

import re
from pathlib import Path

import pytest

from kcap.filter.parse import parse
from kcap.filter.row_predicate import condition

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "filters.md").read_text(encoding="utf-8")
SHOWN = [
    text
    for text in re.findall(r"`([^`\n]+)`", PAGE)
    if re.search(r" (==|!=|>=|>|in|contains|matches) ", text) and "..." not in text
]


@pytest.mark.parametrize("text", SHOWN)
def test_what_the_page_shows(text: str) -> None:
    assert parse(text) is not None


def test_it_shows_enough() -> None:
    assert len(SHOWN) > 15


def test_the_table_of_absent_values() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (passes|does not pass) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for text, said in rows:
        assert condition(parse(text))({"client_id": None, "topics": None}) is (said == "passes")
