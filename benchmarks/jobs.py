"""Compares `kcap rows --jobs 2` with `--jobs 1`: wall time, CPU time of each process, memory, and whether the rows are equal.

usage: python benchmarks/jobs.py BIG.pcap... [--rounds 5] [--args "--table partitions"]

Runs alternate; the line of a capture has the smallest figures of all rounds. `busier` is the CPU time of the busier of the two
processes, a lower bound of the time on two free processors. It is more reliable than the wall time if other programs run too.
Input comes from the page cache; output goes to a file that is discarded.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pyarrow import parquet

RUN = r"""
import json, re, resource, sys
from kcap.cli.main import main
code = main(sys.argv[1:])
own, other = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])  # ru_maxrss counts who started it too
pairs = (own, peak), (other, other.ru_maxrss)
print(json.dumps([code, *([one.ru_utime + one.ru_stime, kb / 1024] for one, kb in pairs)]))
"""
"""Program of a run that reports CPU seconds and peak megabytes of its own process and of the second one."""


class Figures(NamedTuple):
    """Figures of one run, or the smallest of several."""

    wall: float
    first: float
    """CPU seconds of the process that builds rows, or of the only one."""
    second: float
    first_mb: float
    second_mb: float


def measured(capture: str, jobs: int, out: str, more: list[str]) -> Figures:
    """One run. Raises SystemExit if kcap does not exit with 0."""
    command = [sys.executable, "-c", RUN, "rows", capture, "-o", out, "--jobs", str(jobs), *more]
    start = time.perf_counter()
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    wall = time.perf_counter() - start
    code, (first, first_mb), (second, second_mb) = json.loads(run.stdout.splitlines()[-1])
    if code:
        raise SystemExit(f"kcap rows ended with {code}")
    return Figures(wall, first, second, first_mb, second_mb)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", metavar="capture")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--args", default="", help="more arguments of kcap rows")
    options = parser.parse_args()
    for capture in options.captures:
        with tempfile.TemporaryDirectory() as folder:
            outs = {jobs: os.path.join(folder, f"{jobs}.parquet") for jobs in (1, 2)}
            runs: dict[int, list[Figures]] = {1: [], 2: []}
            for _ in range(options.rounds + 1):
                for jobs, out in outs.items():
                    runs[jobs].append(measured(capture, jobs, out, shlex.split(options.args)))
            one, two = (Figures(*map(min, zip(*runs[jobs][1:]))) for jobs in (1, 2))
            same = parquet.read_table(outs[1]).equals(parquet.read_table(outs[2]))
        busier = max(two.first, two.second)
        print(
            f"{Path(capture).name}: wall {one.wall:.2f} -> {two.wall:.2f} s ({one.wall / two.wall:.2f}x); "
            f"CPU {one.first:.2f} -> {two.first:.2f} + {two.second:.2f} s, busier {busier:.2f} s ({one.first / busier:.2f}x); "
            f"memory {one.first_mb:.0f} -> {two.first_mb:.0f} + {two.second_mb:.0f} MB; rows {'equal' if same else 'DIFFER'}"
        )


if __name__ == "__main__":
    main()
