"""Every screen as a picture at two sizes, colors and all, against those in screens/ (SVG, gzipped).

`KCAP_GOLDEN=write ./test tests/golden/test_screens.py` makes them anew; `zcat` or a browser shows one. A picture that is
another is described in words, and left where the message says.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from kcap.tui.views import VIEWS
from tests.golden.pictures import BACK, RULE, TEXT, described, difference, plain, read, write
from tests.tui.driving import LARGE, PATIENCE_SECONDS, SMALL, opened, screen, settle

GOLDEN = Path(__file__).resolve().parent / "screens"
SIZES = (SMALL, LARGE)
JAVA = "java-transactions.pcap"


@dataclass(frozen=True, slots=True)
class Scene:
    """A capture, and the keys that lead to something worth a look."""

    capture: str
    keys: tuple[str, ...] = ()
    environment: str = ""
    """A variable that is set."""
    theme: str = ""


SCENES = {
    "list": Scene(JAVA, ("j",) * 9),
    "list-bytes": Scene(JAVA, (*("j",) * 9, "enter", "j", "j", "right", "tab", "right", "right")),
    "list-filter": Scene(JAVA, ("slash", *"api == Fet")),
    "list-errors": Scene("too-large.pcap", ("f", "e", "m")),
    "list-beside": Scene(JAVA, ("vertical_line", "enter")),
    "list-plain": Scene("too-large.pcap", ("j", "j", "enter", "j"), environment="NO_COLOR"),
    "list-16": Scene("too-large.pcap", ("j", "j", "enter", "j"), theme="ansi-dark"),
    "list-light": Scene("too-large.pcap", ("j", "j", "enter", "j"), theme="textual-light"),
    "list-16-light": Scene("too-large.pcap", ("j", "j", "enter", "j"), theme="ansi-light"),
    "health-light": Scene("raw-frames.pcap", ("H",), theme="textual-light"),
    "list-noted": Scene(JAVA, ("m", "i", "r", "semicolon", *"slow login", "enter", "M")),
    "palette": Scene(JAVA, ("colon", *"err")),
    "help": Scene(JAVA, ("f1",)),
    "menu": Scene(JAVA, ("v",)),
    "columns": Scene(JAVA, ("c",)),
    "follow": Scene("node-platformatic.pcap", ("w",)),
    "conversations": Scene(JAVA, ("C",)),
    "ladder": Scene(JAVA, ("L", "B", "home", "down", "down", "down")),
    "statistics": Scene(JAVA, ("S", "tab", "down")),
    "versions": Scene("go-franz.pcap", ("V", "4", "end")),
    "throttling": Scene("quota-3.9.pcap", ("T",)),
    "throttling-plain": Scene("quota-3.9.pcap", ("T",), environment="NO_COLOR"),
    "conversations-light": Scene(JAVA, ("C",), theme="textual-light"),
    "statistics-light": Scene(JAVA, ("S",), theme="textual-light"),
    "errors": Scene("too-large.pcap", ("E",)),
    "topics": Scene(JAVA, ("O",)),
    "records": Scene(JAVA, (*("j",) * 9, "R", "down")),
    "health": Scene("raw-frames.pcap", ("H",)),
    "findings": Scene("too-large.pcap", ("P",)),
    "groups": Scene("aiokafka.pcap", ("U",)),
    "transactions": Scene(JAVA, ("X",)),
    "differences": Scene("quota-3.9.pcap", ("D", *"pcaps/quota-0.10.pcap", "enter")),
    "compare": Scene(JAVA, ("slash", *"api == TxnOffsetCommit", "enter", "G", "equals_sign")),
}
"""Name -> what is drawn."""


@pytest.fixture(scope="module", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory, users_plans: object) -> Iterator[None]:
    """A cache of the tests' own; books are shared by tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


