"""The topics of one body, in hardly more bytes than they have on the wire.

In: their spans in the projection of the body. Out: a value that needs no buffer. Law: as long as the topics of a capture's
outstanding requests take at most TOPICS_CARRIED_BYTES, rows list the same topics wherever batches end.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kcap.model import Buffer

ID_BYTES: Final = 16
NO_ID: Final = bytes(ID_BYTES)
"""Kafka's zero uuid, which means that there is no id."""


@dataclass(frozen=True, slots=True)
class BodyTopics:
    """Topics in wire order."""

    names: bytes = b""
    """The names, concatenated."""
    sizes: "array[int]" = field(default_factory=lambda: array("i"))
    """Bytes of each name; -1 if there is none."""
    ids: bytes = b""
    """The id of each, NO_ID if there is none; empty if no topic has an id."""

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def bytes_held(self) -> int:
        """Memory that the topics take, bytes."""
        return len(self.names) + len(self.ids) + self.sizes.itemsize * len(self.sizes)


NO_TOPICS: Final = BodyTopics()


def topics_of(arena: Buffer, starts: Sequence[int], ends: Sequence[int], ids: Sequence[int]) -> BodyTopics:
    """Makes topics from the spans of their names and ids; a start of -1 means that there is none."""
    if not len(starts):
        return NO_TOPICS
    names = b"".join([arena[low:high] for low, high in zip(starts, ends) if low >= 0])
    sizes = array("i", [-1 if low < 0 else high - low for low, high in zip(starts, ends)])
    named = b"".join([NO_ID if low < 0 else arena[low : low + ID_BYTES] for low in ids]) if max(ids) >= 0 else b""
    return BodyTopics(names, sizes, named)
