"""The folders of the terminal UI; the spill folder is made for one process and removed with it.

In: the environment (XDG Base Directory Specification). Out: paths. Law: folders that a dead process left behind are removed by
the next one.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "spill-"


def cache_folder() -> Path:
    """The cache folder of kcap ($XDG_CACHE_HOME/kcap)."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kcap"


def config_folder() -> Path:
    """The settings folder of kcap ($XDG_CONFIG_HOME/kcap)."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "kcap"


def state_folder() -> Path:
    """The state folder of kcap ($XDG_STATE_HOME/kcap), for logs."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "kcap"


def spill_folder() -> str:
    """A new folder, for this user alone; in the folder for temporary files where the cache cannot be written."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        sweep(cache)
        return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=cache)
    except OSError:
        return tempfile.mkdtemp(prefix=f"kcap-{PREFIX}{os.getpid()}-")


def sweep(cache: Path) -> None:
    """Removes the spill folders of dead processes."""
    for folder in cache.glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def alive(process: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
