"""SVGs of screens: kept small and alike from run to run, and told apart in words.

In: what `App.export_screenshot` gives. Out: the same without what a run or the network brings in; its lines as text with the
style of each part; what differs between two. Law: equal pictures are equal texts, and any other fill, weight or place is a
difference that is described. Parts that differ in nothing are one, however many a screen draws.
"""

import difflib
import gzip
import html
import re
from pathlib import Path

FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
NAMES = re.compile(r"terminal-\d+-")
RULE = re.compile(r"\.k-(r\d+) \{ ([^}]*?) \}")
TEXT = re.compile(r'<text class="k-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)
BACK = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"')
SIGN = 12.2
"""Width of a sign in a picture."""
LINE = 24.4
TOLD = 40
"""Lines of a difference that are described."""


def plain(svg: str) -> str:
    """Without the addresses of fonts and the number that names a picture's parts."""
    return NAMES.sub("k-", FONTS.sub("", svg))


def described(svg: str) -> list[str]:
    """What a picture shows: first each line, then the place and style of each word, and each background."""
    styles = dict(RULE.findall(svg))
    words: dict[int, dict[int, str]] = {}
    runs: list[tuple[int, str, int, str]] = []
    for name, x, y, text in TEXT.findall(svg):
        line, column = round((float(y) - 18.5) / LINE), round(float(x) / SIGN)
        shown, style = html.unescape(text).replace("\xa0", " "), styles.get(name, "")
        words.setdefault(line, {})[column] = shown
        if runs and runs[-1][:2] == (line, style) and runs[-1][2] + len(runs[-1][3]) == column:
            *_, column, before = runs.pop()
            shown = before + shown
        runs.append((line, style, column, shown))
    parts = [
        f"line {line:2} column {column + word.start():3} {word[0]!r} {style}"
        for line, style, column, shown in runs for word in re.finditer(r"\S+", shown)
    ]  # fmt: skip
    backs: list[tuple[int, str, int, int]] = []
    for fill, x, y, width in BACK.findall(svg):
        line, column = round((float(y) - 1.5) / LINE), round(float(x) / SIGN)
        if backs and backs[-1][:2] == (line, fill) and backs[-1][3] == column:
            column = backs.pop()[2]
        backs.append((line, fill, column, round((float(x) + float(width)) / SIGN)))
    parts += [f"line {line:2} column {column:3} background {fill}, {end - column} wide" for line, fill, column, end in backs]
    lines = []
    for line in sorted(words):
        made = ""
        for column, shown in sorted(words[line].items()):
            made = made.ljust(column) + shown
        lines.append(f"line {line:2} |{made.rstrip()}")
    return lines + sorted(parts)


def difference(old: str, new: str) -> str:
    """What another picture has and has not, in words."""
    found = [
        line for line in difflib.unified_diff(described(old), described(new), "as it was", "as it is", lineterm="", n=0)
        if not line.startswith("@@")
    ]  # fmt: skip
    more = len(found) - TOLD
    return "\n".join(found[:TOLD] + ([f"... and {more} more"] if more > 0 else [])) or "not what it shows, but how it is drawn"


def read(path: Path) -> str:
    """A picture that is kept; an empty one where there is none."""
    return gzip.decompress(path.read_bytes()).decode() if path.exists() else ""


def write(path: Path, svg: str) -> None:
    """Keeps a picture, the same bytes for the same picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(svg.encode(), compresslevel=9, mtime=0))
