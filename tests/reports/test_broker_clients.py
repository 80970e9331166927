"""Client ids of the cluster itself, as one name and as a column."""

import ibis

from kcap.reports.broker_clients import is_broker, of_brokers, of_replicas

COPY = ["broker-1-fetcher-0", "ReplicaFetcherThread-0-2", "raft-client-3"]
OTHER = ["AddPartitionsManager-client-1", "broker-2-txn-marker-sender", "Persister-client-3"]
CLIENTS = ["app", None, "broker-of-mine", "my-fetcher-1", "client-of-broker-1-fetcher-0"]


def test_ids_that_brokers_use_among_each_other() -> None:
    """Law: a column of ids and one id say the same."""
    names = [*COPY, *OTHER, *CLIENTS]
    table = ibis.memtable({"client_id": names}, schema={"client_id": "string"})
    found = table.mutate(broker=of_brokers(table), replica=of_replicas(table)).to_pyarrow().to_pylist()
    assert {row["client_id"] for row in found if row["broker"]} == {*COPY, *OTHER}
    assert {row["client_id"] for row in found if row["replica"]} == {*COPY}
    assert [name for name in names if is_broker(name)] == [*COPY, *OTHER]
