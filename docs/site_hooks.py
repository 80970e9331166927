"""Hooks of the documentation site (mkdocs.yml): pages from outside docs/, links between pages, a check that nothing is remote.

In: the repository's Markdown files, whose links are relative to their place, so that they work in the repository too. Out: the
same files as pages of the site with links between pages. Law: a built page loads no script, style, font or picture from another
host; one that would fails the build.
"""

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = {
    "index.md": "README.md",
    "captures.md": "pcaps/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "conduct.md": "CODE_OF_CONDUCT.md",
    "LICENSE": "LICENSE",
    "NOTICE": "NOTICE",
}
"""Path on the site -> path in the repository, for files outside of docs/."""
ON_SITE: Final = {place: page for page, place in PAGES.items()}
LINK: Final = re.compile(r"\]\((?![a-z]+:|[#/])(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
"""The target of a Markdown link or picture that is a relative path."""
REMOTE: Final = re.compile(r"(https?:)?//", re.IGNORECASE)
REMOTE_IN_CSS: Final = re.compile(r"""(url\(\s*|@import\s+)["']?(https?:)?//""", re.IGNORECASE)
LOADING: Final = {"src", "srcset", "data", "poster", "background"}
"""Attributes whose address a browser loads by itself; so is `href`, except for links that a reader follows."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages from outside docs/ and the colors of code."""
    for page, place in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / place)))
    files.append(File.generated(config, "highlight.css", content=HtmlFormatter().get_style_defs(".highlight")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs calls by name
    """Rewrites links of the repository to links of the site."""
    here = page.file.src_uri
    folder = posixpath.dirname(PAGES.get(here, f"docs/{here}"))

    def linked(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, found["path"]))
        target = ON_SITE.get(place, place.removeprefix("docs/"))
        return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{found['anchor'] or ''})"

    return LINK.sub(linked, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Fails the build if a page loads something from another host."""
    site = Path(config.site_dir)
    found = [f"{path.relative_to(site)}: {what}" for path in sorted(site.rglob("*")) for what in remote_resources(path)]
    if found:
        raise PluginError("pages load from other hosts:\n" + "\n".join(found))


def remote_resources(path: Path) -> Iterator[str]:
    """What a browser that shows this file would load from another host; scripts are not examined."""
    if path.suffix not in (".html", ".css", ".svg"):
        return
    text = path.read_text(encoding="utf-8")
    yield from (found[0] for found in REMOTE_IN_CSS.finditer(text))
    if path.suffix != ".css":
        reader = Resources()
        reader.feed(text)
        yield from reader.remote


class Resources(HTMLParser):
    """Collects the remote addresses that the elements of a page load."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Examines the attributes of one element."""
        followed = tag in ("a", "area") or (tag == "link" and ("rel", "canonical") in attrs)
        for name, value in attrs:
            loads = name in LOADING or (name in ("href", "xlink:href") and not followed)
            if loads and REMOTE.match((value or "").strip()):
                self.remote.append(f"<{tag} {name}={value}>")
