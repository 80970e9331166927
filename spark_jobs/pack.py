"""Packs kcap as one zip for `spark-submit --py-files`: executors then need only numpy and pyarrow installed.

usage: python -m spark_jobs.pack kcap.zip
"""

import sys
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("kcap", "spark_jobs")
SUFFIXES: Final = frozenset({".py", ".jsonl", ".lark", ".tcss"})


def pack(path: str) -> int:
    """Writes the zip; returns the number of files in it."""
    count = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for package in PACKAGES:
            for file in sorted((ROOT / package).rglob("*")):
                if file.suffix in SUFFIXES and file.is_file():
                    out.write(file, file.relative_to(ROOT).as_posix())
                    count += 1
    return count


def main(arguments: list[str]) -> int:
    """Writes the zip; returns the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m spark_jobs.pack kcap.zip", file=sys.stderr)
        return 2
    print(f"{arguments[0]}: {pack(arguments[0])} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
