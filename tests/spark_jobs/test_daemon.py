"""Workers are forked from a process that has loaded what they need."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.daemon import MODULES, plain_first

ROOT = Path(__file__).resolve().parent.parent.parent
ALONE = """
import json, os
import spark_jobs.daemon as daemon
daemon.load()
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print(json.dumps(sorted(name for name in names if name != "jemalloc_bg_thd")))
"""


def test_zips_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: all else stays in its order."""
    monkeypatch.setattr(sys, "path", ["", "/a/pyspark.zip", "/b", "/a/py4j.zip", "/c"])
    plain_first()
    assert sys.path == ["", "/b", "/c", "/a/pyspark.zip", "/a/py4j.zip"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc to see threads in")
def test_it_can_be_forked() -> None:
    """Law: what was loaded runs no thread but Arrow's allocator's, which knows of forks."""
    pytest.importorskip("pyspark")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    threads = json.loads(done.stdout)
    assert len(threads) == 1, threads
    assert len(MODULES) > 3


@pytest.mark.spark
@pytest.mark.slow
def test_workers_have_it(alone: dict[str, Any]) -> None:
    """A worker has all in memory as it starts, and pyspark's modules from files."""
    assert alone["was"] == "spark_jobs.scan,kcap.fastpath.engine"
    assert ".zip" not in alone["source"]


def test_pyspark_s_own_workers_do_not_have_it() -> None:
    """So that the test above can fail: the modules that a worker of pyspark imports bring none of kcap along."""
    pytest.importorskip("pyspark")
    program = "import sys, pyspark.daemon, pyspark.worker; print([name for name in sys.modules if 'kcap' in name])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
