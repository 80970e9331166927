"""Entry point of the Spark job `throttle`: `python -m spark_jobs.throttle --help`, `spark-submit spark_jobs/throttle.py`."""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import JOBS

run = JOBS["throttle"]

if __name__ == "__main__":
    sys.exit(main(run))
