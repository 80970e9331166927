"""Entry point of the Spark job `groups`: `python -m spark_jobs.groups --help`, `spark-submit spark_jobs/groups.py`."""

import sys

from spark_jobs.findings_job import JOBS
from spark_jobs.job import main

run = JOBS["groups"]

if __name__ == "__main__":
    sys.exit(main(run))
