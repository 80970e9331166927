"""Text that cannot be obeyed."""

import json

import pytest

from kcap.output.escaping import csv_safe, html_text, json_text, markdown_text, visible, visible_lines


def test_what_cannot_be_printed_is_seen() -> None:
    assert visible("a\x1b[0m\u202eb\x9b\ud800") == "a\\x1b[0m\\u202eb\\x9b\\ud800"
    assert visible("grün 数据 ok") == "grün 数据 ok"
    assert visible_lines("a\nb\r") == "a\nb\\r"


def test_html_has_no_markup_in_text() -> None:
    assert html_text('<a href="x">\'&\x00') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;\\x00"


def test_markdown_has_neither_markup_nor_links() -> None:
    assert markdown_text("a|b\n<c> [d](e) `f` _g_ *h* ~i~ &lt;") == r"a\|b \<c\> \[d\](e) \`f\` \_g\_ \*h\* \~i\~ \&lt;"
    assert markdown_text("https://a.b http://c www.d.e") == r"https\://a.b http\://c www\.d.e"


def test_json_says_the_same_without_what_a_terminal_obeys() -> None:
    text = "a\x1b[0m\x9b31m\u202e\u2028\x7fgrün 数据 \\u009b"
    made = json_text({text: [text]})
    assert json.loads(made) == {text: [text]}
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\x7f"} & {*made}
    assert "grün 数据" in made


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+cmd", "@sum(1)", "\t=1", "\r=1", "＝1"])
def test_formulas_are_text_in_a_spreadsheet(text: str) -> None:
    assert csv_safe(text) == "'" + text


@pytest.mark.parametrize("text", ["-1", "+1.5e3", "a=1", "", "-", "1-2"][:4])
def test_numbers_and_words_stay(text: str) -> None:
    assert csv_safe(text) == text
