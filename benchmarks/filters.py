"""Measures what a filter on header columns saves: CPU time of `kcap rows` with and without it, and the share of bodies decoded.

usage: python benchmarks/filters.py BIG.pcap [--rounds 3]

Each line has a filter, the requested columns, the share of rows that pass and of bodies that are decoded, CPU seconds with the
filter as the median of the rounds, the same without a filter, and their ratio. Runs of both alternate; output is discarded.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kcap.capture_pass import CapturePass
from kcap.filter.parse import parse
from kcap.table.builder import Table

FEW = "time,api,latency_ns,error_code"
CASES = (
    ("api == Metadata", FEW),
    ("api == Metadata", None),
    ("client_port == 1", FEW),
    ("client_port == 1", None),
    ("latency > 100ms and error != NONE", FEW),
)


def cpu(arguments: list[str]) -> float:
    """CPU seconds of a run of kcap."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "kcap", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shares(path: str, text: str, columns: str | None) -> tuple[float, float]:
    """Share of rows that pass, and share of bodies that are decoded."""
    reading = CapturePass([path])
    bodies = decoded = 0
    take = reading._take

    def counted() -> object:
        nonlocal bodies, decoded
        batch = take()
        bodies, decoded = bodies + len(batch.bodies.dense), decoded + len(batch.bodies.projection)
        return batch

    reading._take = counted  # type: ignore[method-assign,assignment]
    table = Table(lambda: reading, "exchanges", columns and columns.split(","), only=parse(text))
    passed = sum(batch.num_rows for batch in table.record_batches())
    return passed / max(1, reading.rows), decoded / max(1, bodies)


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("capture")
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "out.parquet"))
        base = ["rows", asked.capture, "--jobs", "1", "-q", "-o", out]
        cpu(base)
        for text, columns in CASES:
            some = [] if columns is None else ["--columns", columns]
            pairs = [(cpu([*base, *some, "-Y", text]), cpu([*base, *some])) for _ in range(asked.rounds)]
            with_it, without = (statistics.median(times) for times in zip(*pairs))
            passed, decoded = shares(asked.capture, text, columns)
            print(
                f"{text:36} {'4 columns' if columns else 'all columns':12} rows {passed:6.1%}  bodies decoded {decoded:6.1%}  "
                f"{with_it:5.2f} s, {without:5.2f} s without: {with_it / without:.2f}"
            )


if __name__ == "__main__":
    main()
