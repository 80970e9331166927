"""The topics of one body, in hardly more bytes than they have on the wire.

In: their spans in the projection of the body. Out: a value that needs no buffer. Law: up to TOPICS_CARRIED_BYTES of a capture's
outstanding requests, rows list the same topics wherever batches end.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kcap.model import Buffer

ID_BYTES: Final = 16
NO_ID: Final = bytes(ID_BYTES)
"""Kafka's zero uuid: no id."""


@dataclass(frozen=True, slots=True)
class BodyTopics:
    """Topics in wire order."""

    names: bytes = b""
    """The names, one behind the other."""
    sizes: "array[int]" = field(default_factory=lambda: array("i"))
    """Bytes of each name; -1 for none."""
    ids: bytes = b""
    """The id of each, NO_ID for none; empty where none has one."""

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def bytes_held(self) -> int:
        """Memory that they take."""
        return len(self.names) + len(self.ids) + self.sizes.itemsize * len(self.sizes)


NO_TOPICS: Final = BodyTopics()


def topics_of(arena: Buffer, starts: Sequence[int], ends: Sequence[int], ids: Sequence[int]) -> BodyTopics:
    """Topics whose names and ids have these spans; the start is -1 where there is none."""
    if not len(starts):
        return NO_TOPICS
    names = b"".join([arena[low:high] for low, high in zip(starts, ends) if low >= 0])
    sizes = array("i", [-1 if low < 0 else high - low for low, high in zip(starts, ends)])
    named = b"".join([NO_ID if low < 0 else arena[low : low + ID_BYTES] for low in ids]) if max(ids) >= 0 else b""
    return BodyTopics(names, sizes, named)
