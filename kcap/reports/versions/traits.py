"""Traits of a library beside the versions that it uses: its correlation ids, its JoinGroup metadata, its timeouts.

In: the profiles of a client. Out: libraries that its correlation ids exclude, and how well its traits fit a library's defaults.
Law: only correlation ids exclude a library, since no setting changes them; settings are evidence for or against it.

Defaults come from the libraries' sources and documentation, and from recordings.
"""

from base64 import b64decode
from collections.abc import Sequence
from typing import Any, Final

from kcap.decode.message import decode_data
from kcap.reports.versions.libraries import JAVA
from kcap.reports.versions.profile import ConnectionProfile, Trait

SETTINGS: Final = {0: ("timeout_ms", "Produce timeout ms"), 1: ("max_bytes", "Fetch max bytes")}
"""API key -> the slot of its requests that libraries set by default, and the name of the trait."""
PROTOCOL, ASSIGNORS, SUBSCRIPTION, USER_DATA, REBALANCE, SESSION = (
    "protocol type", "assignors", "subscription version", "user data", "rebalance timeout ms", "session timeout ms",
)  # fmt: skip
OF_SESSION: Final = "that of the session"
"""Value for a rebalance timeout that equals the session timeout."""
FIXED: Final = (ASSIGNORS, SUBSCRIPTION, USER_DATA)
"""Traits that users seldom or never configure, and which therefore weigh more."""

SHARED: Final = "correlation ids that run on from connection to connection"
FROM_0: Final = "correlation ids that begin at 0 on each connection"
FROM_1: Final = "correlation ids that begin at 1 on each connection"
NUMBERING: Final = {
    "apache-kafka-java": SHARED, "kafka-node": SHARED,
    "kafkajs": FROM_0, "sarama": FROM_0, "franz-go": FROM_0,
    "librdkafka": FROM_1, "kafka-python": FROM_1, "aiokafka": FROM_1, "kafka-go": FROM_1, "platformatic": FROM_1,
}  # fmt: skip
"""Library -> the first correlation ids of its connections."""
GOING_ON: Final = frozenset({"sarama"})
"""Libraries that continue the numbering if a program closes a connection and opens it again (sarama's Broker.Open sets no
number)."""
BOOTSTRAP: Final = 0
"""The connection of a Java client with the id 0 is that to a bootstrap server."""
OF_LEADERS: Final = frozenset({0, 1})
"""Produce and Fetch, which a Java client sends to the leaders that Metadata names, on separate connections."""
ENOUGH: Final = 3
"""Number of connections from which their evidence is unlikely to be chance."""

CLASSIC: Final[dict[str, tuple[str, ...]]] = {PROTOCOL: ("consumer",)}
DEFAULTS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "apache-kafka-java": {
        PROTOCOL: ("consumer", "connect", "sr"), ASSIGNORS: ("range", "range,cooperative-sticky", "stream"),
        SUBSCRIPTION: ("0", "1", "2", "3"), USER_DATA: ("empty", "null", "some"), REBALANCE: ("300000",),
        SESSION: ("10000", "30000", "45000"), "Produce timeout ms": ("10000", "30000"), "Fetch max bytes": ("52428800",),
    },
    "librdkafka": CLASSIC | {
        ASSIGNORS: ("range,roundrobin",), SUBSCRIPTION: ("0", "1", "2", "3"), USER_DATA: ("empty",), REBALANCE: ("300000",),
        SESSION: ("10000", "45000", "30000"), "Produce timeout ms": ("5000", "30000"), "Fetch max bytes": ("52428800",),
    },
    "kafka-python": CLASSIC | {
        ASSIGNORS: ("range,roundrobin",), SUBSCRIPTION: ("0",), USER_DATA: ("empty",), REBALANCE: ("300000",),
        SESSION: ("10000", "30000", "45000"), "Produce timeout ms": ("30000",), "Fetch max bytes": ("52428800",),
    },
    "aiokafka": CLASSIC | {
        ASSIGNORS: ("roundrobin",), SUBSCRIPTION: ("0",), USER_DATA: ("empty",), REBALANCE: (OF_SESSION,),
        SESSION: ("10000",), "Produce timeout ms": ("40000",), "Fetch max bytes": ("52428800",),
    },
    "kafka-go": CLASSIC | {
        ASSIGNORS: ("range,roundrobin",), SUBSCRIPTION: ("1",), USER_DATA: ("null",), REBALANCE: (OF_SESSION,),
        SESSION: ("30000",),
    },
    "kafka-node": CLASSIC | {
        ASSIGNORS: ("roundrobin",), SUBSCRIPTION: ("0",), USER_DATA: ("null",), SESSION: ("15000", "30000"),
        "Produce timeout ms": ("100",),
    },
    "kafkajs": CLASSIC | {
        ASSIGNORS: ("RoundRobinAssigner",), SUBSCRIPTION: ("0", "1"), USER_DATA: ("empty",), REBALANCE: ("60000",),
        SESSION: ("30000",), "Produce timeout ms": ("30000",), "Fetch max bytes": ("10485760",),
    },
    "sarama": CLASSIC | {
        ASSIGNORS: ("range",), SUBSCRIPTION: ("0", "1", "2"), USER_DATA: ("null",), REBALANCE: ("60000",),
        SESSION: ("10000",), "Produce timeout ms": ("10000",), "Fetch max bytes": ("104857600", "52428800"),
    },
    "franz-go": CLASSIC | {
        ASSIGNORS: ("cooperative-sticky",), SUBSCRIPTION: ("0", "1", "3"), REBALANCE: ("60000",), SESSION: ("45000",),
        "Produce timeout ms": ("10000",), "Fetch max bytes": ("52428800",),
    },
    "platformatic": CLASSIC | {
        ASSIGNORS: ("roundrobin",), SUBSCRIPTION: ("1",), USER_DATA: ("null",), "Fetch max bytes": ("10485760",),
    },
}  # fmt: skip
"""Library -> trait -> its default in the library's releases."""
UNMISTAKABLE: Final[dict[Trait, str]] = {
    (ASSIGNORS, "RoundRobinAssigner"): "kafkajs", (ASSIGNORS, "stream"): "apache-kafka-java",
    (PROTOCOL, "connect"): "apache-kafka-java",
}  # fmt: skip
"""Values that only one library has: kafkajs's assignor, Kafka Streams' assignor, and the groups of Kafka Connect's workers."""


