"""The locks: every package has its licence on the page, and none is a version that a known advisory names."""

import re
import sys
from pathlib import Path
from subprocess import run

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIXED_IN = {
    "CVE-2023-45139": ("fonttools", "4.43.0"),
    "CVE-2025-66034": ("fonttools", "4.61.0"),
    "CVE-2023-47248": ("pyarrow", "14.0.1"),
    "CVE-2023-50447": ("pillow", "10.2.0"),
    "CVE-2024-28219": ("pillow", "10.3.0"),
    "CVE-2025-48379": ("pillow", "11.3.0"),
    "CVE-2024-12797": ("cryptography", "44.0.1"),
    "CVE-2024-26130": ("cryptography", "42.0.4"),
    "CVE-2024-23334": ("aiohttp", "3.9.2"),
    "CVE-2024-30251": ("aiohttp", "3.9.4"),
    "CVE-2025-53643": ("aiohttp", "3.12.14"),
    "CVE-2024-3651": ("idna", "3.7"),
    "CVE-2024-56201": ("jinja2", "3.1.5"),
    "CVE-2025-27516": ("jinja2", "3.1.6"),
    "CVE-2025-4565": ("protobuf", "6.31.1"),
    "CVE-2022-40896": ("pygments", "2.15.0"),
    "CVE-2020-14343": ("pyyaml", "5.4"),
}
"""Advisory -> package and the first version without the fault: those of packages in the locks that were known when this was
written. A scanner with a database that is up to date knows more (SECURITY.md).
"""


def numbers(version: str) -> tuple[int, ...]:
    """A version in order."""
    return tuple(map(int, re.findall(r"\d+", version)))


def pinned(lock: str) -> list[tuple[str, str]]:
    """Packages and versions of a lock."""
    return re.findall(r"(?m)^([A-Za-z0-9_.-]+)==([^ ;\\]+)", (ROOT / lock).read_text())


def test_the_page_of_licences_is_current() -> None:
    assert run([sys.executable, "docs/licences_page.py", "--check"], cwd=ROOT, check=False).returncode == 0


def test_what_is_installed_to_run_is_no_gpl() -> None:
    """Apache-2.0 software may not be given on together with it; of a library under the LGPL it may."""
    to_run = (ROOT / "docs/licences.md").read_text().split("## ")[1]
    licences = [line.split("|")[3].strip() for line in to_run.splitlines() if line.startswith("| ")][1:]
    assert len(licences) >= 10
    assert all(licences)
    assert not [one for one in licences if one.startswith("GPL")]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-run.lock"])
def test_no_pinned_version_has_a_known_advisory(lock: str) -> None:
    floors: dict[str, tuple[int, ...]] = {}
    for package, version in FIXED_IN.values():
        floors[package] = max(floors.get(package, ()), numbers(version))
    found = pinned(lock)
    assert [(name, version) for name, version in found if numbers(version) < floors.get(name, ())] == []
    assert all(name in {package for package, _ in pinned("requirements.lock")} for name, _ in FIXED_IN.values())
