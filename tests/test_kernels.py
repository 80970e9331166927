"""Compiled code is used for as long as its texts are the same."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kcap import kernels as module
from kcap.kernels import ROOT, TEXTS, edition

TWO = """
from kcap.kernels import compiled
from other import FACTOR

@compiled
def times(number):
    return number * FACTOR
"""


def load(path: Path, name: str) -> ModuleType:
    """A module of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_constant_of_another_module_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba alone would go on with the old one, since the function's own file is the same."""
    function = tmp_path / "times.py"
    function.write_text(TWO)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts of one size and second would be one to Python's own cache
    found = []
    for factor, name in ((2, "a"), (2, "a"), (3, "b")):
        (tmp_path / "other.py").write_text(f"FACTOR = {factor}\n# {name}\n")
        monkeypatch.setitem(sys.modules, "other", load(tmp_path / "other.py", "other"))
        monkeypatch.setattr(module, "edition", lambda name=name: name)
        monkeypatch.setitem(sys.modules, "times", ModuleType("times"))
        times = load(function, "times").times
        found.append((times(7), sum(times.stats.cache_hits.values())))
    assert found == [(14, 0), (14, 1), (21, 0)]


def test_the_texts_are_there() -> None:
    assert all((ROOT / name).is_file() for name in TEXTS)
    assert len(edition()) == 32
