"""The report `topics` on Spark: who writes and reads which topic, how much, how far behind.

usage: python -m spark_jobs.topics --input PATH... [--output PATH] [--by A,B] [-Y FILTER] [--format json|csv|parquet|delta]
       spark-submit spark_jobs/topics.py ...
"""

import sys

from spark_jobs.job import main
from spark_jobs.report_job import report_job

run = report_job("topics")

if __name__ == "__main__":
    sys.exit(main(run))
