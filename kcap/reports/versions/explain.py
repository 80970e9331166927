"""Which versions a client settles on with other releases, from a capture or from the name of its library.

In: a client id of the capture, or a library with its release; releases; the capture's profiles if there is one. Out: plain
values, one entry for each client with the name. Law: the steps of a client of the capture begin with the broker in the capture,
and always include the APIs that it used there; `unproven` lists what the capture lacks to show that it works.
"""

from collections.abc import Sequence
from typing import Any, Final

from kcap.reports.versions.clients import ClientUsage, Usage, calls_of
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.identity import identify
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import unproven
from kcap.reports.versions.simulator import Library, SimulatedBroker, broker_of, explain, library_named, library_of
from kcap.schema.registry import api_key

Row = dict[str, Any]
COMMON: Final = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "SyncGroup",
    "Heartbeat", "LeaveGroup", "InitProducerId", "AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit", "OffsetForLeaderEpoch",
    "ConsumerGroupHeartbeat", "ShareFetch", "PushTelemetry", "CreateTopics", "DescribeConfigs", "SaslAuthenticate",
)  # fmt: skip
"""APIs that are explained for a library without a capture."""


def explanation_of(client: str, targets: Sequence[str], profiles: ConnectionProfiles | None) -> Row:
    """The explanation. Raises UsageError for a name that is neither a client of the capture nor a library."""
    brokers = [broker_of(target) for target in targets]
    made: Row = {"report": "versions", "explain": client, "targets": list(targets), "rows": []}
    if profiles is not None:
        clients = identify(profiles)
        for key, some in clients.connections.items():
            if key.client_id == client:
                usage = ClientUsage(profiles, targets[-1], clients.shared).usage(some, client)
                made["rows"].append(of_client(client, clients.software[key], usage, brokers))
    if not made["rows"]:
        library = library_named(client)
        keys = [found for name in COMMON if (found := api_key(name)) is not None and found in library.versions]
        made["rows"].append(
            {"client_id": None, "software": library.name, "guessed": False, "unproven": None}
            | explain(library, brokers, keys, {})
        )
    return made


def of_client(client: str, known: Software, usage: Usage, brokers: Sequence[SimulatedBroker]) -> Row:
    """A client of the capture. If its library is not known, it has only the versions that it sent."""
    used: dict[int, list[int]] = {}
    for api, version in usage.sums:
        used.setdefault(api, []).append(version)
    name, source = known.text or "a client of no known library", "the versions that the capture shows; it may have others"
    library = library_of(known) or Library(name, source, used, usage.probes or usage.learned)
    here = [SimulatedBroker("as captured", usage.latest)] if usage.latest else []
    head = {"client_id": client, "software": known.text or None, "guessed": known.guessed}
    head["unproven"] = unproven(calls_of(usage), usage.login)
    return head | explain(library, [*here, *brokers], used, used)
