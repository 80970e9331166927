"""Entry point of the Spark job `errors`: `python -m spark_jobs.errors --help`, `spark-submit spark_jobs/errors.py`."""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import JOBS

run = JOBS["errors"]

if __name__ == "__main__":
    sys.exit(main(run))
