"""Compares Spark with the command line on one capture: CPU, wall time, bytes in the shuffle, memory, and whether every row is
there.

usage: python benchmarks/spark.py BIG.pcap [--cores 1,2] [--rounds 2] [--partitions N] [--split-bytes N] [--columns A,B]
                                  [--ship references|packets] [--report latency]

Each run is a separate process group, whose processes are watched: CPU is that of all of them, and `work` excludes the JVM's
start; the lowest of the rounds counts. `shuffle` is what is partitioned: through files on one machine, through Spark's shuffle
on several. Independent processes cost more side by side than alone (they share caches, memory and the clock); that share
belongs to the machine. The counts are compared with BIG.pcap.json if it exists, else with those of the command line. A capture
that the page cache evicts during a run is read from disk again: keep it in memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
PROGRAM = """
import json, pathlib, sys, time
import spark_jobs
kept = {}
job = json.loads(sys.argv[1])
spark = spark_jobs.session("benchmark", **{"spark.master": f"local[{job['cores']}]", "spark.eventLog.enabled": "true",
                           "spark.eventLog.dir": "file://" + job["log"], "spark.eventLog.compress": "false"})
spark.range(1).count()
print(json.dumps({"ready": time.time()}), flush=True)
given = {name: job[name] for name in ("split_bytes", "partitions", "ship")}
if job["report"]:
    from kcap.reports.definition import Asked
    from spark_jobs.reports import run_report
    made = run_report(spark_jobs.open_capture(spark, job["capture"], **given), job["report"], Asked())
    rows = len(made["rows"])
