"""Stores the result of reading a large capture in the cache folder, so that the same files open at once the next time.

In: the read request, the folder that a reading process filled, its last message. Out: a folder with the same tables. Law: an
index is used only for the same files (path, size, time of change, SHA-256 of both ends), the same options and the same version
of the program. Nothing decrypted is stored, nor anything from a pipe, a growing or a compressed file. All indexes together have
a size limit.
"""

import hashlib
import json
import os
import pickle
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import kcap
from kcap.capture.paths import expand
from kcap.folders import cache_folder
from kcap.limits import INDEXES_BYTES
from kcap.tui import conclusions, report_cache
from kcap.tui.notes import identity
from kcap.tui.reader_main import ReaderStatus, ReadRequest
from kcap.tui.spill import OTHERS, PROFILES, RESOLVED, main_path, pickled, read_file, unpickled
from kcap.tui.value_codes import CODES, VALUES

PREFIX: Final = "index-"
STATUS: Final = "status.pickle"
"""Last message of the reading process; its presence marks a complete folder."""
FILES: Final = (STATUS, PROFILES, *(f"{name}.arrow" for name in ("exchanges", RESOLVED, CODES, VALUES, *OTHERS)))
PARTS: Final = {
    "conclusions": os.path.join("conclusions", conclusions.NAME), "partitions": os.path.join("partitions", "partitions.arrow"),
}  # fmt: skip
"""Results of separate passes, by name, with the file that each writes."""


def key_of(order: ReadRequest) -> str | None:
    """The name of the index of some captures; None if none is stored."""
    if not order.large:
        return None
    try:
        files = [(os.path.abspath(path), os.stat(path)) for path in expand(list(order.paths))]
    except OSError:
        return None
    if (found := identity(order.paths)) is None:
        return None
    wanted = asdict(replace(order, folder="")) | {
        "files": [(path, status.st_size, status.st_mtime_ns) for path, status in files], "ends": found, "program": program(),
    }  # fmt: skip
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:32]


def program() -> str:
    """A digest that distinguishes versions of this program: names, sizes and times of its modules."""
    root = Path(kcap.__file__).parent
    modules = sorted((str(path.relative_to(root)), path.stat()) for path in root.rglob("*.py"))
    text = repr([(name, status.st_size, status.st_mtime_ns) for name, status in modules])
    return hashlib.sha256(text.encode()).hexdigest()


def opened(key: str) -> tuple[str, ReaderStatus] | None:
    """Folder and last message of an index; None if there is none, or if other users can access it."""
    folder = cache_folder() / f"{PREFIX}{key}"
    try:
        owned = folder.lstat()
        if not stat.S_ISDIR(owned.st_mode) or owned.st_uid != os.getuid() or owned.st_mode & 0o077:
            return None
        status = unpickled(str(folder / STATUS))
        os.utime(folder)
    except (OSError, ValueError, EOFError, pickle.UnpicklingError, AttributeError, ImportError):
        return None
    return (str(folder), status) if isinstance(status, ReaderStatus) else None


def keep(order: ReadRequest, key: str, folder: str, status: ReaderStatus) -> bool:
    """Makes an index of a folder after reading, by moving it; returns whether it did."""
    whole = status.over and status.error is None and not (status.stopped or status.failed or status.spools or status.following)
    if not whole or status.mark is None or _decrypted(folder) or key_of(order) != key:
        return False
    target = cache_folder() / f"{PREFIX}{key}"
    try:
        for path in Path(folder).iterdir():
            if path.is_dir() and path.name not in (*PARTS, report_cache.FOLDER):
                shutil.rmtree(path)
            elif path.is_file() and path.name not in FILES:
                path.unlink()
        pickled(os.path.join(folder, STATUS), status)
        if target.exists():
            return False
        os.rename(folder, target)
    except OSError:
        return False
    sweep(target)
    return True


def add(index: str, folder: str) -> None:
    """Adds the results of later passes and of views, made in another folder, to an index."""
    report_cache.add(index, folder)
    for name, made in PARTS.items():
        if os.path.exists(os.path.join(folder, made)) and not os.path.exists(os.path.join(index, name)):
            try:
                os.rename(os.path.join(folder, name), os.path.join(index, name))
            except OSError:
                return


def _decrypted(folder: str) -> bool:
    """Whether exchanges of encrypted connections are among the rows."""
    import pyarrow.compute as pc

    found = pc.any(read_file(main_path(folder, "exchanges")).column("tls"))
    return bool(found.as_py())


def sweep(keep: Path) -> None:
    """Removes the least recently opened indexes until all are within the size limit."""
    found = sorted(_indexes(), key=lambda one: (one[0] == keep, one[1]))
    left = sum(size for _, _, size in found)
    for folder, _, size in found:
        if left <= INDEXES_BYTES:
            return
        shutil.rmtree(folder, ignore_errors=True)
        left -= size


def _indexes() -> Iterator[tuple[Path, float, int]]:
    """Folder, time of the last opening and bytes of each index."""
    for folder in cache_folder().glob(f"{PREFIX}*"):
        try:
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            yield folder, folder.stat().st_mtime, size
        except OSError:
            continue
