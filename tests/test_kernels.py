"""Compiled code is used for as long as every source it was made from is the same, and only from a cache that is private."""

import ast
import builtins
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from kcap import kernels as module
from kcap.kernels import CONSTANTS, KERNELS, ROOT, edition, int16, int32, private, uint16, uint32

TIMES = """
from kcap.kernels import compiled
from other import FACTOR

@compiled
def times(number):
    return number * FACTOR
"""
IMPORTS_OF_KERNELS = ("from kcap.kernels import", "from kcap import kernels", "njit")


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
    tree = ast.parse(path.read_text())
    yield path
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kcap"):
            for alias in node.names:
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


def is_package(name: str | None) -> bool:
    return path_of(str(name)).name == "__init__.py"


def names_in(node: ast.AST | None) -> set[str]:
    return set() if node is None else {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - set(dir(builtins))


def names_of(node: ast.Assign | ast.AnnAssign) -> set[str]:
    return {name for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) for name in names_in(target)}


def compiled_functions(name: str) -> list[Any]:
    """The functions of a module that numba compiles, those of its own source."""
    found = vars(importlib.import_module(name)).values()
    return [one for one in found if hasattr(one, "py_func") and one.py_func.__module__ == name]


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
    assert direct == [ROOT / "kernels.py"]


def test_every_pattern_of_the_edition_finds_a_source() -> None:
    assert all(any(ROOT.glob(pattern)) for pattern in (*KERNELS, *CONSTANTS))
    assert len(edition()) == 32


def test_the_edition_changes_with_any_of_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sources():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    fresh = edition.__wrapped__
    before = fresh()
    for path in sorted(tmp_path.rglob("*.py")):
        text = path.read_text()
        path.write_text(text + "EXTRA = 1\n")
        assert fresh() != before, path
        path.write_text(text)
    assert fresh() == before


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_changed_constant_of_another_module_compiles_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba alone would use the old machine code, since the function's own file is the same."""
    function = tmp_path / "times.py"
    function.write_text(TIMES)
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


@pytest.mark.slow
def test_a_changed_constant_of_kcap_gives_new_results_in_spite_of_an_old_cache(tmp_path: Path) -> None:
    """A copy of the package whose smallest batch is changed: the search for verified batches finds none of the old ones."""
    shutil.copytree(ROOT, tmp_path / "kcap", ignore=shutil.ignore_patterns("__pycache__"))
    run = (
        "import numpy as np\n"
        "from kcap.records.verified_kernels import search, TABLES\n"
        "data = np.zeros(80, np.uint8); data[16] = 2; data[11] = 68; data[17:21] = 0\n"
        "from kcap.wire.checksums import crc32c\n"
        "data[17:21] = np.frombuffer(crc32c(data[21:].tobytes()).to_bytes(4, 'big'), np.uint8)\n"
        "out = np.empty((4, 2), np.int64)\n"
        "print(search(data, np.array([[0, 80, 0]]), TABLES, out), sum(search.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def result() -> str:
        done = subprocess.run(
            [sys.executable, "-c", run], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        return done.stdout.strip()

    assert [result(), result()] == ["1 0", "1 1"]
    formats = tmp_path / "kcap/wire/formats.py"
    formats.write_text(formats.read_text().replace("BATCH_MIN: Final = 61", "BATCH_MIN: Final = 261"))
    assert result() == "0 0"


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_code_is_cached_where_no_other_user_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for everybody would let any user run code in this process: numba's cache is machine code and pickles."""
    monkeypatch.setattr(module, "_shared", module._shared.__wrapped__)
    source = tmp_path / "own" / "times.py"
    source.parent.mkdir(mode=0o755)
    source.write_text("")
    cache, everybody = tmp_path / "own/cache", tmp_path / "everybody"
    cache.mkdir(mode=0o755)
    everybody.mkdir()
    everybody.chmod(0o777)
    below = everybody / "below"
    below.mkdir(mode=0o755)
    assert private(str(cache), str(source))
    assert not private(str(everybody), str(source))
    assert not private(str(below), str(source))  # it can be replaced as a whole
    everybody.chmod(0o1777)
    assert private(str(below), str(source))
    assert not private(str(everybody), str(source))
    assert private(str(everybody), str(everybody / "times.py"))  # who can write there can write the source too


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import config

    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o777)
    monkeypatch.setattr(config, "CACHE_DIR", str(everybody))
    with pytest.raises(RuntimeError, match="other users can write"):
        module.compiled(lambda number: number)


@given(st.binary(min_size=4, max_size=8), st.data())
def test_integers_are_those_of_python(data: bytes, drawn: st.DataObject) -> None:
    at = drawn.draw(st.integers(0, len(data) - 4))
    array = np.frombuffer(data, np.uint8)
    for function, size, signed in ((int16, 2, True), (int32, 4, True), (uint16, 2, False), (uint32, 4, False)):
        assert function(array, at) == int.from_bytes(data[at : at + size], "big", signed=signed)
