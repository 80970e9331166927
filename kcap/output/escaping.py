"""What a capture or a file name holds, as harmless text: for the terminal, HTML and SVG, Markdown, and spreadsheets.

In: any text. Out: text in which nothing is obeyed by what shows it. Law: every human output passes through one of these;
control and format characters (which turn the direction of text or hide it) are always visible, as Python escapes.
"""

import json
import re
from typing import Any, Final

MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>|~&]")
BREAKS: Final = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")
AUTOLINKS: Final = re.compile(r"(?i)(?<=http|ttps|ilto)(?=:)|(?<=www)(?=\.)")
"""Places in what GFM makes a link of by itself (section 6.9)."""
FORMULA: Final = re.compile(r"[=+\-@\t\r\n]|[\uFF1D\uFF0B\uFF0D\uFF20]")
"""First characters at which spreadsheets evaluate a cell (OWASP, CSV injection), the full-width forms too."""
NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")

OBEYED: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What a terminal obeys, or what hides or turns text, of the characters that JSON may have as they are (RFC 8259)."""


def json_text(value: Any, **layout: Any) -> str:
    """A value as JSON in which such characters are escaped, which changes no text; `layout` as for `json.dumps`."""
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, **layout))


def visible(text: str) -> str:
    """The text with what cannot be printed as Python escapes: `\\x1b`, `\\u202e`; bytes of a file name that is no UTF-8 as
    bytes: `\\xff`.
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return f"\\x{ord(character) & 0xFF:02x}" if "\udc80" <= character <= "\udcff" else repr(character)[1:-1]


def visible_lines(text: str) -> str:
    """The same line by line: breaks between lines stay."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def html_text(text: str) -> str:
    """Text or an attribute's value in HTML and SVG."""
    from html import escape

    return escape(visible_lines(text))


def markdown_text(text: str) -> str:
    """Text in a paragraph or a table's cell of GitHub Flavored Markdown: no markup, no link, on one line."""
    plain = visible(BREAKS.sub(" ", text))
    return AUTOLINKS.sub(r"\\", MARKDOWN.sub(r"\\\g<0>", plain))


def csv_safe(text: str) -> str:
    """A cell that a spreadsheet takes for text: an apostrophe stands before what it would evaluate; numbers stay."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