def of_join(body: dict[str, Any]) -> set[Trait]:
    """The traits of a JoinGroup request; fewer if its body cannot be decoded."""
    protocols = [one for one in body.get("protocols") or [] if isinstance(one, dict)]
    if not protocols:
        return set()
    made = {(PROTOCOL, str(body.get("protocolType"))), (ASSIGNORS, ",".join(str(one.get("name")) for one in protocols))}
    session, rebalance = body.get("sessionTimeoutMs"), body.get("rebalanceTimeoutMs")
    made.add((SESSION, str(session)))
    if rebalance is not None:
        made.add((REBALANCE, OF_SESSION if rebalance == session else str(rebalance)))
    if body.get("protocolType") != "consumer":
        return made
    return made | of_subscription(protocols[0].get("metadata"))


def of_subscription(metadata: object) -> set[Trait]:
    """Version and user data of a member's subscription, which bodies have in base64."""
    try:
        message = decode_data("ConsumerProtocolSubscription", b64decode(str(metadata), validate=True))
    except ValueError:
        return set()
    body = message.to_json()
    if body is None or "userData" not in body:
        return set()
    data = body["userData"]
    return {(SUBSCRIPTION, str(message.version)), (USER_DATA, "null" if data is None else "some" if data else "empty")}


def numbering(profiles: Sequence[ConnectionProfile]) -> list[ConnectionProfile]:
    """The connections whose first correlation ids are known."""
    return [one for one in profiles if one.ids_from is not None and not one.midstream]


def excluded(family: str, profiles: Sequence[ConnectionProfile]) -> bool:
    """Whether the first correlation ids of connections are not the library's.

    A connection that is made again may continue the ids of the one before it.
    """
    way, begun = NUMBERING.get(family), numbering(profiles)
    ids = [one.ids_from for one in begun]
    if way is None or not ids:
        return False
    if way == FROM_0:
        return 0 not in ids if family in GOING_ON else 2 * ids.count(0) <= len(ids)
    if way == FROM_1:
        return 0 in ids or 2 * ids.count(1) < len(ids)
    leads = any(one.ids_from == BOOTSTRAP and any(key in OF_LEADERS for _, key, _ in one.uses) for one in begun)
    return (leads and family == JAVA) or (len(ids) >= ENOUGH and set(ids) == {1})


def numbered(family: str, profiles: Sequence[ConnectionProfile]) -> str | None:
    """The evidence for a library in the correlation ids; None if they show nothing."""
    way, ids = NUMBERING.get(family), [one.ids_from for one in numbering(profiles)]
    if way is None or len(ids) < 2 or (way == SHARED and set(ids) <= {0}) or (family in GOING_ON and set(ids) != {0}):
        return None
    return way


def weight(family: str, traits: set[Trait]) -> tuple[int, list[str]]:
    """How well traits fit a library's defaults, and those that fit. For a trait with several values the best one counts."""
    score, fitting = 0, []
    for kind, usual in DEFAULTS.get(family, {}).items():
        values = sorted(value for one, value in traits if one == kind)
        right = [value for value in values if value in usual]
        weighs = 2 if kind in FIXED else 1
        if right and kind != PROTOCOL:
            score += weighs
            fitting.append(f"{kind} {right[0]}")
        elif values and not right:
            score -= weighs + 1
    return score, fitting
