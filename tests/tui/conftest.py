"""Books of real captures, read by the real reading process."""

import gc
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kcap.reports import plans
from kcap.tui.capture_model import CaptureModel, read_whole

PCAPS = Path(__file__).resolve().parents[2] / "pcaps"


RARELY = (20_000, 20, 50)
"""Thresholds of the collector: what tests and screens hold is much and stays, and is looked at once a file, not in each one."""


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What the tests of a file leave is collected behind them."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def collects_rarely() -> None:
    """The collector runs as rarely as in the program (`collect_rarely`); the hook in tests/conftest.py sets it back. In its
    usual course it took two fifths of the time of a test that opens a view.
    """
    gc.set_threshold(*RARELY)


@pytest.fixture(scope="session")
def users_plans() -> Path | None:
    """The user's folder of compiled reports."""
    return plans.plan_folder()


@pytest.fixture(scope="module", autouse=True)
def shared_plans(users_plans: Path | None) -> Iterator[None]:
    """Compiled reports come from the user's cache, as those of commands do: views and processes share what one of them has
    compiled, though their other folders are their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "plan_folder", lambda: users_plans)
        yield


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, users_plans: Path | None) -> Path:
    """Where the tests have a cache and settings of their own."""
    return tmp_path_factory.mktemp("xdg")


@contextmanager
def own_folders(base: Path) -> Iterator[None]:
    """The user's folders are below this one, for as long as the block lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cache", "config", "state"):
            patch.setenv(f"XDG_{name.upper()}_HOME", str(base / name))
        yield


@pytest.fixture(scope="module", autouse=True)
def folders(base: Path) -> Iterator[Path]:
    """A cache and settings of the tests' own; files of other folders, which run between these, have the user's."""
    with own_folders(base):
        yield base


@pytest.fixture(scope="session")
def java(base: Path) -> Iterator[CaptureModel]:
    """A book of transactions by Kafka's own clients."""
    with own_folders(base):
        book = read_whole(str(PCAPS / "java-transactions.pcap"))
    with book:
        yield book


@pytest.fixture
def book(java: CaptureModel) -> Iterator[CaptureModel]:
    """The same, without a filter when it comes and when it goes."""
    java.narrow("")
    yield java
    java.narrow("")


@pytest.fixture
def fresh_settings(folders: Path) -> None:
    """No settings, notes and profiles of a test before."""
    for name in ("captures", "profiles"):
        shutil.rmtree(folders / "config" / "kcap" / name, ignore_errors=True)
    (folders / "config" / "kcap" / "tui.toml").unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def kept_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views give no memory back: collector and allocator would go through all that tests hold, each time."""
    monkeypatch.setattr("kcap.tui.app.collect", lambda: None)
    monkeypatch.setattr("kcap.tui.views.screen.trim_heap", lambda: None)
