"""Compiles the SQL of reports with their default parameters, so that the first run of each is as quick as later ones. The SQL
of rules comes with kcap (`plans.SHIPPED`).

Run it as `python -m kcap.reports.warm_up`, as `setup` does. In: nothing. Out: files in the user's cache folder (`plans`).
"""

import os
import tempfile
from importlib import import_module
from typing import Final

from kcap.reports.definition import ReportRequest
from kcap.reports.run import run
from kcap.reports.source import ReportInput

REPORTS: Final = ("stats", "latency", "slow", "throttle", "errors", "topics", "clients")
EMPTY: Final = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
"""A pcap file without packets. Its tables have the columns of any capture."""


def warm_up() -> None:
    """Runs every report over a capture without packets. Raises OSError if no temporary file can be written."""
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder:
        path = os.path.join(folder, "empty.pcap")
        with open(path, "wb") as file:
            file.write(EMPTY)
        for name in REPORTS:
            run(import_module(f"kcap.reports.{name}").REPORT, ReportInput([path]), ReportRequest())


if __name__ == "__main__":
    warm_up()
