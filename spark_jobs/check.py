"""Entry point of the Spark job `check`: `python -m spark_jobs.check --help`, `spark-submit spark_jobs/check.py`."""

import sys

from spark_jobs.findings_job import JOBS
from spark_jobs.job import main

run = JOBS["check"]

if __name__ == "__main__":
    sys.exit(main(run))
