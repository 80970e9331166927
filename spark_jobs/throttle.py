"""The report `throttle` on Spark: who was throttled, by how much, and whether they kept quiet.

usage: python -m spark_jobs.throttle --input PATH... [--output PATH] [--by A,B] [-Y FILTER] [--format json|csv|parquet|delta]
       spark-submit spark_jobs/throttle.py ...
"""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import report_job

run = report_job("throttle")

if __name__ == "__main__":
    sys.exit(main(run))
