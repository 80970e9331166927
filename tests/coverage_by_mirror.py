"""Measures for each module which of its lines its own mirror test file runs, prints a table, and fails below a floor.

usage: .venv/bin/python tests/coverage_by_mirror.py [--floor 80] [kcap/net | tests/net | kcap/net/tcp.py]...

The mirror of kcap/x/y.py is tests/x/test_y.py, that of spark_jobs/y.py is tests/spark_jobs/test_y.py; modules and mirrors are
found on disk. Overall coverage hides a module that is only run by the tests of others; this figure does not.

How it is measured:

- The mirrors of one folder run in one pytest process under coverage.py. This file is also a pytest plugin, which switches
  coverage's dynamic context to the path of the test file that is collected or run, so that each line is known with the files
  that ran it. A process that a test starts is measured too, in the context of that test file.
- The modules of the folder are imported before any test, in the empty context, which counts for every module: what runs on
  import, such as `def` lines and constants, runs on the mirror's import as well.
- Coverage cannot see into functions that numba has compiled. The mirrors of modules that hold such functions run again with
  NUMBA_DISABLE_JIT=1, which shows the plain Python that numba would compile; the lines of both runs count.
  A test may fail there, since plain Python raises where machine code wraps around; that lowers the figure and is not an error.
- A value that a test file before has left in a cache or a fixture is not computed again for the next one. So the mirror of
  a module below the floor runs once more, alone; a line counts that one of its runs has run.
- A module without functions (constants, declarations) has nothing that a test could run, and is left out, as are `__init__.py`
  and `__main__.py`, which have no mirrors. A module with functions and no mirror file counts as 0 %.

Lines, not branches, also of processes that are started or forked, and of those that end by `os._exit`, as kcap's own do.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import coverage
import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
CONTEXT: Final = "KCAP_COVERAGE_CONTEXT"
"""Environment variable: the test file for which a process was started."""
IMPORTS: Final = "KCAP_COVERAGE_IMPORTS"
"""Environment variable: modules that the plugin imports first, separated by spaces."""
COMPILED: Final = "KCAP_COVERAGE_COMPILED"
"""Environment variable: file to which the plugin writes the names of modules that hold compiled functions."""
SETTINGS: Final = """\
[run]
source =
    {root}/kcap
    {root}/spark_jobs
data_file = {data}
parallel = true
core = ctrace
patch =
    subprocess
    fork
    _exit
context = ${{KCAP_COVERAGE_CONTEXT-}}
disable_warnings = no-data-collected, module-not-imported, couldnt-parse

[report]
exclude_also =
    if TYPE_CHECKING:
    ^\\s*(def .*)?\\.\\.\\.$
"""
"""Of coverage.py. The tracer `ctrace` knows contexts; the one that Python 3.14 would get by default sees each line once."""


# -- the pytest plugin ----------------------------------------------------------------------------------------------------
def in_context(path: Path | None) -> None:
    """From here on lines are run by this test file, or by none."""
    name = "" if path is None else path.relative_to(ROOT).as_posix()
    os.environ[CONTEXT] = name
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(name)


def pytest_configure() -> None:
    """Imports what is measured, in the empty context."""
    for name in os.environ.get(IMPORTS, "").split():
        import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """What a test file runs while it is imported is its own."""
    if isinstance(collector, pytest.Module):
        in_context(collector.path)
    try:
        return (yield)
    finally:
        in_context(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test with its fixtures."""
    in_context(item.path)
    try:
        return (yield)
    finally:
        in_context(None)


def pytest_sessionfinish() -> None:
    """Names the modules that hold functions compiled by numba; a compiled function has the plain one as `py_func`."""
    found = [
        name
        for name, module in list(sys.modules.items())
        if name.startswith(("kcap.", "spark_jobs."))
        and any(getattr(getattr(value, "py_func", None), "__module__", None) == name for value in vars(module).values())
    ]
    if COMPILED in os.environ:
        Path(os.environ[COMPILED]).write_text(json.dumps(found), encoding="utf-8")


# -- the measurement --------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Module:
    """A module, its mirror, and the figures of all its runs."""

    path: Path
    mirror: Path
    lines: int = 0
    left: set[int] | None = None
    """Numbers of the lines that no run of the mirror has run; None before the first one."""
    note: str = ""

    @property
    def name(self) -> str:
        """As imported."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    @property
    def missing(self) -> int:
        """Lines that the mirror does not run."""
        return len(self.left or ())

    @property
    def percent(self) -> float:
        """Of its lines, those that the mirror runs."""
        return 100.0 * (self.lines - self.missing) / self.lines if self.lines else 100.0


@cache
def holds_function(path: Path) -> bool:
    """Whether a source has a function, a method or a lambda."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for node in nodes)


def modules() -> list[Module]:
    """All modules that hold a function."""
    found = []
    for path in sorted(path for package in ("kcap", "spark_jobs") for path in (ROOT / package).rglob("*.py")):
        inner = path.relative_to(ROOT)
        if path.name.startswith("__") or not holds_function(path):
            continue
        place = inner.relative_to("kcap") if inner.parts[0] == "kcap" else inner
        found.append(Module(path, ROOT / "tests" / place.with_name(f"test_{path.name}")))
    return found


