"""Client libraries as their requests show them: tables, no code.

Entries come from recordings of these libraries against brokers of several releases, and from the libraries' sources. A profile
has the versions that a library uses if the broker allows them; with an older broker it uses the broker's last version.
"""

from dataclasses import dataclass
from typing import Final

from kcap.reports.definition import REQUESTS_OF_BROKERS, WRITE_TXN_MARKERS
from kcap.schema.registry import api_key

JAVA: Final = "apache-kafka-java"
FAMILIES: Final = {
    "apache-kafka-java": "apache-kafka-java", "librdkafka": "librdkafka", "confluent-kafka-python": "librdkafka",
    "confluent-kafka-go": "librdkafka", "confluent-kafka-dotnet": "librdkafka", "confluent-kafka-javascript": "librdkafka",
    "node-rdkafka": "librdkafka", "rdkafka-ruby": "librdkafka", "kgo": "franz-go", "kadm": "franz-go", "franz-go": "franz-go",
    "sarama": "sarama", "kafka-python": "kafka-python", "aiokafka": "aiokafka", "kafkajs": "kafkajs",
    "platformatic-kafka": "platformatic", "kafka-go": "kafka-go", "kafka-node": "kafka-node", "dekaf": "dekaf",
    "kafka-rust": "kafka-rust", "rskafka": "rskafka", "afkak": "afkak", "pykafka": "pykafka", "no-kafka": "no-kafka",
}  # fmt: skip
"""Name that a client gives itself (KIP-511) -> the library that it uses."""
RDKAFKA: Final = "rdkafka"
"""Separator in the version that a binding of librdkafka reports: `2.16.1-rdkafka-2.16.0`."""

NAMES_OF_IDS: Final = (
    ("kafka-python-", "kafka-python"), ("aiokafka-", "aiokafka"), ("rdkafka", "librdkafka"), ("sarama", "sarama"),
    ("kafkajs", "kafkajs"), ("kafka-node-client", "kafka-node"), ("pykafka", "pykafka"), ("afkak-client", "afkak"),
    (r"faust-\d", "aiokafka"),
    ("no-kafka-client", "no-kafka"), ("producer-", "apache-kafka-java"), ("consumer-", "apache-kafka-java"),
    ("adminclient-", "apache-kafka-java"), ("kgo", "franz-go"),
    (r"connector-(producer|consumer|adminclient)-", "apache-kafka-java"),
    (r".+-StreamThread-\d+-(producer|consumer|restore-consumer)", "apache-kafka-java"),
    (r".* \(github\.com/segmentio/kafka-go\)", "kafka-go"),
)  # fmt: skip
"""Regular expression of the default client ids of a library -> the library. Those of Kafka Connect's tasks and of Kafka Streams
are of the Java client; Faust uses aiokafka."""


def family_of(name: str, version: str = "") -> str:
    """The library behind a name that a client gives itself."""
    if RDKAFKA in version or RDKAFKA in name:
        return "librdkafka"
    return FAMILIES.get(name, name)


def keys_of_apis(*names: str) -> frozenset[int]:
    return frozenset(key for name in names if (key := api_key(name)) is not None)


def keyed(text: str) -> dict[int, tuple[int, ...]]:
    """`Metadata 6 8, Produce 8` as API key -> versions."""
    out = {}
    for part in text.split(","):
        name, *versions = part.split()
        key = api_key(name)
        assert key is not None, name
        out[key] = tuple(map(int, versions))
    return out


@dataclass(frozen=True, slots=True)
class Profile:
    """The versions a library uses."""

    family: str
    releases: str
    """Releases, as far as they can be distinguished."""
    probes: int | None
    """Version of its ApiVersions request; None if it sends none."""
    versions: dict[int, tuple[int, ...]]
    opening: tuple[str, ...] = ()
    """A sequence of requests with which one of its connections begins; empty if any will do."""
    seldom: bool = False
    """Whether its connections may also begin differently."""