else:
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql
    capture, seen = spark_jobs.open_capture(spark, job["capture"], **given), Observation()
    frame = capture.table("exchanges", job["columns"])
    frame.observe(seen, sql.count(sql.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    rows = seen.get["rows"]
    for path in pathlib.Path(capture.scanned.folder or "/nowhere").rglob("*"):
        kept[path.parent.name] = kept.get(path.parent.name, 0) + path.stat().st_size
print(json.dumps({"done": time.time(), "rows": rows, "kept": kept}), flush=True)
spark.stop()
"""


class Watch:
    """CPU and memory of a process group, as long as its members live."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.cpu: dict[int, float] = {}
        self.peak: dict[int, int] = {}
        self.name: dict[int, str] = {}

    def look(self) -> None:
        """Takes one sample."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                text = Path("/proc", entry, "stat").read_text(encoding="utf-8")
            except OSError:
                continue
            name, _, rest = text.partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[3]) != self.group:  # the session
                continue
            pid = int(entry)
            self.cpu[pid] = (int(fields[11]) + int(fields[12])) / TICKS
            self.peak[pid] = max(self.peak.get(pid, 0), int(fields[21]) * PAGE_KB)
            self.name[pid] = name

    def total(self) -> float:
        """CPU seconds of all so far."""
        return sum(self.cpu.values())

    def of(self, part: str) -> float:
        """CPU seconds of the processes whose name contains a word."""
        return sum(seconds for pid, seconds in self.cpu.items() if part in self.name[pid])

    def largest(self, part: str) -> float:
        """MB of the largest process whose name contains a word."""
        return max((kb for pid, kb in self.peak.items() if part in self.name[pid]), default=0) / 1024


def spark_run(capture: str, cores: int, options: argparse.Namespace) -> dict[str, Any]:
    """One run on Spark."""
    with tempfile.TemporaryDirectory() as log:
        job = {"capture": capture, "cores": cores, "log": log, "split_bytes": options.split_bytes, "report": options.report,
               "partitions": options.partitions, "ship": options.ship,
               "columns": options.columns.split(",") if options.columns else None}  # fmt: skip
        start = time.time()
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(job)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        watch, ready_cpu, ready_java = Watch(child.pid), 0.0, 0.0
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        said: dict[str, Any] = {}
        while child.poll() is None:
            watch.look()
            for line in child.stdout:
                said |= json.loads(line)
                if "ready" in said and not ready_cpu:
                    ready_cpu, ready_java = watch.total(), watch.of("java")
            time.sleep(0.1)
        for line in child.stdout:
            said |= json.loads(line)
        if child.returncode:
            assert child.stderr is not None
            raise SystemExit(child.stderr.read()[-2000:])
        events = [json.loads(line) for path in Path(log).rglob("*") if is_log(path) for line in path.open(encoding="utf-8")]
    tasks = [
        event["Task Metrics"] for event in events if event.get("Event") == "SparkListenerTaskEnd" and "Task Metrics" in event
    ]
    return {
        "wall_s": said["done"] - said["ready"], "start_s": said["ready"] - start, "cpu_s": watch.total(),
        "work_cpu_s": watch.total() - ready_cpu, "rows": said["rows"],
        "java_cpu_s": watch.of("java") - ready_java, "executor_s": sum(task["Executor Run Time"] for task in tasks) / 1000,
        "shuffled": sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
        + said["kept"].get("packets", 0),
        "rows_bytes": said["kept"].get("rows", 0),
        "python_mb": watch.largest("python"), "java_mb": watch.largest("java"),
    }  # fmt: skip


def is_log(path: Path) -> bool:
    """Whether a file has Spark's events; checksums and empty markers are beside them."""
    return path.is_file() and path.suffix != ".crc" and path.stat().st_size > 0


def cli_run(capture: str, columns: str | None, report: str | None) -> tuple[float, float]:
    """Wall and CPU seconds of `kcap rows` to Parquet, or of a report."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [".venv/bin/kcap", "rows", capture, "--jobs", "1", "-o", str(Path(folder, "rows.parquet"))]
        command += ["--columns", columns] if columns else []
        if report:
            command = [".venv/bin/kcap", report, capture, "--format", "json", "-o", str(Path(folder, "report.json"))]
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit("kcap failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--split-bytes", type=int)
    parser.add_argument("--ship", default="auto")
    parser.add_argument("--columns", help="all of them else")
    parser.add_argument("--report", help="a report instead of rows")
    options = parser.parse_args()
    size = Path(options.capture).stat().st_size
    wall, cpu = min(cli_run(options.capture, options.columns, options.report) for _ in range(options.rounds))
    print(f"kcap {options.report or 'rows -o Parquet'}: {wall:.1f} s, {cpu:.1f} CPU s, {size / cpu / 1e6:.0f} MB a CPU second")
    known = Path(options.capture + ".json")
    truth = json.loads(known.read_text(encoding="utf-8")).get("exchanges") if known.exists() and not options.report else None
    first: dict[str, Any] | None = None
    for cores in map(int, options.cores.split(",")):
        runs = [spark_run(options.capture, cores, options) for _ in range(options.rounds)]
        best = min(runs, key=lambda run: run["work_cpu_s"])
        first = first or best
        wall = min(run["wall_s"] for run in runs)
        print(
            f"local[{cores}]: {wall:.1f} s behind a start of {best['start_s']:.1f} s, {best['work_cpu_s']:.1f} CPU s of work "
            f"({best['java_cpu_s']:.1f} of the JVM), "
            f"{best['executor_s']:.1f} s in tasks, {size / best['work_cpu_s'] / 1e6:.0f} MB a CPU second "
            f"({cpu / best['work_cpu_s']:.2f} of kcap's), shuffle {best['shuffled'] / size:.1%} of the capture, "
            f"rows that wait {best['rows_bytes'] / size:.0%}, "
            f"largest Python worker {best['python_mb']:.0f} MB, JVM {best['java_mb']:.0f} MB, {best['rows']:,} rows"
            + ("" if truth is None else f" of {truth:,}" + ("" if truth == best["rows"] else " WRONG"))
        )
        if best is not first:
            growth, faster = best["work_cpu_s"] / first["work_cpu_s"] - 1, first["wall_s"] / wall
            with ThreadPoolExecutor(cores) as pool:
                beside = min(pool.map(lambda _: cli_run(options.capture, options.columns, options.report)[1], range(cores)))
            print(
                f"  against local[{options.cores.split(',')[0]}]: CPU {growth:+.0%}, {faster:.2f} times as fast; "
                f"{cores} kcap side by side: CPU of each {beside / cpu - 1:+.0%}"
            )


if __name__ == "__main__":
    main()
