"""Fills the examples and tables of README.md and docs/protocol.md with real output of kcap and facts from its schema.

usage: python docs/pictures.py [--check]     (--check: exit 1 if a block is out of date)
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from kcap.schema import registry
from kcap.schema.facts import releases, show_versions
from kcap.schema.releases import first_release, removed_in, taken
from kcap.wire.codecs import CODECS
from kcap.wire.formats import MINIMA

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ("message sets, Kafka 0.8 to 0.9", "message sets with timestamps, Kafka 0.10", "record batches, Kafka 0.11 and later")
"""Name of each magic (KIP-32, KIP-98)."""


def picture(arguments: list[str], shown: slice) -> str:
    """A command and part of what it prints."""
    environment = {**os.environ, "COLUMNS": "128", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "kcap", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    head, *rows = done.stdout.splitlines()
    lines = [head, *rows[shown]]
    return "\n".join(["```", f"$ kcap {' '.join(arguments)}", *(line.rstrip() for line in lines), "```"])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def reads() -> str:
    """The supported parts of Kafka's protocol, in numbers."""
    keys = registry.api_keys()
    ranges = [versions for key in keys if (versions := registry.version_range(key))]
    versions = sum(last - first + 1 for first, last in ranges)
    known = releases()
    return table(
        ("of Kafka", "kcap reads"),
        [
            ("APIs", f"{len(keys)}, which is every API of any release, in {versions} versions; requests and responses"),
            ("releases", f"0.8 to {known[-1]}; for each from {known[0]} on, the versions it accepts, deprecates and removes"),
            ("record formats", ", ".join(f"magic {magic}" for magic in range(len(MINIMA)))),
            ("codecs", ", ".join(CODECS[1:])),
        ],
    )


def apis() -> str:
    """Every API."""
    newest = releases()[-1]
    rows = []
    for key in registry.api_keys():
        versions = registry.version_range(key)
        assert versions is not None
        found = taken(key, newest)
        since = min((first_release(key, v) or newest for v in range(versions[0], versions[1] + 1)), key=releases().index)
        gone = sorted({name for v in range(versions[0], versions[1] + 1) if (name := removed_in(key, v))}, key=str)
        offered = show_versions(found.versions) + (" (last one on trial)" if found.unstable else "") if found else "-"
        rows.append((str(key), registry.api_name(key) or "", show_versions(versions), since, offered, ", ".join(gone)))
    return table(("key", "API", "versions kcap reads", "since Kafka", f"Kafka {newest} takes", "versions removed in"), rows)


def formats() -> str:
    """Record formats."""
    return table(("magic", "format", "least bytes"), [(str(at), FORMATS[at], str(size)) for at, size in enumerate(MINIMA)])


def codecs() -> str:
    """Codecs by their number in a batch's attributes."""
    return table(("codec", "name"), [(str(number), name) for number, name in enumerate(CODECS)])


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"rows": partial(picture, ["rows", "pcaps/java-transactions.pcap"], slice(8, 16)), "reads": reads},
    "docs/protocol.md": {"apis": apis, "formats": formats, "codecs": codecs},
}
"""File -> name of a block -> the function that makes its content."""


def filled(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """A page with fresh blocks. Raises KeyError if the page lacks one of them."""
    for name, make in blocks.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        if not block.search(text):
            raise KeyError(name)
        fresh = make()
        text = block.sub(lambda m, fresh=fresh: m[1] + fresh + m[2], text)  # type: ignore[misc]
    return text


def main() -> None:
    """Writes the blocks, or compares them."""
    stale = []
    for name, blocks in BLOCKS.items():
        page = ROOT / name
        old = page.read_text(encoding="utf-8")
        new = filled(old, blocks)
        if old != new:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                page.write_text(new, encoding="utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(f"not what kcap says: {', '.join(stale)}" if stale else 0)


if __name__ == "__main__":
    main()