PROFILES: Final = (
    Profile("kafkajs", "1.15-2.2", 2, keyed(
        "Produce 7, Fetch 11, ListOffsets 3, Metadata 6, OffsetCommit 5, OffsetFetch 4, FindCoordinator 2, JoinGroup 5, "
        "Heartbeat 3, LeaveGroup 3, SyncGroup 3, DescribeGroups 2, ListGroups 2, CreateTopics 3, DeleteTopics 1, "
        "DeleteRecords 1, InitProducerId 1, AddPartitionsToTxn 1, AddOffsetsToTxn 1, EndTxn 1, TxnOffsetCommit 1, "
        "DescribeAcls 1, CreateAcls 1, DeleteAcls 1, DescribeConfigs 2, AlterConfigs 1, CreatePartitions 1, DeleteGroups 1, "
        "SaslHandshake 1, SaslAuthenticate 0"
    )),
    Profile("kafka-go", "0.4", 0, keyed(
        "Produce 8, Fetch 10, ListOffsets 1 5, Metadata 1 6 8, OffsetCommit 2 7, OffsetFetch 1 5, FindCoordinator 0 2, "
        "JoinGroup 1 2 7, Heartbeat 0 3, LeaveGroup 0 3 4, SyncGroup 0 3 4, DescribeGroups 0 5, ListGroups 0 2, "
        "CreateTopics 0 5, DeleteTopics 1 3, DescribeConfigs 3, ApiVersions 0 2, SaslHandshake 0 1, SaslAuthenticate 0 1, "
        "InitProducerId 0 4"
    )),
    Profile("kafka-go", "0.2-0.3", 0, keyed(
        "Produce 7, Fetch 10, ListOffsets 1, Metadata 1, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 1, "
        "Heartbeat 0, LeaveGroup 0, SyncGroup 0, CreateTopics 0, DeleteTopics 0 1"
    )),
    Profile("kafka-node", "3-5", 0, keyed(
        "Produce 2, Fetch 2, ListOffsets 0, Metadata 0 1, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "Heartbeat 0, LeaveGroup 0, SyncGroup 0, CreateTopics 1, DescribeGroups 0, ListGroups 0, DescribeConfigs 1"
    )),
    Profile("pykafka", "2.8", 0, keyed(
        "Produce 0, Fetch 2, ListOffsets 0 1, Metadata 5, OffsetCommit 1, OffsetFetch 2, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, CreateTopics 0, DeleteTopics 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("pykafka", "2.8 with broker_version 0.9.0", None, keyed(  # the default
        "Produce 0, Fetch 1, ListOffsets 0, Metadata 0, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, CreateTopics 0, DeleteTopics 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("afkak", "21.5", None, keyed(
        "Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0"
    )),
    Profile("no-kafka", "3", None, keyed(
        "Produce 1, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("kafka-python", "1.4-2.0", 0, keyed(
        "Produce 3 7, Fetch 4, ListOffsets 1, Metadata 0 1 5, OffsetCommit 2, OffsetFetch 1 3, FindCoordinator 0 1, "
        "JoinGroup 2, "
        "Heartbeat 1, LeaveGroup 1, SyncGroup 1, CreateTopics 2 3, DeleteTopics 1 3, DescribeGroups 1 3, ListGroups 1 2, "
        "DescribeConfigs 1 2, CreatePartitions 0 1, DescribeAcls 1, CreateAcls 1, DeleteAcls 1, AlterConfigs 1, SaslHandshake 1"
    ), ("ApiVersions0", "Metadata0")),
    Profile("kafka-python", "2.2", None, keyed(  # it names itself on its first connection only
        "Produce 7, Fetch 10, ListOffsets 4, Metadata 7, OffsetCommit 6, OffsetFetch 5, FindCoordinator 2, JoinGroup 4, "
        "Heartbeat 2, LeaveGroup 2, SyncGroup 2"
    )),
    Profile("kafka-python", "2.3", None, keyed(  # as 2.2
        "Produce 8, Fetch 10, ListOffsets 5, Metadata 8, OffsetCommit 7, OffsetFetch 5, FindCoordinator 2, JoinGroup 5, "
        "Heartbeat 3, LeaveGroup 3, SyncGroup 3, CreateTopics 3, DeleteTopics 3, InitProducerId 1, AddPartitionsToTxn 1, "
        "EndTxn 1, SaslHandshake 1, SaslAuthenticate 0"
    )),
    Profile("aiokafka", "0.6-0.9", 0, keyed(
        "Produce 7, Fetch 4, ListOffsets 1, Metadata 0 1 5, OffsetCommit 2 3, OffsetFetch 1 3, FindCoordinator 1, JoinGroup 2, "
        "Heartbeat 1, LeaveGroup 1, SyncGroup 1, InitProducerId 0, AddPartitionsToTxn 0, AddOffsetsToTxn 0, EndTxn 0, "
        "TxnOffsetCommit 0, SaslHandshake 1, CreateTopics 1 3, DeleteTopics 1 3, SaslAuthenticate 0"
    )),
    Profile("aiokafka", "0.10-0.14", 0, keyed(
        "Produce 7, Fetch 11, ListOffsets 3, Metadata 5, OffsetCommit 3, OffsetFetch 3, FindCoordinator 1, JoinGroup 5, "
        "Heartbeat 1, LeaveGroup 1, SyncGroup 3, InitProducerId 0, AddPartitionsToTxn 0, AddOffsetsToTxn 0, EndTxn 0, "
        "TxnOffsetCommit 0, CreateTopics 3, DeleteTopics 3, DescribeGroups 3, ListGroups 1 2, DescribeConfigs 2, "
        "CreatePartitions 1, SaslHandshake 1, SaslAuthenticate 0 1, DeleteRecords 0 1, AlterConfigs 1"
    )),
    Profile("sarama", "1.1x with Version 0.8.2", None, keyed(
        "Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0"
    )),
    Profile("sarama", "1.1x with Version 0.10.2", None, keyed(
        "Produce 2, Fetch 3, ListOffsets 1, Metadata 1, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0, JoinGroup 1, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, CreateTopics 0, DeleteTopics 0, SaslHandshake 0"
    )),
    Profile("sarama", "1.1x with Version 1.0", None, keyed(
        "Produce 3, Fetch 4, ListOffsets 1, Metadata 1, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0, JoinGroup 1, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, CreateTopics 2, DeleteTopics 1, SaslHandshake 0 1, SaslAuthenticate 0"
    )),
    Profile("sarama", "1.2x-1.3x with Version 2.3 and later", None, keyed(
        "Produce 3, Fetch 11, ListOffsets 1, Metadata 5, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0, JoinGroup 1, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0"
    )),
    Profile("sarama", "1.3x-1.40 with Version 2.0", None, keyed(
        "Produce 3, Fetch 7, ListOffsets 1, Metadata 6, OffsetCommit 1, OffsetFetch 1, FindCoordinator 1, JoinGroup 1, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0"
    )),
    Profile("sarama", "1.4x with Version 1.0", None, keyed(
        "Produce 5, Fetch 6, ListOffsets 2, Metadata 5, OffsetCommit 3, OffsetFetch 3, FindCoordinator 1, JoinGroup 2, "
        "SyncGroup 1, Heartbeat 1, LeaveGroup 1"
    )),
    Profile("sarama", "1.4x with Version 2.0", None, keyed(  # it requests no ApiVersions below Version 2.4
        "Produce 6, Fetch 8, ListOffsets 3, Metadata 6, OffsetCommit 4, OffsetFetch 4, FindCoordinator 2, JoinGroup 3, "
        "SyncGroup 2, Heartbeat 2, LeaveGroup 2, InitProducerId 1, CreateTopics 3, DeleteTopics 2, DescribeGroups 0 2, "
        "ListGroups 0 2, SaslHandshake 0 1, SaslAuthenticate 0"
    )),
    Profile("kafka-python", "1.4-2.0 with api_version 0.9", None, keyed(
        "Produce 1, Fetch 1, ListOffsets 0, Metadata 0, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("kafka-python", "1.4-2.0 with api_version 0.10", None, keyed(
        "Produce 2, Fetch 2, ListOffsets 0, Metadata 0 1, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, SaslHandshake 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("kafka-python", "1.4-2.0 with api_version 0.11", None, keyed(
        "Produce 3, Fetch 3, ListOffsets 1, Metadata 1, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 1, "
        "SyncGroup 0 1, Heartbeat 0 1, LeaveGroup 0 1, SaslHandshake 0 1, SaslAuthenticate 0, DescribeGroups 0 1, "
        "ListGroups 0 1"
    )),
    Profile("apache-kafka-java", "0.8.2", None, keyed(
        "Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 0 1, OffsetFetch 0 1, FindCoordinator 0"
    )),
    Profile("apache-kafka-java", "0.9.0", None, keyed(
        "Produce 1, Fetch 1, ListOffsets 0, Metadata 0, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0, DescribeGroups 0, ListGroups 0"
    )),
    Profile("librdkafka", "with broker.version.fallback 0.9", None, keyed(
        "Produce 1, Fetch 1, ListOffsets 0, Metadata 0, OffsetCommit 2, OffsetFetch 1, FindCoordinator 0, JoinGroup 0, "
        "SyncGroup 0, Heartbeat 0, LeaveGroup 0"
    ), ("Metadata0", "Produce1", "Produce1"), seldom=True),
    Profile("librdkafka", "with broker.version.fallback 0.8", None, keyed(
        "Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 1, OffsetFetch 1, FindCoordinator 0"
    )),  # any client that has only the first versions begins with Metadata0 and Produce0
    Profile("kafka-rust", "0.8-0.10", None, keyed(
        "Produce 0, Fetch 0, ListOffsets 0, Metadata 0, OffsetCommit 0 1, OffsetFetch 0 1, FindCoordinator 0"
    )),
)  # fmt: skip
"""Profiles of libraries that do not name themselves; the later releases of the Java client come from the imported schemas."""

