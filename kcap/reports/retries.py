"""Retries after errors, and the time from a leadership error to the next successful response.

In: partitions joined with their exchanges. Out: one row per group of retries; one row per leadership error. Law: a retry is the
same batch of the same producer (id, epoch, first sequence, partition) sent again in one cluster, or the same fetch after an
error of its partition. What the wire does not show is null, not guessed.
"""

from collections.abc import Sequence
from typing import Any, Final

from kcap.reports.definition import KEY, Tables, time_of, topic_of
from kcap.schema.registry import api_key

COLUMNS: Final = (
    "api", "api_key", "client_ip", "client_id", "cluster_id", "server_ip", "server_port", "request_first_ns",
    "response_first_ns",
)  # fmt: skip
LEADERSHIP: Final = (
    "NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
    "UNKNOWN_TOPIC_OR_PARTITION", "REPLICA_NOT_AVAILABLE", "UNKNOWN_TOPIC_ID",
)  # fmt: skip
"""Errors after which a client requests Metadata and tries again (InvalidMetadataException of the Java client)."""
PRODUCE, FETCH, METADATA = (api_key(name) for name in ("Produce", "Fetch", "Metadata"))
PLACE: Final = ("place", "partition")
CLIENT: Final = ("client_ip", "client_id", "cluster_id")
"""Columns that identify a client within one cluster."""
SLOT: Final = ("client_ip", "client_id", "api", "topic", "partition")


def candidates(tables: Tables) -> Any:
    """Partitions of Produce and Fetch. `place` is their topic and never null."""
    there = tables.partitions
    names = "error", "partition", "producer_id", "producer_epoch", "base_sequence", "fetch_offset", "api_key"
    own = there.select(*KEY, *names, topic=topic_of(there))
    return own.filter(own.api_key.isin([PRODUCE, FETCH])).mutate(place=own.topic.fill_null(""))


def with_clients(rows: Any, tables: Tables) -> Any:
    """Rows with the client and the time of their exchange."""
    names = "api", "client_ip", "client_id", "cluster_id", "outcome", "server_ip", "server_port", "response_first_ns"
    return rows.join(tables.selected.select(*KEY, *names, at_ns=time_of(tables.selected)), list(KEY))


def once(rows: Any, names: Sequence[str]) -> Any:
    """Rows without those that a proxy forwarded, if the capture has both of its sides. Forwarded rows equal another row in
    these columns, were sent later to another server, and were answered earlier. A client that retries has had its response, or
    has given up waiting for it."""
    import ibis

    order = ibis.window(group_by=list(names), order_by=["at_ns", *KEY])
    before = {f"last_{name}": rows[name].lag().over(order) for name in ("server_ip", "server_port", "response_first_ns")}
    rows = rows.mutate(**before)
    elsewhere = (rows.last_server_ip != rows.server_ip) | (rows.last_server_port != rows.server_port)
    copies = elsewhere & (rows.last_response_first_ns >= rows.response_first_ns)
    return rows.filter(~copies.fill_null(False)).drop(*before)


def where(rows: Any, marked: Any, names: Sequence[str]) -> Any:
    """All rows that equal a marked row in these columns. They are few, so that the rest need not be joined or sorted."""
    return rows.semi_join(marked.select(*names).distinct(), list(names))


