"""The names of topic ids, and the brokers that messages list.

In: schema names and Kafka's JSON of messages, in any order. Out: the name of an id (KIP-516), the brokers that a message lists.
Law: a name is read only from a struct that has both name and id. An id keeps its first name, since Kafka never gives an id to
another topic. The state can be pickled.
"""

from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kcap import limits
from kcap.facts.brokers import Broker
from kcap.schema.registry import REQUEST, RESPONSE, api_key

NO_ID: Final = "A" * 22
"""Text form of Kafka's zero uuid, which means no topic."""
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_ID: Final = "A" * 21 + "Q"
"""The topic of KRaft's log and its id, which is the same in all clusters (Uuid.METADATA_TOPIC_ID)."""
KNOWN: Final = {METADATA_ID: METADATA_TOPIC}
"""Names that are known without any message."""
LOG_MARKS: Final = (METADATA_TOPIC.encode(), bytes(15) + b"\x01")
"""Byte strings of which a response with KRaft's log has one: the topic's name, or its id."""
TOPIC_RECORD: Final = b"\x01\x02"
"""Beginning of a TopicRecord of KRaft's log: frame version 1, record type 2 (MetadataRecordSerde)."""

_TABLE: Final = """
MetadataRequest                    10  topics                                                 name
MetadataResponse                   10  topics                                                 name
CreateTopicsResponse               7   topics                                                 name
DeleteTopicsRequest                6   topics                                                 name
DeleteTopicsResponse               6   responses                                              name
DescribeTopicPartitionsResponse    0   topics                                                 name
LeaderAndIsrRequest                5   topicStates                                            topicName
UpdateMetadataRequest              7   topicStates                                            topicName
ConsumerGroupDescribeResponse      0   groups.members.assignment.topicPartitions              topicName
ConsumerGroupDescribeResponse      0   groups.members.targetAssignment.topicPartitions        topicName
ShareGroupDescribeResponse         0   groups.members.assignment.topicPartitions              topicName
DescribeShareGroupOffsetsResponse  0   groups.topics                                          topicName
AlterShareGroupOffsetsResponse     0   responses                                              topicName
DeleteShareGroupOffsetsResponse    0   responses                                              topicName
TopicRecord                        0                                                          name
"""
"""Message, first version that has both, structs that have them, the field of the name beside `topicId`. A test compares it with
every schema."""


def _read() -> dict[str, list[tuple[int, tuple[str, ...], str]]]:
    found: dict[str, list[tuple[int, tuple[str, ...], str]]] = {}
    for line in _TABLE.strip().splitlines():
        message, version, *path, name = line.split()
        found.setdefault(message, []).append((int(version), tuple(path[0].split(".")) if path else (), name))
    return found


NAMING: Final = _read()
"""Message -> where it has names beside ids."""


def naming_apis() -> frozenset[int]:
    """API keys of which some version has names beside ids."""
    names = {message.removesuffix("Request").removesuffix("Response") for message in NAMING}
    return frozenset(key for name in names if (key := api_key(name)) is not None)


class Listing(NamedTuple):
    """Where a message has brokers."""

    key: int
    side: int
    itself: bool
    """Whether the broker that responds is one of them."""
    path: tuple[str, ...]
    """Path to the structs of brokers."""
    node: str
    inner: str = ""
    """If a broker has several addresses, the array of these."""


def _listings() -> tuple[Listing, ...]:
    found = []
    for line in _BROKERS.strip().splitlines():
        name, side, itself, path, node, *inner = line.split()
        key = api_key(name)
        assert key is not None
        parts = () if path == "-" else tuple(path.split("."))
        found.append(Listing(key, REQUEST if side == "request" else RESPONSE, itself == "itself", parts, node, *inner))
    return tuple(found)


_BROKERS: Final = """
Metadata                response  itself  brokers       nodeId
DescribeCluster         response  itself  brokers       brokerId
DescribeQuorum          response  others  nodes         nodeId        listeners
FindCoordinator         response  others  -             nodeId
FindCoordinator         response  others  coordinators  nodeId
BrokerRegistration      request   others  -             brokerId      listeners
ControllerRegistration  request   others  -             controllerId  listeners
UpdateMetadata          request   others  liveBrokers   id            endpoints
"""
"""API, side, whether the server itself is on the list, structs of brokers, the field of the node id, and, if a broker has
several addresses, the array of these."""
LISTINGS: Final = _listings()


def listing_sides() -> dict[int, set[int]]:
    """API key -> sides that list brokers."""
    found: dict[int, set[int]] = {}
    for listing in LISTINGS:
        found.setdefault(listing.key, set()).add(listing.side)
    return found


def listed(key: int, side: int, body: Mapping[str, Any]) -> tuple[list[Broker], bool]:
    """The brokers that a message lists, and whether the responding server is one of them."""
    found: list[Broker] = []
    itself = False
    for listing in LISTINGS:
        if (listing.key, listing.side) != (key, side):
            continue
        itself = listing.itself
        for struct in _structs(body, listing.path):
            node = struct.get(listing.node)
            for place in _structs(struct, (listing.inner,)) if listing.inner in struct else (struct,):
                host, port, rack = place.get("host"), place.get("port"), struct.get("rack")
                if isinstance(node, int) and isinstance(host, str) and isinstance(port, int):
                    found.append(Broker(node, host, port, rack if isinstance(rack, str) else None))
    return found, itself


class TopicNames:
    """The names learned so far."""

    def __init__(self) -> None:
        self.names: dict[str, str] = dict(KNOWN)
        """Topic id, in the form in which Kafka prints uuids -> name."""

    def learn(self, message: str | None, body: Mapping[str, Any] | None) -> int:
        """Observes a message; returns the number of ids that it names for the first time."""
        before = len(self.names)
        for _, path, field in NAMING.get(message or "", ()) if body else ():
            for struct in _structs(body, path):
                name, uuid = struct.get(field), struct.get("topicId")
                if isinstance(name, str) and name and isinstance(uuid, str) and uuid != NO_ID:
                    if len(self.names) >= limits.TOPIC_NAMES_KEPT:
                        return len(self.names) - before
                    self.names.setdefault(uuid, name)
        return len(self.names) - before

    def take_log(self, body: Mapping[str, Any]) -> None:
        """Observes a Fetch response with a part of KRaft's log."""
        from kcap.decode.message import decode_data  # few captures have the log, and these modules take time to import
        from kcap.records.batch import Contents
        from kcap.records.record_sets import RecordSet, each_batch

        for topic in body.get("responses") or ():
            uuid = topic.get("topicId")
            if METADATA_TOPIC not in (topic.get("topic"), self.names.get(uuid)):
                continue
            for partition in topic.get("partitions") or ():
                for batch in each_batch(a2b_base64(partition.get("records") or ""), RecordSet()):
                    for record in batch.each(Contents()) if not batch.is_control else ():
                        if record.value is not None and record.value.startswith(TOPIC_RECORD):
                            self.learn("TopicRecord", decode_data("TopicRecord", record.value).to_json())


def _structs(node: Any, path: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The structs at a path, through arrays and without nulls."""
    if isinstance(node, list):
        for entry in node:
            yield from _structs(entry, path)
    elif isinstance(node, Mapping):
        if path:
            yield from _structs(node.get(path[0]), path[1:])
        else:
            yield node
