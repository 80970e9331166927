"""Entry point of the Spark job `topics`: `python -m spark_jobs.topics --help`, `spark-submit spark_jobs/topics.py`."""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import JOBS

run = JOBS["topics"]

if __name__ == "__main__":
    sys.exit(main(run))
