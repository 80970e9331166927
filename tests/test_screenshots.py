"""The pictures of the terminal UI: there, small, free of addresses; the guide names every view."""

import asyncio
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kcap.tui.views import VIEWS
from tests.tui.conftest import base, collects_rarely, folders, kept_memory, shared_plans, users_plans
from tests.tui.driving import book_of

__all__ = ["base", "collects_rarely", "folders", "kept_memory", "shared_plans", "users_plans"]

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "docs" / "tui.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "docs" / "screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["screenshots"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_scene_has_its_picture(script: ModuleType) -> None:
    assert {path.stem for path in script.PICTURES.glob("*.svg")} == set(script.SCENES)
    for name, scene in script.SCENES.items():
        assert (ROOT / "pcaps" / scene.capture).exists()
        svg = (script.PICTURES / f"{name}.svg").read_text(encoding="utf-8")
        assert len(svg.encode()) <= script.LARGEST
        addresses = set(re.findall(r"https?://[^\s\"'<>)]+", svg))
        assert addresses <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}, "a picture loads nothing"
        words = [word for word in scene.shows.split() if len(word) > 3]
        assert all(word in svg for word in words)


def test_a_font_is_not_fetched(script: ModuleType) -> None:
    assert script.plain("<style>@font-face { src: url(x) } .a { b }</style>") == "<style> .a { b }</style>"


def test_the_guide_names_every_view() -> None:
    for key, title, _ in VIEWS.values():
        assert f"| `{key}` | {title} |" in GUIDE


def test_every_picture_of_the_guide_is_there() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", GUIDE):
        assert (ROOT / "docs" / path).exists()


@pytest.mark.slow
def test_pictures_are_what_kcap_shows(script: ModuleType) -> None:
    """Snapshots of the real program, colors and all; docs/screenshots.py renews them."""
    for name, scene in script.SCENES.items():
        svg = (script.PICTURES / f"{name}.svg").read_text(encoding="utf-8")
        assert asyncio.run(script.drawn(name, book_of(scene.capture))) == svg, name
