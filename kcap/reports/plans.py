"""Caches the SQL of reports between runs: Ibis and its compilers take half a second to load, DuckDB takes 30 milliseconds.

In: what decides the SQL of a report (its name, parameters, filter, the columns of its tables), and the expressions themselves.
Out: name -> SQL. Law: cached SQL equals what the expressions compile to now; a change of any source file of kcap, Ibis or
DuckDB invalidates the whole cache. Only files that this user alone can write are trusted. If no file can be written, or kcap
was upgraded while this process ran, expressions are compiled each time.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import kcap
from kcap import limits
from kcap.folders import private_folder, write_whole

Statements = dict[str, str]
PACKAGE: Final = Path(__file__).parents[1]
FOLDER: Final = "plans"
SHIPPED: Final = Path(__file__).with_name("shipped.json.z")
"""The SQL of rules, which `kcap.reports.shipping` writes: compiling it takes seconds for a first capture."""
PACKAGES: Final = ("kcap-", "ibis_framework-", "sqlglot-", "duckdb-")
"""Packages that make, compile and run SQL."""


def planned(parts: Iterable[object], make: Callable[[], Statements]) -> Statements:
    """The cached SQL for `parts`, or the result of `make`, which is then cached. Raises what `make` raises."""
    file = _file(parts)
    found = None if file is None else _read(file)
    if found is None:
        found = make()
        if file is not None:
            _keep(file, found)
    return found


@cache
def shipped() -> Mapping[str, Statements]:
    """The SQL that comes with kcap: `CompiledPlan.digest` -> name -> SQL; none before it is written."""
    if not SHIPPED.exists():
        return {}
    found = json.loads(zlib.decompress(SHIPPED.read_bytes()))
    return {digest: {name: found["sql"][at] for name, at in some.items()} for digest, some in found["names"].items()}


class CompiledPlan:
    """Cached SQL by the digests of its expressions, to which statements are added as needed: one file for each `parts`."""

    def __init__(self, parts: Sequence[object]) -> None:
        self._file = _file(parts)
        self._statements = self._known()
        self._changed = False
        self.digest = _digest(blake2b(digest_size=20), parts)

    def _known(self) -> Statements:
        """The present content of the file; nothing if it is too large and is begun anew."""
        found = None if self._file is None else _read(self._file)
        return found if found is not None and len(found) <= limits.PLAN_STATEMENTS_MAX else {}

    def sql(self, name: str, make: Callable[[], str]) -> str:
        """The SQL of a name, or the result of `make`. Raises what `make` raises."""
        found = self._statements.get(name)
        if found is None:
            found = shipped().get(self.digest, {}).get(name)
        if found is None:
            found = self._statements[name] = make()
            self._changed = True
        return found

    def keep(self) -> None:
        """Writes the added statements, together with those that another process has added meanwhile."""
        if self._changed and self._file is not None:
            _keep(self._file, {**self._known(), **self._statements})


def plan_folder() -> Path | None:
    """The folder of the cache; None if no folder can be trusted, or if no source files show whether cached SQL is current."""
    return private_folder(FOLDER) if PACKAGE.is_dir() and _sources() is not None else None


def _file(parts: Iterable[object]) -> Path | None:
    """The file for `parts`, the sources of kcap and the versions of the packages; None if no file can be trusted."""
    folder, sources = plan_folder(), _sources()
    if folder is None or sources is None:
        return None
    return folder / f"{_digest(sources.copy(), parts)}.json"


def _digest(digest: "blake2b", parts: Iterable[object]) -> str:
    """A digest of what was digested already, and of parts."""
    for part in parts:
        digest.update(f"{part!r}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()


@cache
def _sources() -> "blake2b | None":
    """The digest of sources and versions, computed once per process. None if a source was written after this process began: its
    expressions are then not those of the sources, and must not be cached under their digest."""
    digest, files = blake2b(digest_size=20), sorted(_files(str(PACKAGE)))
    if any(written_ns >= kcap.LOADED_NS for *_, written_ns in files):
        return None
    _digest(digest, (*_versions(), *files))
    return digest


def _versions() -> list[str]:
    """The folders that name the versions of the packages. The packages are not imported."""
    found = find_spec("ibis")
    if found is None or found.origin is None:
        return []
    beside = os.listdir(Path(found.origin).parents[1])
    return sorted(name for name in beside if name.endswith("-info") and name.startswith(PACKAGES))


def _files(folder: str) -> Iterable[tuple[str, int, int, int]]:
    """Path, size and both times of change of each file of a package.

    Packages are unpacked with the times of their archive, which may be the same for all versions. st_ctime, the time at which
    the file was written here, cannot be set. Reading the text of the sources would take 1 % of a small report.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: Path) -> Statements | None:
    """The content of a file; None if there is no file or it is incomplete."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and all(isinstance(sql, str) for sql in found.values())
    return found if whole else None


def _keep(file: Path, statements: Statements) -> None:
    """Writes a file that appears only when it is complete, and removes the oldest files if there are too many. A full disk is
    not reported, since the report itself succeeded."""
    with suppress(OSError):
        write_whole(file, json.dumps(statements).encode())
        files = sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        for old in files[limits.PLANS_KEPT :]:
            old.unlink()
