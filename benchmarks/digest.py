"""Measures the digest over a saved table of exchanges: wall time, CPU time and memory of `kcap stats`.

usage: python benchmarks/digest.py ROWS.parquet [--rows 10000000] [--rounds 3] [--kcap .venv/bin/kcap]

ROWS.parquet is the output of `kcap rows FILE --format parquet -o ROWS.parquet`. It is repeated into a temporary file, each copy
with different names of connections and latencies, until there are as many rows as requested.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet


def repeated(source: str, target: Path, rows: int) -> int:
    """Writes the larger table; returns its number of rows."""
    table: Any = parquet.read_table(source)
    done = 0
    with parquet.ParquetWriter(target, table.schema, compression="lz4") as writer:
        while done < rows:
            copy = table.slice(0, min(table.num_rows, rows - done))
            names = pc.binary_join_element_wise(copy["connection"], pa.scalar(f"{done:x}"), "")
            latency = pc.add(copy["latency_ns"], pa.scalar(done % 1009, pa.int64()))
            for name, column in (("connection", names), ("latency_ns", latency)):
                copy = copy.set_column(copy.schema.get_field_index(name), table.schema.field(name), column)
            writer.write_table(copy, row_group_size=1 << 17)
            done += copy.num_rows
    return done


def timed(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a command."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows_file")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kcap", default=".venv/bin/kcap")
    parser.add_argument("--report", default="stats")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "exchanges.parquet"
        rows = repeated(options.rows_file, target, options.rows)
        print(f"{rows:,} exchanges, {target.stat().st_size / 1e6:,.0f} MB of Parquet")
        for _ in range(options.rounds):
            wall, cpu, peak = timed([*options.kcap.split(), options.report, str(target), "--format", "json"])
            print(f"kcap {options.report}: {wall:.2f} s, {cpu:.2f} s of CPU, {peak:,.0f} MB at most")


if __name__ == "__main__":
    main()
