"""Client ids that brokers and controllers use among each other.

In: rows of exchanges. Out: which are those of the cluster itself. Law: a client id alone decides: a client that chooses one of
these is taken for a broker.
"""

from typing import Any, Final

OWN_CLIENTS: Final = ("ReplicaFetcherThread-", "raft-client-", "AddPartitionsManager-client-", "Persister-client-")
"""How client ids of brokers and controllers begin: those that copy logs from their leaders (ReplicaFetcherBlockingSend,
KafkaRaftManager), ask whether a transaction is open (AddPartitionsToTxnManager, KIP-890), keep the state of share groups
(PersisterStateManager, KIP-932)."""
BROKER: Final = "broker-"
BROKER_THREADS: Final = ("-fetcher-", "-txn-marker-sender")
"""How others begin since 0.11, and how they go on: those that copy logs and those that end transactions.

Queries over saved tables test these for each row, in a third of the time of the regular expression with more of them that
`versions` tests for each client (`kcap.reports.versions.libraries.BROKER_IDS`)."""


REPLICAS: Final = OWN_CLIENTS[:2]
FETCHER: Final = BROKER_THREADS[0]
"""Those that copy logs."""


def of_replicas(table: Any) -> Any:
    """Which rows have a client id of those that copy logs from their leaders."""
    name = table.client_id.fill_null("")
    own = name.startswith(BROKER) & name.contains(FETCHER)
    for begin in REPLICAS:
        own |= name.startswith(begin)
    return own


def of_brokers(table: Any) -> Any:
    """Which rows have a client id that brokers and controllers use among each other."""
    name = table.client_id.fill_null("")
    copies, ends = (name.contains(thread) for thread in BROKER_THREADS)
    own = name.startswith(BROKER) & (copies | ends)
    for begin in OWN_CLIENTS:
        own |= name.startswith(begin)
    return own


def is_broker(name: str | None) -> bool:
    """`of_brokers` of one client id."""
    return name is not None and (
        name.startswith(OWN_CLIENTS) or (name.startswith(BROKER) and any(thread in name for thread in BROKER_THREADS))
    )