def retries(tables: Tables) -> Any:
    """client_ip, client_id, api, topic, partition: batches or fetches that were retried, and the number of retries."""
    import ibis

    rows = candidates(tables)
    own = ["partition", "producer_id", "base_sequence"]
    batch = ["client_ip", "client_id", "topic", "producer_epoch", *own]
    sent = rows.filter((rows.api_key == PRODUCE) & (rows.producer_id >= 0) & (rows.base_sequence >= 0))
    numbers = sent.group_by(own).aggregate(times=sent.count())
    sent = with_clients(where(sent, numbers.filter(numbers.times > 1), own), tables)
    sent = once(sent, batch)
    # Producer ids are unique within one cluster only: the first attempt in each cluster is not a retry.
    tries = sent.group_by("api", *batch).aggregate(tries=sent.count(), first=ibis.greatest(sent.cluster_id.nunique(), 1))
    again = tries.filter(tries.tries > tries.first).select(*SLOT, more=lambda some: some.tries - some.first)
    fetched = rows.filter(rows.api_key == FETCH)
    fetched = with_clients(where(fetched, fetched.filter(fetched.error != "NONE"), PLACE), tables)
    fetched = once(fetched, (*SLOT, "fetch_offset"))
    order = ibis.window(group_by=[*SLOT, "cluster_id"], order_by=["at_ns", *KEY])
    fetched = fetched.mutate(error_before=fetched.error.lag().over(order), offset_before=fetched.fetch_offset.lag().over(order))
    repeated = (fetched.error_before != "NONE") & (fetched.offset_before == fetched.fetch_offset)
    refetched = fetched.filter(repeated.fill_null(False)).select(*SLOT, more=ibis.literal(1, "int64"))
    all_ = ibis.union(again, refetched)
    return all_.group_by(*SLOT).aggregate(retries=all_.more.sum().cast("int64"))


def by_cluster(rows: Any, tables: Tables) -> Any:
    """Rows whose `cluster_id` is null unless the capture has at least two clusters: a server of unknown cluster is then not
    taken for another cluster."""
    known = tables.every.cluster_id
    rows = rows.cross_join(tables.every.aggregate(least=known.min(), most=known.max()))
    return rows.mutate(cluster_id=(rows.least < rows.most).ifelse(rows.cluster_id, None)).drop("least", "most")


def stories(tables: Tables) -> Any:
    """For each first leadership error: the time until the client requested Metadata of the same cluster, and until its next
    successful response there. `cluster_id` is set if the capture has several clusters."""
    import ibis

    rows = candidates(tables)
    rows = by_cluster(with_clients(where(rows, rows.filter(rows.error.isin(LEADERSHIP)), PLACE), tables), tables)
    order = {"group_by": [*SLOT, "cluster_id"], "order_by": ["at_ns", *KEY]}
    slot, later = ibis.window(**order), ibis.window(**order, rows=(1, None))
    numbered = rows.mutate(
        number=ibis.row_number().over(slot),
        good=(rows.error == "NONE").fill_null(False),
        moved=rows.error.isin(LEADERSHIP).fill_null(False),
        before=rows.error.lag().over(slot),
    )
    walk = numbered.mutate(
        good_ns=ibis.ifelse(numbered.good, numbered.at_ns, ibis.null("int64")).min().over(later),
        good_at=ibis.ifelse(numbered.good, numbered.number, ibis.null("int64")).min().over(later),
    )
    first = walk.filter(walk.moved & ~walk.before.isin(LEADERSHIP).fill_null(False))
    names = (*KEY, *SLOT, "cluster_id", "error", "at_ns", "good_ns", "good_at", "number")
    failed = first.select(*names, asks=ibis.literal(0, "int64"), requested_ns=ibis.null("int64"))
    metadata = by_cluster(tables.every.filter(tables.every.api_key == METADATA), tables)
    known = {name: metadata[name] for name in CLIENT} | {"at_ns": time_of(metadata)}
    requested = metadata.select(
        **{name: known.get(name, ibis.null(first[name].type())) for name in names},
        asks=ibis.literal(1, "int64"), requested_ns=time_of(metadata),
    )  # fmt: skip
    # Sorted together by time: pairs of errors and requests would be the product of both.
    both = ibis.union(failed, requested)
    behind = ibis.window(group_by=list(CLIENT), order_by=["at_ns", both.asks.desc()], rows=(1, None))
    found = both.mutate(metadata_ns=both.requested_ns.min().over(behind))
    found = found.filter(found.asks == 0)
    return found.select(
        *KEY, *SLOT, "cluster_id", "error", "at_ns",
        metadata_after_ns=found.metadata_ns - found.at_ns,
        good_after_ns=found.good_ns - found.at_ns,
        tries=found.good_at - found.number,
    )  # fmt: skip
