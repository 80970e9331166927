"""Exceptions in which Kafka departs from its own message definitions; every special case is here, with its source.

Tables in, numbers out. Law: no other module names an API key or a field because of an exception to the schema.
"""

API_VERSIONS = 18
CONTROLLED_SHUTDOWN = 7
UNSUPPORTED_VERSION = 35

REQUEST_HEADERS: dict[tuple[int, int], int] = {(CONTROLLED_SHUTDOWN, 0): 0}
"""(API key, version) -> request header version. ControlledShutdown v0 came before client ids (ApiMessageType generator,
`requestHeaderVersion`; RequestHeader v0 has no client id)."""

RESPONSE_HEADERS: dict[int, int] = {API_VERSIONS: 0}
"""API key -> response header version at every version. A client that requests too new a version must be able to read the
refusal, so ApiVersions never got the flexible header (KIP-511; comment in ApiVersionsResponse.json)."""

DOWNGRADES: dict[int, tuple[int, int]] = {API_VERSIONS: (UNSUPPORTED_VERSION, 0)}
"""API key -> (error code, version): a response that starts with this code is written at this version, whatever the request's
version. A broker treats an unknown ApiVersions version as 0 (KIP-511; RequestContext.parseRequest).
"""

ERROR_SUFFIX = "ErrorCode"
"""An int16 field of a response is an error field if its name ends like this. ErrorCode, PartitionErrorCode,
TopicConfigErrorCode and AcknowledgeErrorCode are all such names up to Kafka 4.4; a test checks every schema."""

UNPREFIXED = frozenset(
    {"KRaftVersionRecord", "LeaderChangeMessage", "SnapshotFooterRecord", "SnapshotHeaderRecord", "VotersRecord"}
)
"""Blobs without a version prefix: values of KRaft control records, which begin with their version (ControlRecordUtils.java)."""


ADVERTISED: dict[int, tuple[tuple[str, int], ...]] = {0: (("4.0.0", 0),)}
"""API key -> (release, first version that brokers advertise from that release on, although they refuse it). Produce: librdkafka
turns compression off if version 0 is not advertised (KAFKA-18659, ApiKeys.toApiVersion)."""


MAGIC2_ONLY: dict[int, int] = {0: 3}
"""API key -> first version whose records can only be batches of magic 2, without compressed messages of magic 0 and 1 (KIP-98;
ProduceRequest.validateRecords)."""


BROKERS_ONLY: dict[int, int] = {24: 4}
"""API key -> first version that Kafka's own clients leave to brokers. AddPartitionsToTxn: clients stay at 3 (KIP-890,
AddPartitionsToTxnRequest.json). Other libraries may send later versions, which brokers accept."""


def response_version(key: int, version: int, first_bytes_of_body: bytes | bytearray | memoryview) -> int:
    """The version in which a response body is written, given the requested version and at least its first two bytes."""
    downgrade = DOWNGRADES.get(key)
    if downgrade and int.from_bytes(first_bytes_of_body[:2], "big", signed=True) == downgrade[0]:
        return downgrade[1]
    return version
