"""What client libraries call the settings that advice names as Kafka's Java client does.

In: advice, and the classes of exchanges of the clients that a finding names. Out: the advice with the names of their libraries.
Law: a library that a client does not name itself is named only where the versions of its requests fit it and no other that is
known, and the advice says so.

Where the names are from: types/index.d.ts of KafkaJS 2.2.4, config.go of sarama 1.61 and of franz-go 1.22, Writer, ReaderConfig
and Transport of kafka-go 0.4.51, CONFIGURATION.md of librdkafka 2.15, the options of @platformatic/kafka 1.35, and the
arguments of kafka-python 3.0 and aiokafka 0.14.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kcap.limits import LIBRARIES_NAMED
from kcap.reports.findings.model import OF_VERSIONS, SETTING, concerned
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.versions.libraries import PROFILES, family_of
from kcap.schema.registry import api_key

OPENING: Final = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
LEAST_APIS: Final = 2
"""A guess needs so many APIs beside these, as that of `kcap.reports.versions.fingerprints` does."""
OF_BROKERS: Final = frozenset({"recompression"})
"""Rules whose advice means settings of topics or brokers that are called as those of clients are."""

PYTHON: Final = {
    name: name.replace(".", "_")
    for name in (
        "request.timeout.ms", "connections.max.idle.ms", "linger.ms", "client.rack", "session.timeout.ms",
        "max.poll.interval.ms", "max.poll.records", "group.instance.id", "enable.auto.commit", "auto.commit.interval.ms",
        "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes", "max.request.size", "metadata.max.age.ms",
        "retry.backoff.ms", "auto.offset.reset", "isolation.level", "enable.idempotence", "transaction.timeout.ms",
        "transactional.id", "bootstrap.servers", "security.protocol", "sasl.mechanism", "compression.type",
    )
}  # fmt: skip
NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "librdkafka": {
        "request.timeout.ms": "socket.timeout.ms", "fetch.max.wait.ms": "fetch.wait.max.ms",
        "max.request.size": "message.max.bytes",
    },
    "sarama": {
        "request.timeout.ms": "Net.ReadTimeout", "delivery.timeout.ms": "Producer.Retry.Max and Producer.Retry.Backoff",
        "batch.size": "Producer.Flush.Bytes", "linger.ms": "Producer.Flush.Frequency",
        "compression.type": "Producer.Compression", "client.rack": "RackID",
        "session.timeout.ms": "Consumer.Group.Session.Timeout", "group.instance.id": "Consumer.Group.InstanceId",
        "enable.auto.commit": "Consumer.Offsets.AutoCommit.Enable",
        "auto.commit.interval.ms": "Consumer.Offsets.AutoCommit.Interval", "fetch.max.wait.ms": "Consumer.MaxWaitTime",
        "fetch.min.bytes": "Consumer.Fetch.Min", "max.partition.fetch.bytes": "Consumer.Fetch.Default",
        "max.request.size": "Producer.MaxMessageBytes", "metadata.max.age.ms": "Metadata.RefreshFrequency",
        "retry.backoff.ms": "Metadata.Retry.Backoff and Producer.Retry.Backoff",
        "auto.offset.reset": "Consumer.Offsets.Initial", "isolation.level": "Consumer.IsolationLevel",
        "enable.idempotence": "Producer.Idempotent", "transaction.timeout.ms": "Producer.Transaction.Timeout",
        "transactional.id": "Producer.Transaction.ID", "max.in.flight.requests.per.connection": "Net.MaxOpenRequests",
        "security.protocol": "Net.TLS.Enable and Net.SASL.Enable", "sasl.mechanism": "Net.SASL.Mechanism",
    },
    "franz-go": {
        "request.timeout.ms": "RequestTimeoutOverhead and ProduceRequestTimeout",
        "delivery.timeout.ms": "RecordDeliveryTimeout",
        "connections.max.idle.ms": "ConnIdleTimeout", "batch.size": "ProducerBatchMaxBytes", "linger.ms": "ProducerLinger",
        "compression.type": "ProducerBatchCompression", "client.rack": "Rack", "session.timeout.ms": "SessionTimeout",
        "group.instance.id": "InstanceID", "enable.auto.commit": "DisableAutoCommit",
        "auto.commit.interval.ms": "AutoCommitInterval", "fetch.max.wait.ms": "FetchMaxWait",
        "max.poll.records": "the argument of PollRecords",
        "fetch.min.bytes": "FetchMinBytes", "max.partition.fetch.bytes": "FetchMaxPartitionBytes",
        "max.request.size": "ProducerBatchMaxBytes", "metadata.max.age.ms": "MetadataMaxAge",
        "retry.backoff.ms": "RetryBackoffFn", "auto.offset.reset": "ConsumeResetOffset",
        "isolation.level": "FetchIsolationLevel", "enable.idempotence": "DisableIdempotentWrite",
        "transaction.timeout.ms": "TransactionTimeout", "transactional.id": "TransactionalID",
        "max.in.flight.requests.per.connection": "MaxProduceRequestsInflightPerBroker", "bootstrap.servers": "SeedBrokers",
        "security.protocol": "DialTLS and SASL", "sasl.mechanism": "SASL",
    },
    "kafka-go": {
        "request.timeout.ms": "Writer.ReadTimeout and ReaderConfig.MaxWait", "delivery.timeout.ms": "Writer.MaxAttempts",
        "connections.max.idle.ms": "Transport.IdleTimeout", "batch.size": "Writer.BatchSize and Writer.BatchBytes",
        "linger.ms": "Writer.BatchTimeout", "compression.type": "Writer.Compression",
        "session.timeout.ms": "ReaderConfig.SessionTimeout", "auto.commit.interval.ms": "ReaderConfig.CommitInterval",
        "fetch.max.wait.ms": "ReaderConfig.MaxWait", "fetch.min.bytes": "ReaderConfig.MinBytes",
        "max.partition.fetch.bytes": "ReaderConfig.MaxBytes", "max.request.size": "Writer.BatchBytes",
        "metadata.max.age.ms": "Transport.MetadataTTL", "retry.backoff.ms": "Writer.WriteBackoffMin",
        "auto.offset.reset": "ReaderConfig.StartOffset", "isolation.level": "ReaderConfig.IsolationLevel",
        "bootstrap.servers": "Writer.Addr and ReaderConfig.Brokers",
        "security.protocol": "TLS and SASL of Transport and Dialer",
        "sasl.mechanism": "SASL of Transport and SASLMechanism of Dialer",
    },
    "kafkajs": {
        "request.timeout.ms": "requestTimeout", "delivery.timeout.ms": "retry.retries",
        "compression.type": "the compression of send()", "client.rack": "rackId", "session.timeout.ms": "sessionTimeout",
        "enable.auto.commit": "autoCommit", "auto.commit.interval.ms": "autoCommitInterval",
        "fetch.max.wait.ms": "maxWaitTimeInMs", "fetch.min.bytes": "minBytes",
        "max.partition.fetch.bytes": "maxBytesPerPartition", "metadata.max.age.ms": "metadataMaxAge",
        "retry.backoff.ms": "retry.initialRetryTime", "auto.offset.reset": "fromBeginning",
        "isolation.level": "readUncommitted", "enable.idempotence": "idempotent",
        "transaction.timeout.ms": "transactionTimeout", "transactional.id": "transactionalId",
        "max.in.flight.requests.per.connection": "maxInFlightRequests", "bootstrap.servers": "brokers",
        "security.protocol": "ssl and sasl", "sasl.mechanism": "sasl.mechanism",
    },
    "platformatic": {
        "request.timeout.ms": "requestTimeout", "delivery.timeout.ms": "retries and retryDelay",
        "batch.size": "batchSize of asStream()", "linger.ms": "batchTime of asStream()", "compression.type": "compression",
        "session.timeout.ms": "sessionTimeout", "group.instance.id": "groupInstanceId", "enable.auto.commit": "autocommit",
        "auto.commit.interval.ms": "autocommit", "fetch.max.wait.ms": "maxWaitTime", "fetch.min.bytes": "minBytes",
        "max.partition.fetch.bytes": "maxBytesPerPartition", "metadata.max.age.ms": "metadataMaxAge",
        "retry.backoff.ms": "retryDelay", "auto.offset.reset": "fallbackMode", "isolation.level": "isolationLevel",
        "enable.idempotence": "idempotent", "transactional.id": "transactionalId",
        "max.in.flight.requests.per.connection": "maxInflights", "bootstrap.servers": "bootstrapBrokers",
        "security.protocol": "tls and sasl", "sasl.mechanism": "sasl.mechanism",
    },
    "kafka-python": PYTHON | {
        "delivery.timeout.ms": "delivery_timeout_ms", "batch.size": "batch_size",
        "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
    },
    "aiokafka": PYTHON | {"batch.size": "max_batch_size"},
}  # fmt: skip
"""Library -> setting of Kafka's Java client -> what the library calls what is nearest to it, where that is another name."""
LACKING: Final[Mapping[str, Mapping[str, str]]] = {
    "sarama": {
        "connections.max.idle.ms": "it keeps idle connections, and Net.KeepAlive is its TCP keepalive",
        "max.poll.interval.ms": "it sends heartbeats while it works on records",
        "max.poll.records": "ConsumeClaim gets records one by one, and returns when the Context of its session is done",
    },
    "librdkafka": {"max.poll.records": "poll() gives records one by one, consume() as many as it is asked for"},
    "kafkajs": {
        "connections.max.idle.ms": "it keeps idle connections, and its socketFactory sends TCP keepalives after 60 s",
        "linger.ms": "what one send() or sendBatch() is given goes into one request for each broker",
        "batch.size": "what one send() or sendBatch() is given goes into one request for each broker",
        "max.request.size": "it sends a message of any size",
        "max.poll.interval.ms": "it sends heartbeats between records, in eachMessage also by heartbeat()",
        "max.poll.records": "eachMessage gets records one by one, eachBatch those of one Fetch",
        "group.instance.id": "it has no static members",
    },
    "franz-go": {"max.poll.interval.ms": "it sends heartbeats while records are worked on"},
    "platformatic": {"max.request.size": "it sends a message of any size"},
    "kafka-go": {
        "max.poll.interval.ms": "it sends heartbeats while records are worked on",
        "max.poll.records": "FetchMessage gives records one by one",
        "group.instance.id": "it has no static members",
    },
}  # fmt: skip
"""The same of what a library has no setting for -> what it does."""
VERSIONS: Final[Mapping[str, str]] = {
    "sarama": "Version of its Config (version in Telegraf, kafka-version in Burrow) names the release whose versions it uses",
    "kafka-python": "api_version, where it is set, names the release whose versions it uses",
    "librdkafka": "broker.version.fallback names the release whose versions it uses where api.version.request is false",
    "franz-go": "MaxVersions limits the versions that it uses",
}
"""Library -> its setting for the versions of requests, for which Kafka's Java client has none."""
CALLED: Final = {"kafkajs": "KafkaJS", "platformatic": "@platformatic/kafka"}
"""What libraries call themselves in prose, where that is not the name of the table."""


