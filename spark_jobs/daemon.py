"""The daemon from which Spark forks its Python workers, with the modules that kcap needs already imported.

In: the arguments of `pyspark.daemon`. Out: its workers. Law: workers behave as pyspark's own. They need some two CPU seconds
less to start, mostly because each worker would compile pyspark's modules from a zip.
"""

import os
import sys
from importlib import import_module
from typing import Final

MODULES: Final = (
    "pyspark.worker", "spark_jobs.scan", "kcap.table.row_filter", "kcap.decode.projection_kernels", "kcap.fastpath.engine",
    "kcap.net.segment_kernels",
)  # fmt: skip
"""Modules that workers import to build rows; pyarrow tries to import pandas, so it is included."""
UNTHREADED: Final = "OPENBLAS_NUM_THREADS"
"""Variable that keeps numpy from starting threads on import; a process that forks must have none."""


def plain_first() -> None:
    """Moves folders before zips on the path: Python compiles modules from a zip at each start."""
    sys.path.sort(key=lambda entry: entry.endswith(".zip"))


def load() -> None:
    os.environ.setdefault(UNTHREADED, "1")
    for name in MODULES:
        import_module(name)


def main() -> None:
    """Imports the modules, then runs pyspark's daemon."""
    plain_first()
    load()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
