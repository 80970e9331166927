"""Compares `kcap rows` with tshark and its Kafka dissector: CPU, wall time and memory on the same file, in alternating runs.

usage: python benchmarks/rows.py BIG.pcap [--ports 9092,9094] [--rounds 3] [--kcap .venv/bin/kcap]

Prints, as medians: packets per CPU second of both, their ratio, exchanges and megabytes per second, peak memory, and the time
until the first row is on standard output. Needs tshark on PATH; without it only kcap's own figures are printed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

FIELDS = (
    "frame.number frame.time_epoch ip.src tcp.srcport ip.dst tcp.dstport kafka.api_key kafka.api_version kafka.correlation_id "
    "kafka.client_id kafka.error kafka.throttle_time kafka.topic_name"
).split()


def timed(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a command, as measured by the operating system."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def first_row(kcap: list[str], capture: str) -> float:
    """Seconds until the first line of rows."""
    start = time.perf_counter()
    with subprocess.Popen(
        [*kcap, "rows", capture, "--format", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        seconds = time.perf_counter() - start
        child.stdout.close()
        child.terminate()
    return seconds


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("--ports", default="9092")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kcap", default=".venv/bin/kcap")
    options = parser.parse_args()
    kcap = options.kcap.split()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "rows.parquet"))
        tshark = ["tshark", "-n", "-r", options.capture, "-Y", "kafka", "-T", "fields"]
        tshark += [x for port in options.ports.split(",") for x in ("-d", f"tcp.port=={port},kafka")]
        tshark += [x for field in FIELDS for x in ("-e", field)]
        # Warms caches and compiles kernels once.
        timed([*kcap, "rows", options.capture, "--jobs", "1", "--format", "parquet", "-o", out])
        for _ in range(options.rounds):
            ours.append(timed([*kcap, "rows", options.capture, "--jobs", "1", "--format", "parquet", "-o", out]))
            if shutil.which("tshark"):
                theirs.append(timed(tshark))
        import pyarrow.parquet as pq

        rows = pq.ParquetFile(out).metadata.num_rows
    said = subprocess.run(
        [*kcap, "rows", options.capture, "--table", "captures", "--format", "jsonl"], capture_output=True, check=True
    )
    packets = sum(json.loads(line)["packets"] for line in said.stdout.splitlines())
    wall, cpu, peak = (statistics.median(x[i] for x in ours) for i in range(3))
    size = os.path.getsize(options.capture) / 1e6
    say = print
    say(f"{packets:,} packets, {rows:,} exchanges, {size:,.0f} MB")
    say(f"kcap:   {packets / cpu:,.0f} packets per CPU s, {rows / wall:,.0f} exchanges/s, {size / wall:,.0f} MB/s")
    say(f"        peak {peak:,.0f} MB")
    say(f"        first row after {statistics.median(first_row(kcap, options.capture) for _ in range(3)):.2f} s")
    if theirs:
        their_cpu = statistics.median(x[1] for x in theirs)
        say(f"tshark: {packets / their_cpu:,.0f} packets per CPU s; kcap does {their_cpu / cpu:.1f} times that")
    else:
        say("tshark is not installed: no ratio")


if __name__ == "__main__":
    main()
