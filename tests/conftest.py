"""What every test may use, and how hard the laws are searched.

`KCAP_LAWS=deep ./test tests/laws` tries hundreds of times as many examples; on a build machine (CI set) the examples are fixed.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from kcap.jobs.cores import free_cores

ROOT = Path(__file__).resolve().parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has interrupts ignored, by whatever they start too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline and no limit of the time that examples take to be made: the first example of a law may compile a kernel or load a
# schema, and other work may have the processor.
PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=50, **PATIENT)
settings.register_profile("ci", parent=settings.get_profile("fast"), derandomize=True, print_blob=True)
settings.register_profile("deep", max_examples=20_000, **PATIENT)
settings.load_profile(os.environ.get("KCAP_LAWS") or ("ci" if os.environ.get("CI") else "fast"))


def pytest_configure(config: pytest.Config) -> None:
    """Makes the machine code of kernels first, where it can be made: tests of the fast path must not run without it."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        config.args = in_turn(config.args)
    elif not config.option.collectonly:
        if sys.dont_write_bytecode:
            keep_bytecode(config)
        subprocess.run([sys.executable, "-m", "kcap.every_kernel"], check=False, stderr=subprocess.DEVNULL)


def keep_bytecode(config: pytest.Config) -> None:
    """Keeps bytecode of this session in a folder of its own, where the environment wants none beside the sources. Workers and
    the hundreds of programs that tests start would each compile all modules again.
    """
    folder = tempfile.TemporaryDirectory(prefix="kcap-bytecode-")
    config.add_cleanup(folder.cleanup)
    sys.dont_write_bytecode, sys.pycache_prefix = False, folder.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it may have been an option (-B)
    os.environ["PYTHONPYCACHEPREFIX"] = folder.name


def in_turn(args: list[str]) -> list[str]:
    """The files of the whole suite, from another one on in each process: to compile the assertions of all of them takes longer
    than to load them, and so each process compiles a part and finds the others compiled.
    """
    if [Path(arg).resolve() for arg in args] != [ROOT / "tests"]:
        return args
    files = sorted(map(str, (ROOT / "tests").rglob("test_*.py")))
    number, count = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    first = number * len(files) // count
    return files[first:] + files[:first]


def pytest_xdist_auto_num_workers() -> int:
    """Processes for `-n auto`: two more than there are cores, since tests of screens wait."""
    return 2 + free_cores()


SCREENS = ("tests/tui/", "tests/golden/", "tests/laws/test_survival.py", "tests/test_screenshots.py", "tests/test_terminal.py")
"""Folders and files whose tests wait for screens."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Side by side (`-n`), a file stays with one process, since its tests share what they read; all tests of Spark stay with
    one too, for a session takes seconds to start, and come first, as they take longest. Files that wait and files that compute
    come in turn, so that there is always something to compute.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        group = "spark" if item.get_closest_marker("spark") else item.path.relative_to(ROOT).as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: item.path)
        places: dict[Path, float] = {}
        for waits in (True, False):
            files = [path for path in dict.fromkeys(item.path for item in items) if waits_for_screens(path) is waits]
            places |= {path: at / len(files) for at, path in enumerate(files)}
        items.sort(key=lambda item: (item.get_closest_marker("spark") is None, places[item.path]))


def waits_for_screens(path: Path) -> bool:
    """Whether the tests of a file do so for more than half of their time."""
    return path.relative_to(ROOT).as_posix().startswith(SCREENS)


COLLECTOR = gc.get_threshold()


def pytest_collection_finish() -> None:
    """Modules and tests, half a million objects that stay, are not looked at by the garbage collector again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What DuckDB left is collected when Python ends, or its bindings list it on standard error."""
    gc.unfreeze()


def pytest_runtest_teardown() -> None:
    """Commands that a test runs in this process let its garbage collector run rarely, as their own process may. Here it would
    leave the analyzers of hundreds of examples in memory, 20 GB of them.
    """
    if gc.get_threshold() != COLLECTOR:
        gc.set_threshold(*COLLECTOR)


@pytest.fixture(scope="session", autouse=True)
def kept_pages() -> Iterator[None]:
    """Commands and reports in this process keep pages of its libraries: the kernel would look through all that hundreds of
    tests have mapped, each time, and the next one would have the pages read again. They keep its priority too, which would be
    the lowest after some readings of the terminal UI, and leave what tests hold to the garbage collector.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kcap.runtime.untouched", lambda _lines: ())
        patch.setattr("os.nice", lambda _by: 0)
        patch.setattr("gc.freeze", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def usual_permissions() -> Iterator[None]:
    """Whatever the user's own permissions for new files are: tests hold which files others must not read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def pcaps() -> Path:
    """The folder of small real captures; pcaps/README.md tells their stories."""
    return ROOT / "pcaps"


@pytest.fixture(scope="session")
def truths(pcaps: Path) -> dict[str, dict[str, Any]]:
    """What the recorded programs logged about themselves, by file name (pcaps/truths.json)."""
    captures: dict[str, dict[str, Any]] = json.loads((pcaps / "truths.json").read_text(encoding="utf-8"))["captures"]
    return captures


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The only Spark session of a process: a second one would get the Java of the first, with its heap and its options."""
    pytest.importorskip("pyspark")
    from spark_jobs.spark_session import session
    from tests.support.java import SESSION

    folder = str(tmp_path_factory.mktemp("spark"))
    made = session("tests", master="local[2]", sql_shuffle_partitions="2", local_dir=folder, **SESSION)
    yield made
    made.stop()