def chosen(every: Sequence[Module], wanted: Sequence[Path]) -> list[Module]:
    """The modules that are, or whose mirrors are, at or below one of the paths."""
    return [one for one in every if any(place.is_relative_to(path) for path in wanted for place in (one.path, one.mirror))]


class Runs:
    """Runs mirrors under coverage and reads the figures."""

    def __init__(self, scratch: Path, quiet: bool) -> None:
        self.scratch = scratch
        self.quiet = quiet
        self.count = 0
        self.failed: list[str] = []
        """Runs whose tests did not all pass, with the last line of pytest."""

    def run(self, some: Sequence[Module], note: str = "", *, jit: bool = True) -> set[str]:
        """Runs the mirrors of modules in one process, improves their figures; the names of modules with compiled functions."""
        self.count += 1
        folder = self.scratch / str(self.count)
        folder.mkdir()
        settings, compiled = folder / "coveragerc", folder / "compiled.json"
        settings.write_text(SETTINGS.format(root=ROOT, data=folder / "data"), encoding="utf-8")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            IMPORTS: " ".join(one.name for one in some),
            COMPILED: str(compiled),
            CONTEXT: "",
        }
        more = []
        if not jit:
            environment["NUMBA_DISABLE_JIT"] = "1"
            more = ["-W", "ignore::RuntimeWarning"]  # numbers that wrap around
        began = time.monotonic()
        mirrors = sorted({str(one.mirror) for one in some})
        done = subprocess.run(
            [
                sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-p", Path(__file__).stem,
                "-p", "no:cacheprovider", "-q", "--no-header", "--tb=line", *more, *mirrors,
            ],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        (folder / "output").write_text(done.stdout + done.stderr, encoding="utf-8")
        last = (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()[-1]
        where = some[0].mirror if len(mirrors) == 1 else some[0].mirror.parent
        line = f"{where.relative_to(ROOT)}{f' ({note})' if note else ''}: {last}"
        if done.returncode and jit:
            names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
            self.failed.append("\n    ".join([line, *names]))
        if not self.quiet:
            print(f"{time.monotonic() - began:6.1f} s  {line}", file=sys.stderr, flush=True)
        self._read(settings, folder, some, note)
        return set(json.loads(compiled.read_text(encoding="utf-8"))) if compiled.exists() else set()

    def _read(self, settings: Path, folder: Path, some: Sequence[Module], note: str) -> None:
        measured = coverage.Coverage(config_file=str(settings), messages=False)
        if any(folder.glob("data.*")):
            measured.combine([str(folder)])
        data = measured.get_data()
        for one in some:
            mirror = one.mirror.relative_to(ROOT).as_posix()
            data.set_query_contexts(["^$", f"^({re.escape(mirror)})?[|]?{re.escape(mirror)}$"])
            _, statements, _, missing, _ = measured.analysis2(str(one.path))
            left = set(missing) if one.left is None else one.left.intersection(missing)
            if one.left is None or len(left) < len(one.left):
                one.lines, one.left, one.note = len(statements), left, note


def measure(some: Sequence[Module], floor: float, scratch: Path, *, quiet: bool = False) -> Runs:
    """Fills in the figures of all modules."""
    runs = Runs(scratch, quiet)
    folders: dict[Path, list[Module]] = defaultdict(list)
    for one in some:
        if one.mirror.is_file():
            folders[one.mirror.parent].append(one)
        else:
            statements = coverage.Coverage(data_file=None, config_file=False).analysis2(str(one.path))[1]
            one.lines, one.left, one.note = len(statements), set(statements), "no mirror"
    for folder in folders.values():
        compiled = runs.run(folder)
        machine = [one for one in folder if one.name in compiled]
        if machine:
            runs.run(machine, "without JIT", jit=False)
        low = [one for one in folder if one.percent < floor]
        for one in low if len(folder) > 1 else ():
            plain = one in machine
            runs.run([one], "without JIT, alone" if plain else "alone", jit=not plain)
    return runs


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where a module is below the floor or a test failed, 2 where nothing is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="modules, mirrors, or folders of them; all by default"
    )
    parser.add_argument("--floor", type=float, default=80.0, metavar="PERCENT", help="the least that is enough (default: 80)")
    parser.add_argument("-q", "--quiet", action="store_true", help="the table alone, no progress on stderr")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    some = chosen(modules(), [path.resolve() for path in given.paths] or [ROOT])
    if not some:
        parser.error("no module with functions is there")
    with tempfile.TemporaryDirectory(prefix="kcap-coverage-") as scratch:
        runs = measure(some, given.floor, Path(scratch), quiet=given.quiet)
    print("percent  lines  missing  module")
    for one in sorted(some, key=lambda one: (one.percent, one.name)):
        note = f"  ({one.note})" if one.note else ""
        print(f"{one.percent:7.1f}  {one.lines:5d}  {one.missing:7d}  {one.path.relative_to(ROOT)}{note}")
    low = [one for one in some if one.percent < given.floor]
    print(f"{len(some)} modules, {len(low)} below {given.floor:g} %, {runs.count} runs, {time.monotonic() - began:.0f} s")
    for line in runs.failed:
        print(f"tests failed: {line}")
    return 1 if low or runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
