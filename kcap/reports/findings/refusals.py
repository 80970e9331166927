"""Errors without a rule of their own: what each means, and whether a client gets through all the same.

Law: any error that a client gets for each of its requests of an API is found, by its own rule or by this one; errors that are
part of the protocol, or of an administrator's work, are not.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kcap.reports.findings.leaders import WORK
from kcap.reports.findings.model import Finding, Found, called, rule, where
from kcap.reports.findings.observed import Observed, Row, totals
from kcap.reports.findings.transactions import NOT_OPEN, timed_out
from kcap.reports.text import count as counted

JUDGED: Final = frozenset(
    """
    COORDINATOR_NOT_AVAILABLE DUPLICATE_SEQUENCE_NUMBER FENCED_INSTANCE_ID FENCED_LEADER_EPOCH
    INVALID_PRODUCER_EPOCH INVALID_RECORD_STATE INVALID_TIMESTAMP KAFKA_STORAGE_ERROR LEADER_NOT_AVAILABLE
    MESSAGE_TOO_LARGE NOT_COORDINATOR NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_LEADER_OR_FOLLOWER
    OFFSET_METADATA_TOO_LARGE OFFSET_OUT_OF_RANGE OUT_OF_ORDER_SEQUENCE_NUMBER PRODUCER_FENCED RECORD_LIST_TOO_LARGE
    REQUEST_TIMED_OUT SASL_AUTHENTICATION_FAILED UNKNOWN_LEADER_EPOCH UNKNOWN_PRODUCER_ID UNKNOWN_TOPIC_ID
    UNKNOWN_TOPIC_OR_PARTITION UNRELEASED_INSTANCE_ID UNSUPPORTED_SASL_MECHANISM UNSUPPORTED_VERSION
    """.split()
)
"""Errors that another rule reports, as it does those with AUTHORIZATION in their names."""
USUAL: Final = frozenset(
    """
    COORDINATOR_LOAD_IN_PROGRESS DUPLICATE_RESOURCE ELECTION_NOT_NEEDED FENCED_MEMBER_EPOCH FETCH_SESSION_ID_NOT_FOUND
    FETCH_SESSION_TOPIC_ID_ERROR GROUP_ID_NOT_FOUND GROUP_SUBSCRIBED_TO_TOPIC ILLEGAL_GENERATION INVALID_FETCH_SESSION_EPOCH
    INVALID_SHARE_SESSION_EPOCH MEMBER_ID_REQUIRED NON_EMPTY_GROUP NOT_CONTROLLER NO_REASSIGNMENT_IN_PROGRESS
    OFFSET_NOT_AVAILABLE REASSIGNMENT_IN_PROGRESS REBALANCE_IN_PROGRESS REPLICA_NOT_AVAILABLE RESOURCE_NOT_FOUND
    SECURITY_DISABLED SHARE_SESSION_NOT_FOUND STALE_MEMBER_EPOCH TELEMETRY_TOO_LARGE TOPIC_ALREADY_EXISTS
    TRANSACTIONAL_ID_NOT_FOUND UNKNOWN_MEMBER_ID UNKNOWN_SUBSCRIPTION_ID UNSTABLE_OFFSET_COMMIT
    """.split()
)
"""Errors by which the protocol works: clients heed them and go on, or an administrator's request has nothing to do."""
AGAIN: Final = frozenset({"CONCURRENT_TRANSACTIONS"})
"""Errors that cost a while and are tried again, as long as some requests go through or get another error in the end."""
MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "CONCURRENT_TRANSACTIONS": (
        "the last transaction of that id is still being ended",
        "Wait and try again; if it lasts, see the transaction coordinator's log.",
    ),
    "CORRUPT_MESSAGE": (
        "the checksum of the records does not fit them",
        "Look for what changes bytes on the way (a proxy, memory, a network card), or a library that computes it wrongly.",
    ),
    "GROUP_MAX_SIZE_REACHED": (
        "the group has its maximum number of members", "Run fewer members, or raise group.max.size of the broker."
    ),
    "ILLEGAL_SASL_STATE": (
        "the listener has no SASL, or a login begins where the connection has one",
        "Compare security.protocol with the listener (PLAINTEXT and SSL have no SASL). If logins succeed before it, the "
        "library logs in again in the wrong place (KIP-368): upgrade it, or raise connections.max.reauth.ms of the broker.",
    ),
    "INCONSISTENT_GROUP_PROTOCOL": (
        "the member has no assignor, or not the type, of the group's other members",
        "Give its members an assignor in common (partition.assignment.strategy), and no other program that group.id.",
    ),
    "INVALID_GROUP_ID": ("the group id is empty or not allowed", "Set group.id."),
    "INVALID_PRODUCER_ID_MAPPING": (
        "the broker does not know that producer id for the transactional id",
        "The id expired (transactional.id.expiration.ms): the producer must begin again with InitProducerId.",
    ),
    "INVALID_RECORD": (
        "the broker does not accept the records",
        "Read the error's text in the response (kcap show): a compacted topic needs keys.",
    ),
    "INVALID_REQUIRED_ACKS": ("acks is none of 0, 1 and -1", "Set acks to 0, 1 or all."),
    "INVALID_SESSION_TIMEOUT": (
        "the session timeout is outside of what the broker allows",
        "Set session.timeout.ms between group.min.session.timeout.ms and group.max.session.timeout.ms of the broker.",
    ),
    "INVALID_TOPIC_EXCEPTION": ("the topic's name or use is not allowed", "Correct the topic's name."),
    "INVALID_TRANSACTION_TIMEOUT": (
        "the transaction timeout is more than the broker allows",
        "Set transaction.timeout.ms to at most transaction.max.timeout.ms of the broker.",
    ),
    "INVALID_TXN_STATE": (
        "the request does not fit the transaction's state",
        "Look in the producer's log for an earlier error that the program ignored.",
    ),
    "POLICY_VIOLATION": ("a policy of the broker forbids it", "Read the error's text in the response (kcap show)."),
    "THROTTLING_QUOTA_EXCEEDED": (
        "a quota on changes of topics and partitions is used up", "Send fewer, or raise controller_mutation_rate (KIP-599)."
    ),
    "UNSUPPORTED_ASSIGNOR": (
        "the broker has no such assignor", "Set group.remote.assignor to one of group.consumer.assignors of the broker."
    ),
    "UNSUPPORTED_COMPRESSION_TYPE": (
        "the broker or this version of the request does not support the codec",
        "Use another compression.type, or upgrade the older side (zstd needs Produce 7 and Fetch 10, KIP-110).",
    ),
}  # fmt: skip
"""Error -> what it means, and what to do. Source: org.apache.kafka.common.protocol.Errors and the KIPs named."""


