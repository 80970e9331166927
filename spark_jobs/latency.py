"""The report `latency` on Spark: how long answers took, and what the time was spent on.

usage: python -m spark_jobs.latency --input PATH... [--output PATH] [--by A,B] [-Y FILTER] [--format json|csv|parquet|delta]
       spark-submit spark_jobs/latency.py ...
"""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import report_job

run = report_job("latency")

if __name__ == "__main__":
    sys.exit(main(run))
