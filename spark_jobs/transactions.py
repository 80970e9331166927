"""Entry point of the Spark job `transactions`: `python -m spark_jobs.transactions`, or `spark-submit` with this file."""

import sys

from spark_jobs.findings_job import JOBS
from spark_jobs.job import main

run = JOBS["transactions"]

if __name__ == "__main__":
    sys.exit(main(run))
