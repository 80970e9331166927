"""Laws of the script that measures modules by their mirrors: what it measures, and when it fails."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kcap
from tests import coverage_by_mirror as script

ROOT = Path(__file__).resolve().parent.parent
SMALL = Path(inspect.getfile(kcap.FilterError)).resolve().parent
"""A folder whose tests take a second."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tests" / "coverage_by_mirror.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_modules_of_kcap_have_the_mirrors_that_the_house_demands() -> None:
    found = {one.path: one.mirror for one in script.modules() if one.path.is_relative_to(ROOT / "kcap")}
    assert len(found) > 100
    assert {path.relative_to(ROOT).as_posix() for path, mirror in found.items() if not mirror.is_file()} == set()


def test_what_holds_no_function_is_left_out() -> None:
    found = {one.path for one in script.modules()}
    assert ROOT / "kcap" / "__init__.py" not in found
    assert ROOT / "kcap" / "limits" / "capture.py" not in found


def test_a_path_chooses_modules_by_themselves_or_by_their_mirrors() -> None:
    every = script.modules()
    one = every[0]
    for path in (one.path, one.mirror):
        assert script.chosen(every, [path]) == [one]
    assert script.chosen(every, [ROOT]) == every
    assert script.chosen(every, [ROOT / "docs"]) == []


def test_a_path_without_modules_is_a_usage_error() -> None:
    assert run("docs").returncode == 2


@pytest.mark.slow
def test_lines_that_only_another_test_file_runs_do_not_count(tmp_path: Path) -> None:
    """In a run of two, the module whose mirror comes first has the figure of a run alone; the other has no more than that, and
    less where the first has filled a cache for it."""
    pair = [one for one in script.modules() if one.path.parent == SMALL][:2]
    (tmp_path / "both").mkdir()
    together = script.measure(pair, 0, tmp_path / "both", quiet=True)
    assert (together.count, together.failed) == (1, [])
    figures = [one.missing for one in pair]
    for one in pair:
        one.left = None
        folder = tmp_path / one.path.stem
        folder.mkdir()
        script.measure([one], 0, folder, quiet=True)
    assert pair[0].missing == figures[0]
    assert pair[1].missing <= figures[1]
    assert all(0 <= one.missing < one.lines for one in pair)


@pytest.mark.slow
def test_the_floor_decides_the_exit_code() -> None:
    module = next(one.path for one in script.modules() if one.path.parent == SMALL)
    enough, too_little = (run("-q", "--floor", floor, str(module)) for floor in ("1", "101"))
    assert (enough.returncode, too_little.returncode) == (0, 1), enough.stdout + too_little.stdout
    assert re.search(rf"^ *\d+\.\d +\d+ +\d+  {module.relative_to(ROOT)}$", enough.stdout, re.MULTILINE)
