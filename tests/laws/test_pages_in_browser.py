"""Pages of reports in a real browser: nothing is wider than the window, no table than its place, and dark and light are
drawn as the reader has them.

The browser starts once: each page is loaded in frames of both widths and both schemes, which media queries inside see as their
window (CSS Color Adjustment 1, section 2.3: a frame's preferred scheme is the used scheme of its element).
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kcap.cli.main import main

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (1280, 600)
SCHEMES = ("dark", "light")
MEASURE = """
addEventListener('load', () => {
  document.title = JSON.stringify([...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument, body = frame.contentWindow.getComputedStyle(page.body);
    const light = color => Math.max(...color.match(/[0-9]+/g).slice(0, 3).map(Number));
    const cut = [...page.querySelectorAll('.t,.s')].filter(each => each.scrollWidth > each.clientWidth + 1);
    return [page.documentElement.scrollWidth, page.querySelectorAll('img,link').length,
            cut.map(each => [each.scrollWidth, each.clientWidth, body.fontFamily, each.innerText.slice(0, 100)]),
            light(body.backgroundColor), light(body.color)];
  }));
});
"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def measured(folder: Path, *pages: str) -> list[list[Any]]:
    """Of each page in each width and scheme: its width, its images and links, its tables that are cut (the width they need
    and have, the font, how they begin), how light its background and its text are."""
    frames = "".join(
        f'<iframe style="width:{width}px;height:800px;border:0;color-scheme:{scheme}" srcdoc="{html.escape(page)}"></iframe>'
        for page in pages for width in WIDTHS for scheme in SCHEMES
    )  # fmt: skip
    outer = folder / "outer.html"
    outer.write_text(f"<!doctype html><body>{frames}<script>{MEASURE}</script></body>", encoding="utf-8")
    call = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom", outer.as_uri()]
    done = subprocess.run(call, capture_output=True, check=True, timeout=60)
    found = re.search(rb"<title>(\[.*\])</title>", done.stdout)
    assert found is not None
    made: list[list[Any]] = json.loads(found[1])
    return made


def test_pages_fit_and_follow_the_reader_s_scheme(tmp_path: Path, pcaps: Path) -> None:
    pages = []
    for name, *files in (
        ("latency", "old-java-new-broker.pcap"), ("diff", "quota-3.9.pcap", "long-polls.pcap"),
        ("versions", "old-java-new-broker.pcap"), ("connections", "go-franz.pcap"), ("rows", "quota-3.9.pcap"),
        ("stats", "go-franz.pcap"), ("topics", "go-franz.pcap"), ("clients", "go-franz.pcap"), ("errors", "go-franz.pcap"),
        ("throttle", "quota-3.9.pcap"), ("slow", "quota-3.9.pcap"), ("check", "broker-paused.pcap"),
        ("health", "cut-message.pcap"), ("groups", "long-polls.pcap"), ("transactions", "java-transactions.pcap"),
        ("rows", "raw-frames.pcap"), ("topics", "java-transactions.pcap"), ("rows", "java-transactions.pcap"),
    ):  # fmt: skip
        page = tmp_path / f"{name}.html"
        assert main([name, *(str(pcaps / file) for file in files), "-o", str(page)]) == 0
        pages.append(page.read_text(encoding="utf-8"))
        first = re.search(r"</h1>\s*<(\w+)", pages[-1])
        assert first is not None
        assert first[1] == "p", f"{name} begins with its verdict"
    wide = (
        '<!doctype html><meta name="viewport" content="width=device-width"><img><div style="width:2000px">x</div>'
        '<div class=t style="overflow-x:auto;width:50px"><div style="width:60px">x</div></div>'
    )
    *found, worst, _, _, _ = measured(tmp_path, *pages, wide)
    assert (worst[:2], len(worst[2])) == ([2008, 1], 1), "a page that does not fit is seen"
    assert len(found) == len(pages) * len(WIDTHS) * len(SCHEMES)
    for number, (width, links, cut, background, text) in enumerate(found):
        window = WIDTHS[number // 2 % 2]
        assert (width <= window, links) == (True, 0), number
        assert window < WIDTHS[0] or not cut, number
        dark, light = (background, text) if number % 2 == 0 else (text, background)
        assert (dark < 60, light > 200) == (True, True), number
