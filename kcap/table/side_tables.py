"""Rows of the tables beside `exchanges` and its parts: connections, captures, weirds, topic_names, brokers, negotiations,
tls_turns.

In: what the analyzer, the readers and the tracker have. Out: rows by column name, and record batches of chosen columns. Law: as
`kcap.columns` declares them; a fact has one row, with the exchange that reported it first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import ClosedConnection, community_id
from kcap.arrays.arrow import joined, take
from kcap.capture.paths import readable
from kcap.columns import Column
from kcap.facts.brokers import Server
from kcap.facts.connection_facts import ConnectionFacts
from kcap.facts.tracker import MetadataTracker
from kcap.fastpath.closed_rows import ALIKE, ClosedRow, gathered, tls_row
from kcap.fastpath.closed_rows import COLUMNS as CONNECTION_COLUMNS
from kcap.fastpath.layout import NONE
from kcap.limits import TURNS_AT_ONCE
from kcap.model import REF_FILE_SHIFT, CaptureFile
from kcap.schema.errors import ERRORS
from kcap.schema.registry import api_name
from kcap.table.schema import TYPES, arrow_schema
from kcap.weird import Weird

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.facts.negotiations import Negotiation

FACT_COLUMNS: Final[dict[str, Callable[[ConnectionFacts], str | None]]] = {
    "software_name": lambda known: known.software[0] if known.software else None,
    "software_version": lambda known: known.software[1] if known.software else None,
    "sasl_mechanism": lambda known: known.mechanism,
    "principal": lambda known: known.principal,
}
"""Columns of `connections` that come from its exchanges."""
DEFAULTS: Final[dict[str, object]] = {"bool": False, "int64": 0}
"""Values of columns that may not be null, where there is none."""


def batch_of(table: str, columns: Sequence[Column], rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    arrays = []
    for column in columns:
        default = default_of(column)
        values = [default if (value := row.get(column.name)) is None else value for row in rows]
        arrays.append(pa.array(values, TYPES[column.type]))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table, columns))


def default_of(column: Column) -> object:
    """What stands in a column where there is no value."""
    return None if column.nullable else DEFAULTS.get(column.type)


def connection_rows(
    closed: Iterable[ClosedConnection],
    files: Sequence[CaptureFile],
    known: Callable[[str], ConnectionFacts] | None = None,
    *,
    community: bool = True,
) -> list[dict[str, object]]:
    """Rows of `connections`; `known` gives the facts of a connection, `community` their community ids."""
    rows = []
    for connection in closed:
        row = connection.values | {"capture": files[connection.ref >> REF_FILE_SHIFT].name}
        if community:
            flow = row["flow"]
            assert isinstance(flow, bytes)
            row["community_id"] = community_id(flow)
        if known is not None:
            facts = known(str(row["connection"]))
            row |= {name: pick(facts) for name, pick in FACT_COLUMNS.items()}
        rows.append(row)
    return rows


def connection_batch(
    closed: Sequence[ClosedConnection],
    columns: Sequence[Column],
    files: Sequence[CaptureFile],
    known: Callable[[str], ConnectionFacts] | None = None,
) -> pa.RecordBatch:
    """Chosen columns of `connections`, in the order of `closed`; `known` gives the facts of a connection."""
    together = [one for one in closed if isinstance(one, ClosedRow)]
    others = [one for one in closed if not isinstance(one, ClosedRow)]
    if not together:
        community = any(column.name == "community_id" for column in columns)
        return batch_of("connections", columns, connection_rows(others, files, known, community=community))
    batch = _joined_batch(together, columns, files, known)
    if not others:
        return batch
    (several,) = joined([batch, connection_batch(others, columns, files, known)], batch.schema)
    single = np.array([not isinstance(one, ClosedRow) for one in closed])
    places = np.where(single, len(together) + np.cumsum(single) - 1, np.cumsum(~single) - 1)
    return pa.RecordBatch.from_arrays([take(column, places) for column in several.columns], schema=several.schema)


def _joined_batch(
    closed: Sequence[ClosedRow],
    columns: Sequence[Column],
    files: Sequence[CaptureFile],
    known: Callable[[str], ConnectionFacts] | None,
) -> pa.RecordBatch:
    """Columns of connections that lived and ended in the fast path, made without their rows."""
    sides = gathered(closed).sides()
    made: dict[str, Any] = {"connection": CONNECTION_COLUMNS["connection"](sides)}
    facts = [] if known is None else [known(uid) for uid in made["connection"]]
    beside: dict[str, Callable[[], list[Any]]] = {
        "capture": lambda: [files[one.ref >> REF_FILE_SHIFT].name for one in closed],
        "community_id": lambda: [community_id(flow) for flow in sides.flows],
    }
    tls = list(map(tls_row, sides.tls)) if any(sides.tls) else []
    arrays = []
    for column in columns:
        name, kind = column.name, TYPES[column.type]
        if name in CONNECTION_COLUMNS:
            values = made[name] if name in made else CONNECTION_COLUMNS[name](sides)
            mask = values == NONE if column.nullable and isinstance(values, np.ndarray) else None
            arrays.append(pa.array(values, kind, mask=mask))
        elif name in beside:
            arrays.append(pa.array(beside[name](), kind))
        elif known is not None and name in FACT_COLUMNS:
            arrays.append(pa.array([FACT_COLUMNS[name](of) for of in facts], kind))
        else:
            value = ALIKE.get(name, default_of(column))
            arrays.append(pa.array([row.get(name, value) for row in tls] or [value] * len(closed), kind))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema("connections", columns))


def turn_batches(closed: Iterable[ClosedConnection], columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    """Rows of `tls_turns`, of connections with turns; one empty batch for none."""
    from kcap.tls.turns import FIELDS, Turns  # for this table alone

    some: list[tuple[dict[str, object], Int64s]] = []
    for connection in closed:
        if isinstance(connection, ClosedRow):  # those never have turns
            continue
        turns = connection.values.get("turns")
        if isinstance(turns, Turns) and len(turns):
            some.append((connection.values, np.frombuffer(turns.done, np.int64).reshape(-1, len(FIELDS))))
        if sum(len(numbers) for _, numbers in some) >= TURNS_AT_ONCE:
            yield _turn_batch(some, columns)
            some = []
    yield _turn_batch(some, columns)


def _turn_batch(some: "list[tuple[dict[str, object], Int64s]]", columns: Sequence[Column]) -> pa.RecordBatch:
    from kcap.tls.turns import FIELDS

    sizes = [len(numbers) for _, numbers in some]
    numbers = np.concatenate([np.empty((0, len(FIELDS)), np.int64), *(part for _, part in some)])
    known: dict[str, Any] = dict(zip(FIELDS, numbers.T))
    known["turn"] = np.concatenate([np.empty(0, np.int64), *(np.arange(1, size + 1) for size in sizes)])
    known["latency_ns"] = known["response_first_ns"] - known["request_last_ns"]
    open_ended = known["response_records"] == 0
    arrays = []
    for column in columns:
        if column.name in known:
            mask = open_ended if column.nullable else None
            values = known[column.name].astype(np.bool_) if column.type == "bool" else known[column.name]
            arrays.append(pa.array(values, TYPES[column.type], mask=mask))
        else:
            repeated = [row[column.name] for (row, _), size in zip(some, sizes) for _ in range(size)]
            arrays.append(pa.array(repeated, TYPES[column.type]))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema("tls_turns", columns))


def capture_rows(files: Iterable[CaptureFile]) -> list[dict[str, object]]:
    return [
        {
            "capture": file.name,
            "path": readable(file.path),
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


def weird_rows(sightings: Iterable[tuple[Weird, int]], files: Sequence[CaptureFile]) -> Iterator[dict[str, object]]:
    """Rows of `weirds`; those of a connection have a position where one is known."""
    for weird, count in sightings:
        yield {
            "kind": str(weird.kind),
            "connection": weird.connection,
            "capture": files[weird.file].name if weird.packet or weird.connection is None else None,
            "packet": weird.packet or None,
            "position": weird.position if weird.packet else None,
            "detail": weird.detail,
            "count": count,
        }


def topic_rows(tracker: MetadataTracker) -> Iterator[dict[str, object]]:
    for uuid, (connection, exchange, server) in tracker.topic_sources.items():
        yield {
            "topic_id": uuid,
            "topic": tracker.topics.names[uuid],
            "cluster_id": tracker.brokers.identify(server)[1],
            "connection": connection,
            "exchange": exchange,
        }


def broker_rows(tracker: MetadataTracker, servers: set[Server]) -> Iterator[dict[str, object]]:
    """Rows of `brokers`; with the address on the wire where that is proven."""
    brokers = tracker.brokers
    seen = brokers.seen(servers)
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for listing in brokers.listings.values():
        host, port = listing.broker.host, listing.broker.port
        cluster = listing.cluster or brokers.identify(listing.server)[1]
        server = seen.get(brokers.endpoint(host, port))
        if server is not None and brokers.identify(server)[0] != listing.broker.node:
            server = None
        row: dict[str, object] = {
            "cluster_id": cluster,
            "broker_id": listing.broker.node,
            "host": host,
            "port": port,
            "rack": listing.broker.rack,
            "server_ip": server and server[0],
            "server_port": server and server[1],
            "connection": listing.connection,
            "exchange": listing.exchange,
        }
        first = rows.setdefault((cluster, listing.broker.node, host, port), row)
        first["rack"] = first["rack"] or listing.broker.rack
    yield from rows.values()


def negotiation_row(entry: "Negotiation", tracker: MetadataTracker) -> dict[str, object]:
    offer, verdict = entry.final(tracker)
    first, last = offer.ranges.get(entry.key, (None, None)) if offer is not None else (None, None)
    one: Any = entry.identity
    software = entry.software or (None, None)
    return {
        "connection": one.uid,
        "client_ip": one.client_ip,
        "client_port": one.client_port,
        "server_ip": one.server_ip,
        "server_port": one.server_port,
        "software_name": software[0],
        "software_version": software[1],
        "api_key": entry.key,
        "api": api_name(entry.key),
        "broker_min": first,
        "broker_max": last,
        "versions": sorted(entry.versions),
        "count": sum(count for counts in entry.versions.values() for count in counts.values()),
        "verdict": verdict,
        "step": entry.step,
        "client_id": entry.client_id,
        "requested": entry.requested,
        "chosen": entry.chosen[1] if entry.chosen is not None else None,
        "error_code": entry.error[1] if entry.error is not None else None,
        "error": ERRORS.get(entry.error[1], str(entry.error[1])) if entry.error is not None else None,
        "features": list(entry.features[1]),
    }