def libraries_of(calls: Sequence[Row]) -> dict[str, bool]:
    """The libraries of one client id by the classes of its exchanges -> whether it is a guess by the versions of its requests.

    Nothing where no library, or more than one, fits.
    """
    named = {(call["software_name"], call["software_version"]) for call in calls if call["software_name"]}
    if named:
        return dict.fromkeys(sorted({family_of(name, version or "") for name, version in named}), False)
    probes = {call["api_version"] for call in calls if call["api"] == "ApiVersions"}
    used = {
        (api_key(call["api"]), call["api_version"])
        for call in calls
        if call["api"] and call["api"] not in OPENING and call["outcome"] == "answered"
    }
    if len({key for key, _ in used}) < LEAST_APIS:
        return {}
    fitting = {
        one.family
        for one in PROFILES
        if {one.probes} == probes and all(version in one.versions.get(key, ()) for key, version in used if key is not None)
    }
    return dict.fromkeys(fitting, True) if len(fitting) == 1 else {}


def known_libraries(_seen: Observed) -> dict[str, dict[str, bool]]:
    """Client id -> `libraries_of` its exchanges; of those that were looked at so far."""
    return {}


def in_library(library: str, settings: Collection[str]) -> str:
    """The settings as a library calls them, in a clause; empty where they are called the same."""
    names, lacking = NAMES.get(library, {}), LACKING.get(library, {})
    why: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    for setting in settings:
        if names.get(setting, setting) != setting:
            other.setdefault(names[setting], []).append(setting)
    known = [f"{' and '.join(some)} {'is' if len(some) == 1 else 'are'} {name}" for name, some in other.items()]
    for setting in settings:
        if setting in lacking:
            why.setdefault(lacking[setting], []).append(setting)
    known += [f"there is no {' and no '.join(some)} ({reason})" for reason, some in why.items()]
    return ", ".join(known)


def for_clients(advice: str, rule: str, who: Mapping[str, Any], seen: Observed) -> str:
    """Advice of a rule, with the names that its settings have in the libraries of the clients concerned."""
    settings = list(dict.fromkeys(SETTING.findall(advice))) if rule not in OF_BROKERS else []
    if not settings and rule != OF_VERSIONS:
        return advice
    found: dict[str, bool] = {}
    known = seen.once(known_libraries)
    for client in concerned(who, seen):
        if client not in known:
            known[client] = libraries_of(seen.calls_of(client_id=client))
        for library, guessed in known[client].items():
            found[library] = found.get(library, True) and guessed
    clauses = []
    for library in sorted(found):
        clause = VERSIONS.get(library) if rule == OF_VERSIONS else in_library(library, settings)
        if clause:
            guess = ", as the versions of its requests suggest" if found[library] else ""
            clauses.append(f"in {CALLED.get(library, library)}{guess}{',' if guess else ''} {clause}")
    text = "; ".join(clauses[:LIBRARIES_NAMED])
    return f"{advice} {text[0].upper()}{text[1:]}." if text else advice
