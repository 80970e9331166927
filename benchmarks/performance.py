"""Writes docs/performance.md: the cost of a packet and a row by stage, ratios to tshark, costs of other tables and reports.

usage: python benchmarks/performance.py [--size 300M] [--rounds 3] [--out docs/performance.md]

Every figure is CPU time of all processes, the median of the rounds, on this machine, with the captures in the page cache. If
tshark is missing, its column says so.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from grow import size_of
from rows import FIELDS, timed
from stages import STAGES
from workloads import SHAPES, made

OTHERS = {
    "rows, 12 columns": "--columns time,connection,api,api_version,correlation_id,client_id,latency_ns,error,throttle_time_ms,"
    "request_bytes,response_bytes,topics",
    "rows --table partitions": "--table partitions",
    "connections": "",
    "latency": "",
    "topics": "",
    "errors": "",
    "versions": "",
    "check": "",
}
"""Commands that read the `small` capture, and their options."""
ROOT = Path(__file__).resolve().parent.parent


def by_stage(path: Path) -> dict[str, float]:
    """Microseconds per packet by stage, in a separate process: memory of this one would count as that of its children."""
    command = [sys.executable, str(ROOT / "benchmarks/stages.py"), str(path), "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: float(line[1]) for line in words if line and line[0] in STAGES}


def main() -> None:
    """Runs the benchmarks and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="300M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kcap", default=str(ROOT / ".venv/bin/kcap"))
    parser.add_argument("--out", type=Path, default=ROOT / "docs/performance.md")
    options = parser.parse_args()
    shapes: list[str] = []
    stages: list[str] = []
    reports: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in SHAPES:
            path, out = Path(folder, f"{name}.pcap"), str(Path(folder, "rows.parquet"))
            packets, exchanges = made(name, path, size_of(options.size))
            rows = [options.kcap, "rows", str(path), "--jobs", "1", "-o", out]
            peer = ["tshark", "-n", "-r", str(path), "-Y", "kafka", "-T", "fields", "-d", "tcp.port==9092,kafka"]
            peer += [word for one in FIELDS for word in ("-e", one)]
            timed(rows)
            ours = [timed(rows) for _ in range(options.rounds)]
            theirs = timed(peer)[1] if shutil.which("tshark") else None
            cpu, peak = (statistics.median(one[at] for one in ours) for at in (1, 2))
            megabytes = os.path.getsize(path) / 1e6
            ratio = "no tshark" if theirs is None else f"{theirs / cpu:.1f}"
            figures = (f"{packets:,}", f"{exchanges:,}", f"{cpu:.2f} s", f"{packets / cpu:,.0f}", f"{megabytes / cpu:,.0f}")
            shapes.append(f"| {name} | {' | '.join(figures)} | {ratio} | {peak:.0f} MB |")
            spent = by_stage(path)
            parts = " | ".join(f"{1000 * spent[stage]:,.0f}" for stage in STAGES)
            total = 1000 * sum(spent.values())
            stages.append(f"| {name} | {parts} | {total:,.0f} | {total * packets / exchanges:,.0f} |")
            if name == "small":
                for label, more in OTHERS.items():
                    words = label.split(",")[0].split(" --")[0].split()
                    output = ["-o", out] if words[0] in ("rows", "connections") else []
                    runs = [
                        timed([options.kcap, *words, str(path), "--jobs", "1", *more.split(), *output])
                        for _ in range(options.rounds)
                    ]
                    own = statistics.median(one[1] for one in runs)
                    highest = statistics.median(one[2] for one in runs)
                    reports.append(f"| `{label}` | {own:.2f} s | {own / cpu:.1f} | {highest:.0f} MB |")
            path.unlink()
    heads, processor = " | ".join(STAGES), platform.processor() or platform.machine()
    options.out.write_text(
        f"""# Performance

`benchmarks/performance.py` writes this page; run it to get the figures of your machine. These figures are from {processor},
Python {platform.python_version()}, with captures of {options.size} bytes in the page cache. CPU time is that of all processes,
start-up included.

## `kcap rows` to Parquet, all columns

| shape | packets | exchanges | CPU | packets per CPU second | MB per CPU second | ratio to tshark | peak memory |
|---|---|---|---|---|---|---|---|
{chr(10).join(shapes)}

`benchmarks/workloads.py` describes the shapes. tshark prints {len(FIELDS)} fields of Kafka frames as text.

## Nanoseconds per packet by stage, without start-up

| shape | {heads} | all, per packet | all, per row |
|---|{"---|" * (len(STAGES) + 2)}
{chr(10).join(stages)}

{" ".join(f"`{stage}`: {meaning}." for stage, meaning in STAGES.items())}

## Other tables and reports of the shape `small`

| command | CPU | ratio to `rows` | peak memory |
|---|---|---|---|
{chr(10).join(reports)}
""",
        encoding="utf-8",
    )
    sys.stdout.write(f"{options.out}\n")


if __name__ == "__main__":
    main()
