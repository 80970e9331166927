"""Entry point of the Spark job `latency`: `python -m spark_jobs.latency --help`, `spark-submit spark_jobs/latency.py`."""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import JOBS

run = JOBS["latency"]

if __name__ == "__main__":
    sys.exit(main(run))
