"""Escapes text from captures and file names for the terminal, HTML and SVG, Markdown, and spreadsheets.

In: any text. Out: text that nothing interprets as a command or markup. Law: all output for people passes through one of these
functions; control and format characters (which change the direction of text or hide it) are always visible, as Python escapes.
"""

import json
import re
from typing import Any, Final

MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>|~&]")
BREAKS: Final = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")
AUTOLINKS: Final = re.compile(r"(?i)(?<=http|ttps|ilto)(?=:)|(?<=www)(?=\.)")
"""Places in text that GFM makes a link automatically (section 6.9)."""
FORMULA: Final = re.compile(r"[=+\-@\t\r\n]|[\uFF1D\uFF0B\uFF0D\uFF20]")
"""First characters at which spreadsheets evaluate a cell (OWASP, CSV injection), including the full-width forms."""
NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")

OBEYED: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Of the characters that JSON allows unescaped (RFC 8259), those that a terminal interprets, or that hide or turn text."""


def json_text(value: Any, **layout: Any) -> str:
    """A value as JSON with such characters escaped, which does not change its texts; `layout` as for `json.dumps`."""
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, **layout))


def visible(text: str) -> str:
    """The text with unprintable characters as Python escapes: `\\x1b`, `\\u202e`. Bytes of a file name that are not UTF-8 are
    shown as bytes: `\\xff`."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return f"\\x{ord(character) & 0xFF:02x}" if "\udc80" <= character <= "\udcff" else repr(character)[1:-1]


def visible_lines(text: str) -> str:
    """The same line by line; line breaks remain."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def html_text(text: str) -> str:
    """Text or an attribute's value in HTML and SVG."""
    from html import escape

    return escape(visible_lines(text))


def markdown_text(text: str) -> str:
    """Text for a paragraph or a table cell of GitHub Flavored Markdown: no markup, no link, on one line."""
    plain = visible(BREAKS.sub(" ", text))
    return AUTOLINKS.sub(r"\\", MARKDOWN.sub(r"\\\g<0>", plain))


def csv_safe(text: str) -> str:
    """A cell that a spreadsheet treats as text: an apostrophe precedes what it would evaluate; numbers are unchanged."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
