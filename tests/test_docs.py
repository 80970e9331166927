"""The documentation site: its navigation, its pages, and what they may load; a strict build checks every link besides."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import kcap
import spark_jobs

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages_in(nav: list[Any]) -> list[str]:
    """The pages of a navigation, from all its levels."""
    pages: list[str] = []
    for entry in nav:
        for value in entry.values():
            pages += [value] if isinstance(value, str) else pages_in(value)
    return pages


@pytest.fixture(scope="module")
def nav() -> list[str]:
    return pages_in(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


def test_the_navigation_lists_every_page_once(nav: list[str], hooks: ModuleType) -> None:
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    brought = {page for page in hooks.PAGES if page.endswith(".md")}
    assert len(nav) == len(set(nav))
    assert set(nav) == written | brought


def test_every_file_that_is_brought_to_the_site_exists(hooks: ModuleType) -> None:
    assert [place for place in hooks.PAGES.values() if not (ROOT / place).is_file()] == []


def test_every_markdown_file_at_the_root_is_a_page(hooks: ModuleType) -> None:
    assert {path.name for path in ROOT.glob("*.md")} - set(hooks.PAGES.values()) == set()


def test_the_api_reference_has_every_public_name() -> None:
    """Each name of `kcap.__all__` and of `spark_jobs.__all__` has its entry, and nothing else has one."""
    entries = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    public = {f"kcap.{name}" for name in kcap.__all__ if name != "__version__"} | {
        f"spark_jobs.{name}" for name in spark_jobs.__all__
    }
    assert set(entries) == public
    assert len(entries) == len(public)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/developing.md", "docs/releasing.md"])
def test_files_that_contributors_are_sent_to_exist(page: str) -> None:
    """Paths in code font; `x` and `y` stand for any name."""
    named = re.findall(
        r"`((?:kcap|spark_jobs|tests|benchmarks|pcaps|docs)/[\w./-]*)`", (ROOT / page).read_text(encoding="utf-8")
    )
    assert named
    assert [path for path in named if not (ROOT / path).exists() and not re.search(r"/x/(test_)?y\.py$", path)] == []


@pytest.mark.parametrize(
    ("name", "text", "loads"),
    [
        ("a.html", '<a href="https://example.org">out</a><img src="pictures/list.svg"><link href="css/base.css">', []),
        ("a.html", '<link rel="canonical" href="https://example.org/a.html">', []),
        ("a.html", '<script src="https://example.org/a.js"></script>', ["<script src=https://example.org/a.js>"]),
        ("a.html", '<link rel="stylesheet" href="//example.org/a.css">', ["<link href=//example.org/a.css>"]),
        ("a.html", "<style>@import 'https://example.org/a.css'</style>", ["@import 'https://"]),
        ("a.css", "@font-face { src: url(https://example.org/a.woff2) }", ["url(https://"]),
        ("a.css", "/* https://example.org */ a { background: url(img/a.png) }", []),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://example.org/a.png"/></svg>', ["<image href=http://example.org/a.png>"]),
    ],
)  # fmt: skip
def test_what_a_page_loads_from_other_hosts_is_found(
    hooks: ModuleType, tmp_path: Path, name: str, text: str, loads: list[str]
) -> None:
    page = tmp_path / name
    page.write_text(text, encoding="utf-8")
    assert list(hooks.remote_resources(page)) == loads


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    """A strict build fails on a broken link, a page outside the navigation, and a name of the API that does not exist."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="filters.html"' in home
    assert 'href="captures.html"' in home
    assert 'href="docs/' not in home


def test_the_map_names_every_folder_and_only_what_is_there() -> None:
    """docs/architecture.md is what a stranger reads first."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    there = {path.name + "/" * path.is_dir() for path in (ROOT / "kcap").iterdir() if not path.name.startswith(("__", "py."))}
    named = set(re.findall(r"`([a-z_]+(?:/|\.py))`", text))
    assert there - named == set(), "the table of folders lacks them"
    paths = set(re.findall(r"`((?:kcap|spark_jobs|tests|docs)/[\w/]+(?:\.py)?)`", text))
    assert [path for path in paths if not (ROOT / path).exists()] == []
    for class_name in (
        "FileSet",
        "SegmentParser",
        "ConnectionTable",
        "TlsSession",
        "Pairing",
        "MetadataTracker",
        "TableSet",
        "ShardReader",
    ):
        assert class_name in text
        assert any(f"class {class_name}" in p.read_text(encoding="utf-8") for p in (ROOT / "kcap").rglob("*.py"))
