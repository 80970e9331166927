"""Makes the pictures in docs/pictures: the terminal UI on captures of pcaps/, as it draws itself.

usage: python docs/screenshots.py [--check] [NAME...]     (--check: exit 1 if a picture is out of date)
"""

import asyncio
import os
import re
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the pictures show the program beside this file, whichever is installed
PICTURES = ROOT / "docs" / "pictures"
SIZE = (120, 34)
LARGEST = 200_000
"""Maximum size of a picture in bytes."""
PATIENCE = 400
"""Number of checks of a screen, 50 ms apart, before it has failed."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A capture and the keys that lead to an interesting screen."""

    capture: str
    keys: tuple[str, ...]
    shows: str
    """A text that is on the screen when it is complete."""


SCENES = {
    "list": Scene("java-transactions.pcap", tuple(["down"] * 9), "Produce v13"),
    "ladder": Scene("java-transactions.pcap", ("L", "B", *["down"] * 14), "latency breakdown"),
    "statistics": Scene("java-transactions.pcap", ("S", "tab", "down"), "responses over time"),
    "versions": Scene("old-java-new-broker.pcap", ("V",), "library:"),
    "throttling": Scene("quota-3.9.pcap", ("T",), "where the time was spent"),
    "findings": Scene("problems/zombie-fenced.pcap", ("P",), "next step"),
    "groups": Scene("problems/rebalance-loop-848.pcap", ("U",), "rebalances"),
    "compare": Scene(
        "java-transactions.pcap", ("slash", *"api == TxnOffsetCommit", "enter", "G", "equals_sign"), "fields differ"
    ),
    "health": Scene("raw-frames.pcap", ("H", "2"), "correlation_reused"),
}
"""Name -> what is drawn."""
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def plain(svg: str) -> str:
    """A picture that loads nothing remote: without the addresses of fonts."""
    return FONTS.sub("", svg)


async def drawn(name: str, book: Any) -> str:
    """A scene as SVG, from a completely read capture model. Raises RuntimeError if the screen never shows the text."""
    from kcap.tui.app import KcapApp

    scene = SCENES[name]
    app = KcapApp(book, judges=False)

    def text() -> str:
        strips = app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        for key in scene.keys:
            await pilot.press(key)
            await pilot.pause(0.2)
            await app.workers.wait_for_complete()
            await pilot.pause(0.1)
        for _ in range(PATIENCE):
            await pilot.pause(0.05)
            if scene.shows in text():
                break
        else:
            raise RuntimeError(f"{name}: {scene.shows!r} is not on the screen:\n{text()}")
        await pilot.pause(1.0)
        return plain(app.export_screenshot(title=f"kcap {scene.capture}"))


def main() -> None:
    """Makes the pictures, or compares them."""
    names = [name for name in sys.argv[1:] if name in SCENES] or list(SCENES)
    check, stale = "--check" in sys.argv[1:], []
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        os.environ |= {"XDG_CONFIG_HOME": scratch, "XDG_CACHE_HOME": scratch, "XDG_STATE_HOME": scratch}
        from kcap.tui.capture_model import read_whole

        captures = {SCENES[name].capture for name in names}
        books = {capture: stack.enter_context(read_whole(str(ROOT / "pcaps" / capture))) for capture in sorted(captures)}
        for name in names:
            path, svg = PICTURES / f"{name}.svg", asyncio.run(drawn(name, books[SCENES[name].capture]))
            if len(svg.encode()) > LARGEST:
                sys.exit(f"{name} takes {len(svg.encode()):,} bytes")
            old = path.read_text(encoding="utf-8") if path.exists() else ""
            stale += [name] if svg != old else []
            if not check:
                path.write_text(svg, encoding="utf-8")
    if check and stale:
        sys.exit(f"not what kcap shows: {', '.join(stale)}")


if __name__ == "__main__":
    main()