async def drawn(name: str) -> list[str]:
    """The pictures of a scene, one for each size."""
    scene, made = SCENES[name], []
    async with opened(scene.capture, size=SMALL) as pilot:
        app = pilot.app
        if scene.theme:
            app.theme = scene.theme
        app.browser.bar.line.cursor_blink = False
        # partitions are read in a pass of their own, which views do not wait for
        while name in ("topics", "errors") and app.book.table("partitions") is None:
            await pilot.pause(0.05)
        for key in scene.keys:
            typed = len(key) == 1 and isinstance(app.focused, Input)
            await pilot.press(key)
            for _ in range(1 if typed else 3):  # a key may open a page, and that another, before the next key is for it
                await app.workers.wait_for_complete()
                await settle(pilot)
        for line in app.screen.query(Input):
            line.cursor_blink = False
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await still(pilot)
            made.append(plain(app.export_screenshot(title=name)))
    return made


async def still(pilot: Any) -> None:
    """Waits until nothing changes; a busy machine draws the timeline seconds after a resize."""
    before, same, until = [], 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        await settle(pilot)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.05)
        shown = [list(strip) for strip in pilot.app.screen._compositor.render_strips()]
        same = same + 1 if shown == before else 0
        before = shown
        if same == 3 and "computing" not in screen(pilot.app) and not pilot.app.browser.strip.due:
            return
    due = "due" if pilot.app.browser.strip.due else "drawn"
    raise AssertionError(f"the screen never comes to rest: {same} alike, timeline {due}: {screen(pilot.app)}")


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_looks_as_it_did(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if SCENES[name].environment:
        monkeypatch.setenv(SCENES[name].environment, "1")
    reported = []
    for (width, height), svg in zip(SIZES, asyncio.run(drawn(name))):
        path = GOLDEN / f"{name}-{width}x{height}.svgz"
        old = read(path)
        if svg != old and os.environ.get("KCAP_GOLDEN") == "write":
            write(path, svg)
        elif svg != old:
            beside = tmp_path / f"{name}-{width}x{height}.svg"
            beside.write_text(svg, encoding="utf-8")
            reported.append(f"{width}x{height}, the new picture is {beside}\n{difference(old, svg)}")
    assert not reported, f"{name} looks different\n" + "\n".join(reported)


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.environment == "NO_COLOR"])
def test_without_color_there_is_none(name: str) -> None:
    for width, height in SIZES:
        for color in set(re.findall(r"(?:fill|background)[:=] ?\"?#(\w{6})", read(GOLDEN / f"{name}-{width}x{height}.svgz"))):
            assert len({color[0:2], color[2:4], color[4:6]}) == 1 or color in TRIMMINGS, color


TRIMMINGS = {"ff5f57", "febc2e", "28c840", "c5c8c6"}
"""Colors of the frame around a picture."""


def test_any_difference_is_told() -> None:
    svg = read(GOLDEN / "list-80x24.svgz")
    assert any("ApiVersions" in line for line in described(svg))
    assert "Lateness" in difference(svg, svg.replace("Latency", "Lateness", 1))
    name = next(name for name, _, _, text in TEXT.findall(svg) if "ApiVersions" in text)
    rule = next(rule for rule in RULE.finditer(svg) if rule[1] == name)
    assert "fill: #123456" in difference(svg, svg.replace(rule[0], f".k-{name} {{ fill: #123456 }}"))
    back = BACK.findall(svg)[5][0]
    assert "background #654321" in difference(svg, svg.replace(f'<rect fill="{back}"', '<rect fill="#654321"'))
    assert difference(svg, svg + " ") == "not what it shows, but how it is drawn"


def test_every_view_has_a_scene() -> None:
    assert SCENES.keys() >= VIEWS.keys()
    kept = {path.name.removesuffix(".svgz") for path in GOLDEN.iterdir()}
    assert kept == {f"{name}-{width}x{height}" for name in SCENES for width, height in SIZES}
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 1_200_000, "a checkout stays small"
