"""The process that Spark forks its Python workers from, with all that a worker of kcap needs in memory already.

In: what Spark's launcher asks of `pyspark.daemon`. Out: the same. Law: workers are those of pyspark; they start some two CPU
seconds sooner, most of it pyspark's own modules, which Spark would have each worker compile from a zip.
"""

import os
import sys
from importlib import import_module
from typing import Final

MODULES: Final = (
    "pyspark.worker", "spark_jobs.scan", "kcap.table.row_filter", "kcap.decode.projection_kernels", "kcap.fastpath.engine",
    "kcap.net.segment_kernels",
)  # fmt: skip
"""What workers import for rows, with all that these import: pandas among it, which pyarrow looks for."""
UNTHREADED: Final = "OPENBLAS_NUM_THREADS"
"""numpy would start threads for matrices as it is imported; a process that is forked had better have none."""


def plain_first() -> None:
    """Modules before zips: of what is in both, Python compiles the zip's each time."""
    sys.path.sort(key=lambda entry: entry.endswith(".zip"))


def load() -> list[str]:
    """Imports what there is of the modules; those that could not be, such as the compiled ones where there is no numba."""
    os.environ.setdefault(UNTHREADED, "1")
    missing = []
    for name in MODULES:
        try:
            import_module(name)
        except (ImportError, RuntimeError):  # no numba, or no place for its cache: the worker asks again and does without
            missing.append(name)
    return missing


def main() -> None:
    """Loads, then does what pyspark's does."""
    plain_first()
    load()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
