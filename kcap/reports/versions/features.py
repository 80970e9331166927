"""Finalized features of a cluster, with the usual names of their levels.

In: a feature's name and level as in an ApiVersions response (KIP-584). Out: `metadata.version 21 = 3.9-IV0`. Law: a level that
is not in the table is given as its number.

Source: MetadataVersion of Kafka (feature levels of `metadata.version`), and the enums of the other features.
"""

from typing import Any, Final

METADATA_VERSIONS: Final = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2",
    "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
    "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2",
)  # fmt: skip
"""Levels of `metadata.version` from 1 on."""
LEVELS: Final = {
    ("kraft.version", 0): "static voters", ("kraft.version", 1): "dynamic voters, KIP-853",
    ("transaction.version", 0): "transactions as before KIP-890", ("transaction.version", 1): "flexible transaction records",
    ("transaction.version", 2): "KIP-890", ("group.version", 0): "classic groups",
    ("group.version", 1): "consumer groups, KIP-848", ("share.version", 1): "share groups, KIP-932",
    ("streams.version", 1): "streams groups, KIP-1071", ("eligible.leader.replicas.version", 1): "KIP-966",
}  # fmt: skip
"""Feature and level -> what it brings."""


def level_name(name: str, level: int) -> str | None:
    """The name of a level; None if the table has none."""
    if name == "metadata.version":
        return METADATA_VERSIONS[level - 1] if 0 < level <= len(METADATA_VERSIONS) else None
    return LEVELS.get((name, level))


def described(features: dict[str, Any]) -> list[str]:
    """The finalized features of an ApiVersions response, in words."""
    out = []
    for one in features.get("finalizedFeatures") or ():
        name, level = str(one.get("name")), one.get("maxVersionLevel")
        meaning = level_name(name, level) if isinstance(level, int) else None
        out.append(f"{name} {level}" + (f" = {meaning}" if meaning else ""))
    return out + (["ready for the migration from ZooKeeper"] if features.get("zkMigrationReady") else [])
