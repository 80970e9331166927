"""Entry point of the Spark job `diff`: `python -m spark_jobs.diff --help`, `spark-submit spark_jobs/diff.py`."""

import sys

from spark_jobs.findings_job import JOBS
from spark_jobs.job import main

run = JOBS["diff"]

if __name__ == "__main__":
    sys.exit(main(run))
