"""Fills the README's pictures with real output of kcap on captures in pcaps/.

usage: python docs/pictures.py [--check]     (--check: exit 1 where a picture is not what kcap prints)
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {"rows": (["rows", "pcaps/java-transactions.pcap"], slice(8, 16))}
"""Name of the block -> command and which of its rows are shown, under the heading."""


def picture(arguments: list[str], shown: slice) -> str:
    """The command and part of what it prints."""
    environment = {**os.environ, "COLUMNS": "128", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "kcap", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    head, *rows = done.stdout.splitlines()
    lines = [head, *rows[shown]]
    return "\n".join(["```", f"$ kcap {' '.join(arguments)}", *(line.rstrip() for line in lines), "```"])


def filled(text: str) -> str:
    """The README with fresh pictures."""
    for name, (arguments, shown) in PICTURES.items():
        block = re.compile(rf"(<!-- picture:{name} -->\n).*?(\n<!-- /picture:{name} -->)", re.DOTALL)
        fresh = picture(arguments, shown)
        text = block.sub(lambda m, fresh=fresh: m[1] + fresh + m[2], text)  # type: ignore[misc]
    return text


def main() -> None:
    """Writes or checks."""
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = filled(old)
    if "--check" in sys.argv[1:]:
        sys.exit(old != new)
    readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
