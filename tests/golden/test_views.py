"""Every view as text at two sizes, against the texts in views/. KCAP_GOLDEN=write makes the texts anew: look at the diff."""

import os
from pathlib import Path

import pytest

from kcap.tui.views import VIEWS
from tests.tui.views.stub import StubBook, drive, with_records

GOLDEN = Path(__file__).resolve().parent / "views"
SCENES = {
    "conversations": ("java-transactions.pcap", ()),
    "ladder": ("java-transactions.pcap", ("b", "down", "down", "down")),
    "statistics": ("java-transactions.pcap", ("tab", "down")),
    "versions": ("go-franz.pcap", ("4", "end")),
    "throttling": ("quota-3.9.pcap", ()),
    "errors": ("raw-frames.pcap", ("2",)),
    "topics": ("java-transactions.pcap", ()),
    "records": ("java-transactions.pcap", ("down",)),
    "health": ("raw-frames.pcap", ()),
}
"""View -> a capture, and the keys that make it worth a look."""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_every_view_has_a_scene() -> None:
    assert SCENES.keys() == VIEWS.keys()
    assert {path.stem.partition("-")[0] for path in GOLDEN.glob("*.txt")} == VIEWS.keys()


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_looks_as_it_did(name: str, size: tuple[int, int]) -> None:
    capture, keys = SCENES[name]
    selected = with_records(capture) if name == "records" else None
    text = drive(StubBook(capture), name, *keys, size=size, selected=selected).text + "\n"
    path = GOLDEN / f"{name}-{size[0]}x{size[1]}.txt"
    if os.environ.get("KCAP_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
