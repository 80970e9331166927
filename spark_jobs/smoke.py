"""A small job on real captures that verifies that Spark works here and gives the same results as the command line.

usage: python -m spark_jobs.smoke [FILE...]

Prints one line per check. Exits with 0 if all pass, with 1 if one fails.
"""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import kcap
from kcap.errors import KcapError
from kcap.reports.definition import ReportRequest, report_of
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from spark_jobs.capture import SparkCapture, open_capture
from spark_jobs.reports import run_report
from spark_jobs.spark_session import session

if TYPE_CHECKING:
    import pyarrow as pa

PCAPS: Final = Path(__file__).resolve().parent.parent / "pcaps"
INPUTS: Final = [
    [PCAPS / name for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")],
    [PCAPS / "node-platformatic.pcap"],
]
"""A rotated set, whose connections span files, and a single file."""
SPLIT: Final = 16 << 10
"""Bytes of a range: so small that small captures have several."""
SHARDS: Final = 3


def rows_of(table: "pa.Table") -> Counter[str]:
    """The rows in an order that does not depend on how they were built."""
    found: list[dict[str, Any]] = table.to_pylist()
    return Counter(map(repr, found))


def same_rows(capture: SparkCapture, paths: list[str], table: str) -> bool:
    """Whether a table has the rows that a single process gives."""
    wanted = kcap.open(*paths).table(table).to_arrow()
    found = capture.table(table).toArrow().select(wanted.column_names)
    same = rows_of(wanted) == rows_of(found)
    print(
        f"{Path(paths[0]).name}: {table}: {found.num_rows} rows{'' if same else f', and kcap has others ({wanted.num_rows})'}"
    )
    return same


def same_report(capture: SparkCapture, paths: list[str], name: str) -> bool:
    """Whether a report has the rows that a single process gives."""
    wanted, found = run(report_of(name), ReportInput(paths), ReportRequest()), run_report(capture, name, ReportRequest())
    found["captures"] = sorted(found["captures"])
    wanted["captures"] = sorted(wanted["captures"])
    print(f"{Path(paths[0]).name}: {name}: {len(found['rows'])} rows{'' if wanted == found else ', and kcap says otherwise'}")
    return wanted == found


def main(arguments: list[str]) -> int:
    """Runs the checks; returns the exit code."""
    start, good = time.monotonic(), True
    try:
        spark = session("kcap smoke", master="local[2]", sql_shuffle_partitions="2")
    except KcapError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        for paths in [arguments] if arguments else [list(map(str, paths)) for paths in INPUTS]:
            capture = open_capture(spark, paths[::-1], SPLIT, SHARDS)
            good &= same_rows(capture, paths, "exchanges")
            good &= same_rows(capture, paths, "connections")
            good &= same_report(capture, paths, "latency")
    finally:
        spark.stop()
    print(f"{'all the same' if good else 'not the same'} after {time.monotonic() - start:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
