"""Which API versions delay a throttled response, and which mute the channel after it (KIP-219).

API key and version in, a fact out. Law: from an API's first muting version on, the broker responds at once and then does not
read the connection for throttle_time_ms; only brokers from 2.0 on have such a version. Below it, an older broker delays the
response, while a newer one mutes the channel too.
"""

from typing import Final

from kcap.schema.registry import api_key

_TABLE: Final = """
Produce 6  Fetch 8  ListOffsets 3  Metadata 6  OffsetCommit 4  OffsetFetch 4  FindCoordinator 2  JoinGroup 3  Heartbeat 2
LeaveGroup 2  SyncGroup 2  DescribeGroups 2  ListGroups 2  ApiVersions 2  CreateTopics 3  DeleteTopics 2  DeleteRecords 1
InitProducerId 1  AddPartitionsToTxn 1  AddOffsetsToTxn 1  EndTxn 1  TxnOffsetCommit 1  DescribeAcls 1  CreateAcls 1
DeleteAcls 1  DescribeConfigs 2  AlterConfigs 1  AlterReplicaLogDirs 1  DescribeLogDirs 1  CreatePartitions 1
CreateDelegationToken 1  RenewDelegationToken 1  ExpireDelegationToken 1  DescribeDelegationToken 1  DeleteGroups 1
"""
"""API and its first muting version (`shouldClientThrottle` of Kafka's responses). APIs that were added later always mute."""


def _read() -> dict[int, int]:
    words = _TABLE.split()
    return {key: int(version) for name, version in zip(words[::2], words[1::2]) if (key := api_key(name)) is not None}


FIRST_MUTING: Final = _read()
"""API key -> first muting version."""


def mutes(key: int, version: int) -> bool:
    """Whether a broker that accepts this version of this API responds before the throttle time instead of after it."""
    return version >= FIRST_MUTING.get(key, 0)
