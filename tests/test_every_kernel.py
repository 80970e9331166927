"""What the set-up compiles is all that reading needs."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

pytest.importorskip("numba")

from kcap import every_kernel, kernels
from kcap.machine_code import COMPLETE, ROOT

DECORATORS = {"compiled", "routine"}
READ = """
import sys
from pathlib import Path
from unittest.mock import patch
from kcap import capture_pass, kernels, limits
from kcap.decode import projection
from kcap.capture import fileset
import kcap

assert kernels.usable()
with patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0), patch.object(projection, "JIT_AFTER", 0):
    for path in map(Path, sys.argv[1:]):
        with patch.object(capture_pass, "FileSet", lambda *a, **k: fileset.FileSet(*a, **{**k, "jit_after": 0})):
            rows = len(list(kcap.open(path)))
print("kcap.fastpath.engine" in sys.modules, "numba" in sys.modules)
"""


def test_reading_needs_no_compiler(pcaps: Path) -> None:
    """Law: captures of each format and kind of traffic call kernels with the types of the examples alone."""
    captures = [str(path) for path in sorted(pcaps.iterdir()) if path.suffix in (".pcap", ".pcapng")]
    assert len(captures) > 10
    done = subprocess.run([sys.executable, "-c", READ, *captures], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr


def called_by_python(tree: ast.Module, known: set[str]) -> set[str]:
    """The names among `known` that a module's functions call which are no kernels themselves."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and any(getattr(one, "id", "") in DECORATORS for one in node.decorator_list):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            found.add(node.func.id)
        waiting += ast.iter_child_nodes(node)
    return found


def test_every_kernel_that_is_called_has_an_example() -> None:
    """Law: what Python calls by its name is made before: else a capture of a rare kind would wait for the compiler."""
    names = [kernel.__name__ for kernel, _ in every_kernel.examples()]
    assert len(names) == len(set(names))
    called: set[str] = set()
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "kernels" in text:
            module = import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
            here = {name for name, one in vars(module).items() if isinstance(one, kernels.Kernel)}
            called |= called_by_python(ast.parse(text), here)
    assert called - set(names) == set()
    assert {"walk", "batch", "parse_packets", "pcap_records", "pcapng_packets", "pass_over"} <= called


def test_one_process_makes_it_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the file that says so is gone afterwards; one left behind by a killed process does not stay for ever."""
    monkeypatch.setattr(every_kernel, "folder", lambda: tmp_path)
    made: list[str] = []

    class Sample:
        def make(self, *_: object) -> None:
            assert (tmp_path / every_kernel.MAKING).exists()
            made.append("one")

    with patch.object(every_kernel, "examples", lambda: iter([(Sample(), (1,))])):
        (tmp_path / every_kernel.MAKING).touch()
        every_kernel.make()
        assert made == []
        os.utime(tmp_path / every_kernel.MAKING, (0, 0))
        every_kernel.make()
        every_kernel.make()
    assert made == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == [COMPLETE]


def test_without_a_place_to_keep_it_the_program_says_so_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "installed", lambda: False)
    assert every_kernel.main([]) == 1
