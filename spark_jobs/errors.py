"""The report `errors` on Spark: which errors brokers answered with, to whom, how often.

usage: python -m spark_jobs.errors --input PATH... [--output PATH] [--by A,B] [-Y FILTER] [--format json|csv|parquet|delta]
       spark-submit spark_jobs/errors.py ...
"""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import report_job

run = report_job("errors")

if __name__ == "__main__":
    sys.exit(main(run))
