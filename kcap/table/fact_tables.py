"""The tables of what was learned: `topic_names`, `brokers`, `negotiations`.

In: a pass over a capture. Out: record batches of the asked-for columns, when the pass is over. Law: a fact has one row, with
the exchange that told it first.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kcap.columns import Column
from kcap.facts.brokers import Server
from kcap.facts.negotiations import Negotiation, Negotiations
from kcap.facts.tracker import MetadataTracker
from kcap.schema.registry import api_name
from kcap.table.exchanges import Exchanges, NameColumn
from kcap.table.side_tables import batch_of

if TYPE_CHECKING:
    from kcap.table.builder import Pass

FACTS: Final = frozenset({"topic_names", "brokers", "negotiations"})
ROWS_AT_ONCE: Final = 8192
Rows = Iterator[dict[str, object]]


def fact_batches(name: str, columns: Sequence[Column], reading: "Pass", learner: MetadataTracker) -> Iterator[pa.RecordBatch]:
    """One of the tables."""
    nothing = NameColumn([])
    negotiations = Negotiations()
    servers: set[Server] = set()
    for batch in reading.batches():
        if not len(batch):
            continue
        rows = Exchanges(batch, nothing, learner)
        learner.take_names(reading.capture_files)
        servers.update(rows.told.servers)
        if name != "brokers":
            learner.take_topics(rows)
        if name == "negotiations":
            negotiations.take(rows, learner)
    made: dict[str, Callable[[], Rows]] = {
        "topic_names": lambda: topic_rows(learner),
        "brokers": lambda: broker_rows(learner, servers),
        "negotiations": lambda: (negotiation_row(entry, learner) for entry in negotiations.entries.values()),
    }
    some: list[dict[str, object]] = []
    for row in made[name]():
        some.append(row)
        if len(some) >= ROWS_AT_ONCE:
            yield batch_of(name, columns, some)
            some = []
    yield batch_of(name, columns, some)


def topic_rows(learner: MetadataTracker) -> Rows:
    """Rows of `topic_names`."""
    for uuid, (connection, exchange, server) in learner.tellers.items():
        yield {
            "topic_id": uuid,
            "topic": learner.topics.names[uuid],
            "cluster_id": learner.brokers.identify(server)[1],
            "connection": connection,
            "exchange": exchange,
        }


def broker_rows(learner: MetadataTracker, servers: set[Server]) -> Rows:
    """Rows of `brokers`; with the address on the wire where that is proven."""
    brokers = learner.brokers
    seen = brokers.seen(servers)
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for told in brokers.told.values():
        host, port = told.broker.host, told.broker.port
        cluster = told.cluster or brokers.identify(told.server)[1]
        server = seen.get(brokers.endpoint(host, port))
        if server is not None and brokers.identify(server)[0] != told.broker.node:
            server = None
        row: dict[str, object] = {
            "cluster_id": cluster,
            "broker_id": told.broker.node,
            "host": host,
            "port": port,
            "rack": told.broker.rack,
            "server_ip": server and server[0],
            "server_port": server and server[1],
            "connection": told.connection,
            "exchange": told.exchange,
        }
        first = rows.setdefault((cluster, told.broker.node, host, port), row)
        first["rack"] = first["rack"] or told.broker.rack
    yield from rows.values()


def negotiation_row(entry: Negotiation, learner: MetadataTracker) -> dict[str, object]:
    """A row of `negotiations`."""
    offer, verdict = entry.final(learner)
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
    }
