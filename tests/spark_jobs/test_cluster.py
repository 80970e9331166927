"""A standalone cluster of a master and two workers, whose executors have not installed kcap."""

import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import kcap
from spark_jobs.pack import pack
from spark_jobs.spark_session import ensure_java
from tests.support.java import SHORT_LIVED

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).resolve().parent.parent.parent
ROTATED = ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")
PROGRAM = """
import sys
import pyarrow
from pyspark.sql import SparkSession
import spark_jobs

spark = spark_jobs.session("cluster")
frame = spark_jobs.read_capture(spark, sys.argv[1:], split_bytes=20000, partitions=4)
import json
rows = sorted(map(repr, frame.toArrow().to_pylist()))
def who(batches):
    import importlib.util, os, kcap
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"who": [
            f"{os.getppid()} {kcap.__file__} {importlib.util.find_spec('numba') is None}"] * batch.num_rows})
told = {row.who for row in spark.range(0, 8, 1, 8).mapInArrow(who, "who string").collect()}
print(json.dumps({"rows": rows, "master": spark.sparkContext.master, "told": sorted(told),
                  "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}))
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def python_with(folder: Path, *names: str) -> Path:
    """A Python that has these packages, and no others."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in names:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        origin = Path(found.origin).parent
        for part in (origin, origin.with_name(f"{origin.name}.libs")):
            if part.exists():
                (site / part.name).symlink_to(part)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The master's URL."""
    pyspark = pytest.importorskip("pyspark")
    ensure_java()
    home, folder, port = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("cluster"), free_port()
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
    }  # fmt: skip
    master = f"spark://127.0.0.1:{port}"
    start, children = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"], []

    def run(*arguments: str) -> Path:
        log = folder / f"{len(children)}.log"
        with log.open("w") as sink:
            children.append(subprocess.Popen([start[0], *arguments], env=environment, stdout=sink, stderr=sink, cwd=folder))
        return log

    def wait(log: Path, pattern: str) -> None:
        for _ in range(600):
            if re.search(pattern, log.read_text()):
                return
            time.sleep(0.1)
        raise AssertionError(log.read_text())

    try:
        wait(run(f"{start[1]}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"), "ALIVE")
        for number in range(2):
            work = folder / f"work{number}"
            log = run(
                f"{start[1]}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                "--work-dir", str(work), master,
            )  # fmt: skip
            wait(log, "registered with master")
        yield master
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(30)


def submitted(cluster: str, folder: Path, paths: list[str], *settings: str) -> dict[str, Any]:
    """What the program says when it was sent to the cluster."""
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    home = Path(pytest.importorskip("pyspark").__file__).parent  # Spark's scripts do not find it where the path has a space
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "spark-submit"), "--master", cluster,
            "--conf", f"spark.pyspark.driver.python={sys.executable}",
            "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.sql.session.timeZone=UTC", "--driver-java-options", SHORT_LIVED,
            "--conf", f"spark.executor.extraJavaOptions={SHORT_LIVED}", *settings, str(program), *paths,
        ],
        cwd=folder, env=os.environ | own,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_executors_that_were_sent_kcap(cluster: str, tmp_path: Path, pcaps: Path) -> None:
    """`spark-submit --py-files kcap.zip`: two executors with numpy and pyarrow alone give the rows of one process."""
    archive = tmp_path / "kcap.zip"
    assert pack(str(archive)) > 200
    paths = [str(pcaps / name) for name in ROTATED]
    python = python_with(tmp_path / "bare", "numpy", "pyarrow")
    said = submitted(cluster, tmp_path, paths, "--py-files", str(archive), "--conf", f"spark.pyspark.python={python}")
    assert said["master"] == cluster
    assert said["executors"] == 2
    assert all("kcap.zip" in one and one.endswith("True") for one in said["told"]), said["told"]
    assert said["rows"] == sorted(map(repr, kcap.open(*paths).exchanges().to_arrow().to_pylist()))


def test_executors_that_were_sent_an_environment(cluster: str, tmp_path: Path, pcaps: Path) -> None:
    """`spark-submit --archives env.tar.gz#env`: kcap, numba and the codecs are in it."""
    packages = ("numpy", "pyarrow", "numba", "llvmlite", "cramjam", "lz4", "zstandard", "crc32c", "kcap", "spark_jobs")
    home = python_with(tmp_path / "env", *packages).parent.parent
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as out:
        out.add(home, ".")
    path = str(pcaps / "librdkafka-zstd.pcap")
    archives = ("--archives", f"{tmp_path / 'env.tar.gz'}#env", "--conf", "spark.pyspark.python=./env/bin/python")
    said = submitted(cluster, tmp_path, [path], *archives)
    assert all("/env/" in one and one.endswith("False") for one in said["told"]), said["told"]
    assert said["rows"] == sorted(map(repr, kcap.open(path).exchanges().to_arrow().to_pylist()))
