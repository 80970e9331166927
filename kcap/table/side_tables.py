"""The tables besides exchanges: connections, captures, weirds.

In: what the analyzer and the readers say. Out: record batches of the asked-for columns. Law: as `kcap.columns` declares them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa

from kcap.analyzer import ClosedConnection
from kcap.columns import Column
from kcap.facts.tracker import ConnectionFacts
from kcap.model import REF_FILE_SHIFT, CaptureFile
from kcap.table.schema import TYPES, arrow_schema
from kcap.weird import Weird

FACT_COLUMNS: Final[dict[str, Callable[[ConnectionFacts], str | None]]] = {
    "software_name": lambda told: told.software[0] if told.software else None,
    "software_version": lambda told: told.software[1] if told.software else None,
    "sasl_mechanism": lambda told: told.mechanism,
    "principal": lambda told: told.principal,
}
"""Columns of `connections` that exchanges tell."""
NOT_SAID: Final[dict[str, object]] = {"bool": False, "int64": 0}
"""What a column that may not be null says where nothing was said."""


def batch_of(table: str, columns: Sequence[Column], rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    """Rows by column name as a record batch."""
    arrays = []
    for column in columns:
        default = None if column.nullable else NOT_SAID.get(column.type)
        values = [default if (value := row.get(column.name)) is None else value for row in rows]
        arrays.append(pa.array(values, TYPES[column.type]))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table, columns))


def connection_rows(
    closed: Iterable[ClosedConnection], files: Sequence[CaptureFile], known: Callable[[str], ConnectionFacts] | None = None
) -> list[dict[str, object]]:
    """Rows of `connections`; `known` says what the exchanges of a connection told of it."""
    rows = []
    for connection in closed:
        row = connection.values | {"capture": files[connection.ref >> REF_FILE_SHIFT].name}
        if known is not None:
            told = known(str(row["connection"]))
            row |= {name: pick(told) for name, pick in FACT_COLUMNS.items()}
        rows.append(row)
    return rows


def capture_rows(files: Iterable[CaptureFile]) -> list[dict[str, object]]:
    """Rows of `captures`."""
    return [
        {
            "capture": file.name,
            "path": file.path,
            "size": file.size,
            "format": file.format,
            "link_types": sorted(file.links),
            "snaplen": file.snaplen,
            "first_ns": file.first_ns,
            "last_ns": file.last_ns,
            "packets": file.packets,
            "packet_bytes": file.packet_bytes,
            "cut_packets": file.cut_packets,
            "kernel_drops": file.kernel_drops,
            "complete": file.complete,
        }
        for file in files
    ]


def weird_rows(sightings: Iterable[tuple[Weird, int]], files: Sequence[CaptureFile]) -> list[dict[str, object]]:
    """Rows of `weirds`: those of a connection have a place where one was told."""
    return [
        {
            "kind": str(weird.kind),
            "connection": weird.connection,
            "capture": files[weird.file].name if weird.packet or weird.connection is None else None,
            "packet": weird.packet or None,
            "position": weird.position if weird.packet else None,
            "detail": weird.detail,
            "count": count,
        }
        for weird, count in sightings
    ]