@rule(
    "requests-refused", "high", 0.9,
    needs="responses",
    looks_at="errors that no other rule reports: all responses that a client gets for an API, or a share of them",
    advice="Use kcap errors and kcap show to see the responses with their text, and look the error up in Kafka's protocol "
    "guide.",
    instead="a test that expects the error",
    errors=3, often=10, share=0.3,
)  # fmt: skip
def requests_refused(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Requests that a broker refuses, so that a client gets no request of an API through, or loses a share of them. For the
    APIs that producers and consumers cannot do without, one error is enough.
    """
    served, unseen = Counter[tuple[str | None, str]](), Counter[tuple[str | None, str]]()
    decided: dict[tuple[str | None, str], int] = {}  # when the last request that got a definite response was sent
    overdue = seen.once(timed_out)
    by: dict[tuple[str | None, str, str], list[Row]] = {}
    for call in seen.calls:
        error = call["error"]
        if call["api"] is None or (error == NOT_OPEN and call["transactional_id"] in overdue):
            continue
        if error is not None and error not in AGAIN:
            decided[client_api(call)] = max(call["last_ns"], decided.get(client_api(call), 0))
        if error is None:
            unseen[call["client_id"], call["api"]] += call["n"]
        elif error == "NONE":
            served[call["client_id"], call["api"]] += call["n"]
        elif error not in JUDGED and error not in USUAL and "AUTHORIZATION" not in error:
            by.setdefault((call["client_id"], call["api"], error), []).append(call)
    for (client, api, error), some in by.items():
        whole, good, others = totals(some), served[client, api], unseen[client, api]
        never = not good
        if error in AGAIN and (good or others or decided.get((client, api), 0) >= whole["last_ns"]):
            continue  # one of the others may be the request that went through
        often = whole["n"] >= max(limit["often"], limit["share"] * (whole["n"] + good))
        meaning, advice = MEANINGS.get(error, ("", None))
        loop = whole["n"] >= limit["errors"]
        if api in WORK:
            severity = (None if loop else "info" if others else "medium") if never else "medium" if often else "info"
        else:  # an administrator's request is one of a kind
            severity = "medium" if never and loop else "info"
        if good:
            rest = f", while {good:,} went through"
        else:
            rest = f" ({others:,} more without a response in the capture)" if others else " and got none through"
        yield Finding(
            f"{called(client)} got {error} for {counted(whole['n'], f'{api} request')}{rest}"
            + (f": {meaning}" if meaning else ""),
            {"client_id": client}, whole["n"], where(f"api == {api}", f"error == {error}", client_id=client),
            whole["first_ns"], whole["last_ns"], whole["latency_ns"] or 0,
            {"errors": whole["n"], "served": good, "unanswered": others}, severity, None, advice,
        )  # fmt: skip


def client_api(call: Row) -> tuple[str | None, str]:
    """The client and the API of a class of calls."""
    return call["client_id"], call["api"]
