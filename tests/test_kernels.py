"""Compiled code is used for as long as every source it was made from is the same, and only from a cache that is private."""

import ast
import builtins
import ctypes
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from kcap import kernels as module
from kcap import machine_code
from kcap.kernels import Kernel, int16, int32, uint16, uint32
from kcap.machine_code import COMPLETE, CONSTANTS, KERNELS, ROOT, edition

IMPORTS_OF_KERNELS = ("from kcap.kernels import compiled", "from kcap.kernels import routine", "@compiled", "@routine")


def sources() -> set[Path]:
    return {path for pattern in (*KERNELS, *CONSTANTS) for path in ROOT.glob(pattern)}


def path_of(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


KERNEL_MODULES = sorted(
    ".".join(("kcap", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if any(text in path.read_text() for text in IMPORTS_OF_KERNELS)
)


def origins(path: Path, name: str) -> Iterator[Path]:
    """Every kcap source that a module-level name of a file has its value from, through imports and assignments."""
    yield path
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kcap"):
            for alias in node.names:
                if alias.name == "*" and hasattr(importlib.import_module(str(node.module)), name):
                    yield from origins(path_of(str(node.module)), name)
                if (alias.asname or alias.name) != name:
                    continue
                whole = importlib.util.find_spec(f"{node.module}.{alias.name}") if is_package(node.module) else None
                if whole is None:
                    yield from origins(path_of(str(node.module)), alias.name)
                elif whole.origin is not None:
                    yield Path(whole.origin)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and name in names_of(node):
            for used in names_in(node.value):
                if used != name:
                    yield from origins(path, used)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def is_package(name: str | None) -> bool:
    return path_of(str(name)).name == "__init__.py"


def names_in(node: ast.AST | None) -> set[str]:
    return set() if node is None else {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - set(dir(builtins))


def names_of(node: ast.Assign | ast.AnnAssign) -> set[str]:
    return {name for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) for name in names_in(target)}


def compiled_functions(name: str) -> list[Any]:
    """The functions of a module that numba compiles, those of its own source."""
    found = vars(importlib.import_module(name)).values()
    return [one for one in found if isinstance(one, Kernel) and one.__module__ == name]


@pytest.mark.parametrize("name", KERNEL_MODULES)
def test_every_constant_of_a_kernel_is_from_a_source_of_the_edition(name: str) -> None:
    """Law: for every name that compiled code uses, the files that decide its value are part of the fingerprint."""
    path = path_of(name)
    assert path in sources()
    used = {used for function in compiled_functions(name) for used in function.py_func.__code__.co_names}
    missing = {(used_name, str(file.relative_to(ROOT))) for used_name in used for file in origins(path, used_name)
               if file not in sources()}  # fmt: skip
    assert not missing


def test_only_the_module_of_kernels_compiles() -> None:
    """A second decorator would be a second policy."""
    direct = [path for path in ROOT.rglob("*.py") if "njit" in path.read_text() or "@jit" in path.read_text()]
    assert direct == [ROOT / "kernel_compiler.py"]


def test_the_edition_changes_with_any_of_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sources():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setattr(machine_code, "ROOT", tmp_path)
    fresh = edition.__wrapped__
    before = fresh()
    for path in sorted(tmp_path.rglob("*.py")):
        text = path.read_text()
        path.write_text(text + "EXTRA = 1\n")
        assert fresh() != before, path
        path.write_text(text)
    assert fresh() == before


ADDS_UP = """
import numpy as np
from kcap import kernels
from kcap.records.verified_kernels import search, TABLES
from kcap.wire.checksums import crc32c
import sys
data = np.zeros(80, np.uint8); data[16] = 2; data[11] = 68
data[17:21] = np.frombuffer(crc32c(data[21:].tobytes()).to_bytes(4, "big"), np.uint8)
print(search(data, np.array([[0, 80, 0]]), TABLES, np.empty((4, 2), np.int64)), "numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_changed_constant_of_kcap_gives_new_results_in_spite_of_old_machine_code(tmp_path: Path) -> None:
    """A copy of the package whose smallest batch is changed: the search for verified batches finds none of the old ones. The
    second run of each loads machine code without the compiler.
    """
    shutil.copytree(ROOT, tmp_path / "kcap", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "KCAP_KERNELS": str(tmp_path / "code")}

    def result() -> str:
        done = subprocess.run(
            [sys.executable, "-c", ADDS_UP], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        return done.stdout.strip()

    assert [result(), result()] == ["1 True", "1 False"]
    formats = tmp_path / "kcap/wire/formats.py"
    formats.write_text(formats.read_text().replace("BATCH_MIN: Final = 61", "BATCH_MIN: Final = 261"))
    assert result() == "0 True"


def test_a_package_that_is_copied_or_moved_keeps_its_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the same function in the package at another place has the same machine code; one of another file does not."""
    monkeypatch.setattr(module, "folder", lambda: tmp_path)
    monkeypatch.setattr("kcap.kernel_compiler.object_code", lambda *_: b"n")
    code = int16.py_func.__code__

    def name(root: Path, file: str) -> str:
        monkeypatch.setattr(module, "ROOT", root)
        return Kernel(FunctionType(code.replace(co_filename=f"{root}/{file}"), {"__name__": "one"}), False).made((), ())[0]

    assert name(ROOT, "kernels.py") == name(tmp_path / "copy", "kernels.py") != name(ROOT, "others.py")


def test_kernels_are_not_usable_before_their_machine_code_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: nothing waits. One process is started, where it is worth one; what it has made is seen soon."""
    started = []
    clock = [0.0]
    monkeypatch.setattr(module, "folder", lambda: tmp_path)
    monkeypatch.setattr(module, "installed", lambda: True)
    monkeypatch.setattr(module, "PLAIN", False)
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "begin_making", lambda: started.append(1))
    state = module._Readiness()
    assert not state.usable(make=False)
    assert started == []
    for _ in range(3):
        clock[0] += 1
        assert not state.usable(make=True)
    assert started == [1]
    (tmp_path / COMPLETE).touch()
    assert not state.usable(make=True)  # it was looked for a moment ago
    clock[0] += 1
    assert state.usable(make=False)


def test_without_a_compiler_or_a_folder_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("other users can write there")

    for name, value in (("find_spec", lambda _: None), ("folder", none)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            assert module.installed.__wrapped__() is False


@given(st.binary(min_size=4, max_size=8), st.data())
def test_integers_are_those_of_python(data: bytes, drawn: st.DataObject) -> None:
    at = drawn.draw(st.integers(0, len(data) - 4))
    array = np.frombuffer(data, np.uint8)
    for function, size, signed in ((int16, 2, True), (int32, 4, True), (uint16, 2, False), (uint32, 4, False)):
        assert function(array, at) == int.from_bytes(data[at : at + size], "big", signed=signed)


def test_a_library_is_called_in_python_as_in_machine_code() -> None:
    """Addresses come out of arrays, as numpy's integers."""
    address = np.array([ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value])
    assert module.called(address[0], np.int64(-7)) == 7
    assert module.called(int(address[0]), 3) == 3


def test_a_compiler_that_cannot_be_started_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: started.append((words, more)))
    module.begin_making()
    ((words,), more) = started[0]
    assert words[1:] == ["-m", "kcap.every_kernel", "--low-priority"]
    assert more["start_new_session"]

    def fails(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr(subprocess, "Popen", fails)
    assert module.begin_making() is None
