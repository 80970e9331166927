"""The number of processes for reading a capture, from the free processors and the size of the capture.

In: the user's `--jobs`, paths. Out: 1 or 2. Law: the number of processes changes only speed.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kcap.inputs import STANDARD as STANDARD_INPUT
from kcap.limits import JOBS_LEAST_BYTES, JOBS_MAX

AUTO: Final = 0
"""Value of `Options.jobs` for as many processes as there are free processors, if the capture is large enough."""
CGROUPS: Final = Path("/sys/fs/cgroup")
OWN_GROUP: Final = Path("/proc/self/cgroup")


def free_cores(root: Path = CGROUPS, own: Path = OWN_GROUP) -> int:
    """Number of processors that this process may use: those of its affinity, and no more than the quota of its control group
    and of the groups above it (cgroups version 2, `cpu.max`: microseconds per period)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        place = own.read_text(encoding="ascii").partition("0::")[2].split("\n")[0].strip("/")
    except (OSError, ValueError):
        return count
    group = root / place
    for folder in (group, *group.parents):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            quota = period = "max"
        if quota != "max":
            count = min(count, max(1, int(quota) // int(period)))
        if folder == root:
            break
    return count


def processes(paths: Sequence[str], jobs: int) -> int:
    """Number of processes that read these files. With AUTO, a capture below JOBS_LEAST_BYTES is read by one, since starting a
    second one takes longer than it saves. A pipe is read by one, because only one process can read its bytes, and only once."""
    if jobs == 1 or STANDARD_INPUT in paths or not all(map(os.path.isfile, paths)):
        return 1
    if jobs == AUTO:
        jobs = free_cores() if sum(map(os.path.getsize, paths)) >= JOBS_LEAST_BYTES else 1
    return min(jobs, JOBS_MAX) if jobs > 1 and can_start() else 1


def can_start() -> bool:
    """Whether this Python can start another process and share memory with it."""
    import socket

    return bool(sys.executable) and not getattr(sys, "frozen", False) and hasattr(socket, "send_fds")