BASELINES: Final = {
    "librdkafka": (1, 8, 2), "kafkajs": (1, 15, 0), "sarama": (1, 30, 1), "kafka-python": (2, 0, 2),
    "apache-kafka-java": (2, 1),
    "franz-go": (1, 0), "platformatic": (0,),
}  # fmt: skip
"""Library -> the first release that works with Kafka 4, as KIP-896 lists it; the libraries after the Java client began after
2.1."""
OWN_SINCE: Final = {"sarama": (1, 47)}
"""Library -> the first release that reports its own version in ApiVersions; earlier ones report the version of the program that
they are built into (version.go: Main.Version of Go's build information)."""
OLDEST: Final = {
    "librdkafka": "0.8", "kafka-python": "0.8", "franz-go": "0.8", "sarama": "0.8.2", "aiokafka": "0.9", "kafkajs": "0.10",
}  # fmt: skip
"""Library -> the oldest broker that its documentation supports, for any of its releases."""
ZOOKEEPER_ONLY: Final = keys_of_apis("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
"""APIs between brokers and a controller elected by ZooKeeper. Kafka 4 does not have them (KIP-866), for another reason than
KIP-896."""
INTERNAL: Final = keys_of_apis(*(api for api in REQUESTS_OF_BROKERS if api != WRITE_TXN_MARKERS))
"""APIs that only brokers and controllers use; WriteTxnMarkers is an administrator's too."""
BROKER_IDS: Final = (
    r"ReplicaFetcherThread-\S+|broker-\d+-\S+|raft-client-\d+|\S+-(client|channel)-manager-\d+|"
    r"(\S+Manager|Persister)-client-\d+"
)
"""Client ids of brokers (ReplicaFetcherThread, KafkaRaftClient, NodeToControllerChannelManager)."""
IMPLEMENTED: Final[tuple[tuple[str, tuple[int, ...], dict[int, tuple[int, ...]]], ...]] = (
    ("librdkafka", (1, 9, 2), keyed(
        "Produce 7, Fetch 11, ListOffsets 2, Metadata 4, OffsetCommit 7, OffsetFetch 7, FindCoordinator 2, JoinGroup 5, "
        "Heartbeat 3, LeaveGroup 1, SyncGroup 3, InitProducerId 4, AddPartitionsToTxn 0, EndTxn 1"
    )),
    ("librdkafka", (2, 16, 0), keyed(
        "Produce 10, Fetch 16, ListOffsets 7, Metadata 13, OffsetCommit 9, OffsetFetch 9, FindCoordinator 2, JoinGroup 5, "
        "Heartbeat 3, LeaveGroup 1, SyncGroup 3, DescribeGroups 0 5, ListGroups 0 5, SaslHandshake 1, CreateTopics 4, "
        "DeleteTopics 4, DeleteRecords 2, InitProducerId 4, AddPartitionsToTxn 0, AddOffsetsToTxn 0, EndTxn 1, "
        "TxnOffsetCommit 3, DescribeAcls 2, CreateAcls 2, DeleteAcls 2, DescribeConfigs 1, AlterConfigs 2, "
        "SaslAuthenticate 1, CreatePartitions 2, DeleteGroups 2, ElectLeaders 2, IncrementalAlterConfigs 1, "
        "DescribeUserScramCredentials 0, AlterUserScramCredentials 0, ConsumerGroupHeartbeat 1, ConsumerGroupDescribe 0, "
        "GetTelemetrySubscriptions 0"
    )),
    ("franz-go", (1, 22, 2), keyed(
        "Produce 13, Fetch 18, ListOffsets 11, Metadata 13, OffsetCommit 10, OffsetFetch 10, FindCoordinator 6, JoinGroup 9, "
        "Heartbeat 4, LeaveGroup 5, SyncGroup 5, CreateTopics 7, DeleteTopics 6, InitProducerId 5, EndTxn 5"
    )),
    ("sarama", (1, 61, 1), keyed(
        "Produce 10, Fetch 12, ListOffsets 6, Metadata 11, OffsetCommit 8, OffsetFetch 8, FindCoordinator 3, JoinGroup 8, "
        "Heartbeat 4, LeaveGroup 5, SyncGroup 5, DescribeGroups 5, ListGroups 5, CreateTopics 7, DeleteTopics 6, "
        "DeleteRecords 2, InitProducerId 4, DescribeAcls 2, DescribeConfigs 4, DescribeLogDirs 4, CreatePartitions 3, "
        "DeleteGroups 2, IncrementalAlterConfigs 1"
    )),
    ("kafka-python", (3, 0, 12), keyed(
        "Produce 9, Fetch 12, ListOffsets 11, Metadata 13, OffsetCommit 8, OffsetFetch 8, FindCoordinator 6, JoinGroup 7, "
        "LeaveGroup 5, SyncGroup 5, DescribeGroups 6, ListGroups 5, SaslHandshake 1, CreateTopics 7, DeleteTopics 6, "
        "InitProducerId 4, DescribeConfigs 4, SaslAuthenticate 2, CreatePartitions 3, DeleteGroups 2, "
        "IncrementalAlterConfigs 1, DescribeCluster 2"
    )),
    ("platformatic", (1, 35, 0), keyed(
        "Produce 11, ListOffsets 9, Metadata 12, OffsetCommit 9, FindCoordinator 6, JoinGroup 9, LeaveGroup 5, SyncGroup 5, "
        "DescribeGroups 5, ListGroups 5, CreateTopics 7, DeleteTopics 6, DescribeConfigs 4, DescribeLogDirs 4, DeleteGroups 2, "
        "DescribeClientQuotas 1"
    )),
)  # fmt: skip
"""Family, release, API -> versions recorded against brokers up to 4.4. A single version is the highest; several are those that
the library chooses among. If the broker offered no later version, the library may have one."""
