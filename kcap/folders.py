"""The user's folders for data that kcap stores between runs (XDG Base Directory Specification).

In: the environment. Out: paths. If a variable is empty or unset, the specification's default applies.
"""

import os
import tempfile
from pathlib import Path
from stat import S_IRWXG, S_IRWXO, S_ISDIR, S_ISVTX, S_IWOTH


def _folder(variable: str, *default: str) -> Path:
    """`kcap` in a base folder of the specification."""
    return Path(os.environ.get(variable) or os.path.join(os.path.expanduser("~"), *default)) / "kcap"


def cache_folder() -> Path:
    """Folder of data that can be made again ($XDG_CACHE_HOME/kcap)."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """Folder of settings ($XDG_CONFIG_HOME/kcap)."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """Folder of logs and histories ($XDG_STATE_HOME/kcap)."""
    return _folder("XDG_STATE_HOME", ".local", "state")


def private_folder(name: str) -> Path | None:
    """Returns a folder of the cache, created if needed; None if there is none that only this user can change or replace."""
    folder = cache_folder() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, replaced = folder.lstat(), hasattr(os, "geteuid") and shared(folder.parent)
    except OSError:
        return None
    mine = not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & (S_IRWXG | S_IRWXO))
    return folder if mine and not replaced and S_ISDIR(status.st_mode) else None


def shared(place: Path, *owners: int) -> bool:
    """Whether users other than this one, root and `owners` can create or replace files in a folder. Raises OSError."""
    first = place.stat()
    above = (parent.stat().st_mode for parent in place.resolve().parents)
    return (
        bool(first.st_mode & S_IWOTH)
        or first.st_uid not in (0, os.geteuid(), *owners)
        or any(mode & S_IWOTH and not mode & S_ISVTX for mode in above)
    )


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically, readable by this user alone. Another process may be writing the same file. Raises OSError."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise
