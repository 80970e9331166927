"""What tasks do takes numpy and pyarrow alone, so that executors can be sent kcap as a zip; one that dies is done again."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import kcap
from spark_jobs import PLACES
from tests.spark_jobs.jobs import on_spark

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {forbidden}:
            raise ImportError(name)

sys.meta_path.insert(0, Forbidden())
import pickle
import pyarrow as pa
from kcap.table.table_builders import TableRequest
from spark_jobs.table_rows import Together
from spark_jobs.task_storage import unpacked
from spark_jobs.tasks import CHUNK, PartitionRanges, Reduce
from tests.support.shared import Shared
from kcap.distributed.partitioner import PartitionTask
from kcap.distributed.shard_reader import ShardContext

path = {path!r}
shared = Shared([path], 20_000, 1)
planned = shared.plans[0]
tasks = [PartitionTask(part, shared.files[0], shared.files[0].size, 1) for part in planned.ranges]
numbers = pa.RecordBatch.from_arrays([pa.array(range(len(tasks)), pa.int64())], ["id"])
partitioned = [row for batch in PartitionRanges([path], tasks)([numbers]) for row in batch.to_pylist()]
positions = shared.stitched.positions
chunks = [row | {{"packets": positions[row["unit"]].packets, "before": positions[row["unit"]].latest_ns}}
          for row in partitioned if row["shard"] >= 0]
kinds = {{"shard": pa.int32(), "packets": pa.int64(), "before": pa.int64(), **CHUNK}}
batch = pa.RecordBatch.from_pylist(chunks, pa.schema(kinds))
wanted = Together.of([TableRequest.of("exchanges")])
reduce = Reduce([path], ShardContext(shared.files, 1, shared.stitched.last_ns, True), wanted)
made = [out for out in reduce([batch]) if not out.column("facts")[0].is_valid]
print(sum(rows.num_rows for rows in unpacked(made)))
"""
FORBIDDEN = {
    "numba", "llvmlite", "click", "lark", "re2", "cramjam", "lz4", "zstandard", "crc32c", "cryptography", "dpkt", "pandas",
    "duckdb", "ibis", "rich", "textual", "packaging", "pyspark",
}  # fmt: skip


def test_rows_take_no_other_package(pcaps: Path) -> None:
    """Law: on a machine with numpy and pyarrow only, a shard has its rows."""
    path = str(pcaps / "pipelined.pcap")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(forbidden=FORBIDDEN, path=path)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    import kcap

    assert int(done.stdout) == kcap.open(path).exchanges().to_arrow().num_rows


def test_names_of_the_package_are_no_modules() -> None:
    """`spark_jobs.session` is the function, whatever was imported before."""
    import spark_jobs

    for name, place in PLACES.items():
        assert callable(getattr(spark_jobs, name))
        assert place != f"spark_jobs.{name}"


@on_spark
def test_a_killed_worker_is_made_good(alone: dict[str, Any]) -> None:
    """A Python worker that dies in mid-job: its task runs again, and the rows are right."""
    assert alone["killed"]
    assert alone["again"] == kcap.open(alone["path"]).exchanges().to_arrow().num_rows
