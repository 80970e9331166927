"""The spill folder of the terminal UI, which is made for one process and removed with it.

In: the environment (XDG Base Directory Specification). Out: paths. Law: folders that a dead process left behind are removed by
the next one.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from kcap.folders import cache_folder

PREFIX: Final = "spill-"


def spill_folder() -> str:
    """A new folder that only this user can read; in the folder for temporary files if the cache cannot be written."""
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
    """Whether a process with that number exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
