"""Pages of reports in a real browser: nothing is wider than the window, and dark and light are drawn as the reader has them."""

import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.cli.running import PCAPS, kcap

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTH_AND_LINKS = "document.documentElement.scrollWidth + ' ' + document.querySelectorAll('img,link').length"
MEASURE = f"<script>document.title = {WIDTH_AND_LINKS}</script>"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def browsed(page: Path, *options: str) -> bytes:
    """What the browser prints of a page."""
    call = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options, page.as_uri()]
    return subprocess.run(call, capture_output=True, check=True, timeout=60).stdout


def corner(png: bytes) -> int:
    """The first color value of the first pixel of a PNG (RFC 2083: a filter's byte stands before each line)."""
    parts, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        parts += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return zlib.decompress(parts)[1]


def test_pages_fit_and_follow_the_reader_s_scheme(tmp_path: Path) -> None:
    for call in (["latency", PCAPS / "quota-3.9.pcap"], ["diff", PCAPS / "quota-3.9.pcap", PCAPS / "long-polls.pcap"]):
        page = tmp_path / f"{call[0]}.html"
        assert kcap(*call, "-o", page).returncode == 0
        measured = page.with_name(f"measured-{page.name}")
        measured.write_text(page.read_text() + MEASURE)
        for width in (1280, 600):
            found = re.search(rb"<title>(\d+) (\d+)</title>", browsed(measured, f"--window-size={width},800", "--dump-dom"))
            assert found is not None
            assert (int(found[1]) <= width, int(found[2])) == (True, 0), (call[0], width, found[0])
    shots = []
    for scheme in (0, 1):  # dark, light
        shot = tmp_path / f"{scheme}.png"
        browsed(page, f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1280,900", f"--screenshot={shot}")
        shots.append(corner(shot.read_bytes()))
    assert shots[0] < 60
    assert shots[1] > 200
