"""All tables of a capture as Parquet, in folders by date, hour and broker, for SQL at any scale.

usage: python -m spark_jobs.ingest --input PATH... --output FOLDER [--records] [--set NAME] [-Y FILTER]
       spark-submit spark_jobs/ingest.py ...

Law: a set is complete if its marker exists; writing the same set again replaces that set and nothing else.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.standard_streams import say_lines
from kcap.columns import PAYLOADS, SCHEMA_VERSION, TABLES
from kcap.errors import OutputError, UsageError
from kcap.inputs import refuse_input
from kcap.reports.versions.saved import MARKS, packed, set_of
from kcap.reports.versions.saved import place_of as versions_at
from spark_jobs.capture import SparkCapture
from spark_jobs.files import DONE, first_line, is_remote, local, place_of, sink_at
from spark_jobs.job import JobInput, job, main
from spark_jobs.reports import Saved
from spark_jobs.scan import persisted
from spark_jobs.table_rows import PROFILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_BROKER: Final = ("exchanges", "partitions", "connections")
"""Tables in folders by date, hour and broker."""
CONTROL: Final = "control_records"
"""Column that the report `topics` subtracts from the records that were read."""
ROWS_PER_FILE: Final = 2_000_000
TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"


def set_name(paths: Sequence[str]) -> str:
    """The name of the set of some paths: the same paths give the same name."""
    requested = sorted(path if is_remote(path) else os.path.abspath(local(path)) for path in paths)
    return blake2b("\n".join(requested).encode(), digest_size=8).hexdigest()


def placed(frame: "DataFrame", table: str, servers: "DataFrame") -> "DataFrame":
    """Rows with the columns that name their folders: date and hour in UTC, address of the broker."""
    from pyspark.sql import functions as sql

    if table not in BY_BROKER:
        return frame
    time: Any = sql.timestamp_micros(sql.expr("first_ns div 1000")) if table == "connections" else frame.time
    found = frame.withColumn("date", sql.to_date(time)).withColumn("hour", sql.hour(time))
    if "server_ip" not in frame.columns:
        found = found.join(servers, "connection")
    found = found.withColumn("broker", sql.concat_ws("_", sql.translate("server_ip", ":", "-"), "server_port"))
    return found.select(*frame.columns, "date", "hour", "broker").hint("rebalance", "date", "hour", "broker")


def save(frame: "DataFrame", folder: str, table: str) -> int:
    """Writes a table of a set; returns its number of rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    counted = Observation()
    writer = frame.observe(counted, sql.count(sql.lit(1)).alias("rows")).write.mode("overwrite")
    writer = writer.option("maxRecordsPerFile", ROWS_PER_FILE).option("compression", "zstd")
    if table in BY_BROKER:
        writer = writer.partitionBy("date", "hour", "broker")
    writer.parquet(folder)
    return int(counted.get["rows"])


def folder_of(output: str, table: str, name: str) -> str:
    return f"{output}/{table}/set={name}"


def marks(output: str, name: str) -> tuple[str, str]:
    """The marker files of a finished set and of a folder of sets."""
    return f"{output}/{MARKS}/{name}.json", f"{output}/{DONE}"


def refuse(given: JobInput, options: dict[str, Any]) -> None:
    """Raises UsageError for an output folder that is an input, or in which an input would be replaced."""
    if given.output is None:
        return
    output, name = given.output.rstrip("/"), options["name"] or set_name(given.paths)
    for path in (output, *marks(output, name), versions_at(output, name)):
        refuse_input(path)
    for table in TABLES:
        refuse_input(folder_of(output, table, name), folder=True)


def unmark(output: str, name: str) -> None:
    """Removes the marker of a set that is about to be written again."""
    path = marks(output, name)[0]
    if not is_remote(output):
        with suppress(FileNotFoundError):
            os.remove(local(path))
        return
    system, inner = place_of(path)
    with suppress(FileNotFoundError):
        system.delete_file(inner)


def mark(output: str, name: str, facts: dict[str, Any]) -> None:
    """Writes the marker of a finished set.

    Raises OutputError if it cannot be written.
    """
    data = (json.dumps(facts, indent=1) + "\n").encode()
    for path, text in zip(marks(output, name), (data, b"")):
        write(path, text)


def write(path: str, data: bytes) -> None:
    """Writes a file beside the tables, and creates its folders. Raises OutputError if that fails."""
    try:
        if is_remote(path):
            system, inner = place_of(path)
            system.create_dir(inner.rpartition("/")[0])
        else:
            os.makedirs(os.path.dirname(local(path)), exist_ok=True)
        with sink_at(path) as sink:
            sink.write(data)
    except OSError as error:
        raise OutputError(f"{path}: {first_line(error)}") from None


def run(spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, records: bool, name: str | None) -> int:
    """Write all tables of captures as Parquet, in folders by set, date, hour and broker."""
    if given.output is None:
        raise UsageError("no output given; name a folder or a URI with --output")
    if isinstance(source, Saved):
        raise UsageError(f"{source.folder} is what ingest wrote, no capture")
    output, name = given.output.rstrip("/"), name or set_name(given.paths)
    spark.conf.set(TIMESTAMPS, "TIMESTAMP_MICROS")
    unmark(output, name)
    columns = {
        table: [column.name for column in TABLES[table] if table != "records" or column.name not in PAYLOADS]
        for table in TABLES
        if records or table != "records"
    }
    columns["partitions"].append(CONTROL)
    tables = source.tables(columns, given.only, profiles=True)
    profiles = tables.pop(PROFILES)
    servers = persisted(tables["connections"].select("connection", "server_ip", "server_port"), large=False)
    rows: dict[str, int] = {}
    for table, frame in tables.items():
        rows[table] = save(placed(frame, table, servers), folder_of(output, table, name), table)
        say_lines(f"{table}: {rows[table]:,} rows")
        print(f"{table}\t{rows[table]}")
    servers.unpersist()
    files = [file.name for file in source.scanned.readable]
    every = [file.name for file in source.scanned.files]
    write(versions_at(output, name), packed(set_of(source.merged_profiles(profiles), source.facts(), every)))
    mark(
        output,
        name,
        {"set": name, "schema_version": SCHEMA_VERSION, "input": list(given.paths), "captures": files, "rows": rows},
    )
    return 0


command = job("ingest", ("parquet",), refuse=refuse)(run)
command.params += [
    click.Option(["--records"], is_flag=True, help="Also write the table records: a row per record, without keys and values."),
    click.Option(
        ["--set", "name"], metavar="NAME", help="Name of the set, which replaces an earlier one. Default: from the input."
    ),
]

if __name__ == "__main__":
    sys.exit(main(command))
