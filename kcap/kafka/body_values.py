"""The values of one body, from a projection or from a reader that got the frame piece by piece.

In: numbers and spans of a projection; bytes of a large frame, piece by piece. Out: `BodyValues`, which need no buffer. Law: a
body that was read in pieces has the values of the same body in one buffer.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kcap.decode import slots
from kcap.decode.interpreter import MALFORMED, SHORT
from kcap.decode.projection import Resumable
from kcap.faults import Fault, fault_of
from kcap.kafka.body_topics import BodyTopics, topics_of
from kcap.limits import FRAME_HEAD_KEPT
from kcap.model import Buffer

REQUEST, RESPONSE = 0, 1
UNKNOWN = -1
"""No program: for a response until its request is found, and for a version that no release has."""

WORDS = {SHORT: "out of bytes", MALFORMED: "malformed"}

TEXTS: Final = len(slots.SLOTS)
"""Index of the first text's span in a row of values."""
_SPAN: Final = 3
"""Numbers per entry of `State.wrapped`."""
NO_TEXTS: Final[tuple[bytes | None, ...]] = (None,) * len(slots.TEXTS)
Pieces = tuple[tuple[int, bytes], ...]
"""(offset, bytes) of the known parts of a body, and at the end its size with no bytes; empty if nothing is known."""


class BodyValues(NamedTuple):
    """The projection of one body. It is a tuple because there is one for each request that waits for a later batch."""

    status: int
    mask: int
    values: tuple[int, ...]
    texts: tuple[bytes | None, ...]
    topics: BodyTopics
    data: bytes = b""
    """The body's bytes, if bodies are retained."""
    fault: Fault | None = None
    """The failure of kcap's code in the projection of this body."""
    excerpts: Pieces = ()
    """All of a large body except its records, if bodies are retained."""
    cut: bool = False
    """Whether its topics were discarded, because too many were waiting at that time."""
    passed: bool = False
    """Whether the frame was read piece by piece, so that it has more bytes than `data` and `excerpts`."""


def entries_of(owners: Any, messages: Any) -> tuple[Any, Any]:
    """Returns where the entries of these messages begin in a table that is ordered by message, and their numbers."""
    import numpy as np

    owners = np.asarray(owners)
    wanted = messages.astype(owners.dtype)  # otherwise all owners would be converted
    first = owners.searchsorted(wanted)
    return first, owners.searchsorted(wanted, "right") - first


def places_of(first: Any, counts: Any) -> Any:
    """Returns the indexes of runs of entries, given where each run begins and how many entries it has."""
    import numpy as np

    return np.repeat(first - counts.cumsum() + counts, counts) + np.arange(counts.sum())


def in_wrapped(data: Buffer, spans: Iterable[Sequence[int]], end: int) -> int:
    """Counts the records in these compressed messages of magic 0 and 1, whose body ends at `end`."""
    from kcap.records.record_sets import count_wrapped  # few captures have such messages, and the import takes time

    return sum(count_wrapped(data, low, high, end) for low, high in spans)


def piece_of(arena: Buffer, start: int, end: int) -> bytes | None:
    """Returns the bytes of a text of a body; None for an absent text, whose span begins below 0."""
    return None if start < 0 else bytes(arena[start:end])


def resumed(index: int, head: bytearray, low: int, *, counted: bool, light: bool) -> Resumable | None:
    """Makes a resumable reader of a frame's body and feeds `head[low:]` to it; None without a program. With `counted`, it
    counts the records in compressed messages of magic 0 and 1. With `light`, it returns None if the reader holds more than half
    of the first bytes, since it would then hold as much to the end."""
    if index < 0:
        return None
    reader = Resumable(index)
    reader.whole = bytearray() if counted else None
    first = low + (FRAME_HEAD_KEPT if light else 0)
    fed(reader, memoryview(head)[low:first])
    if light and reader.held - len(reader.whole or b"") > FRAME_HEAD_KEPT // 2:
        return None
    fed(reader, memoryview(head)[first:])
    return reader


def fed(reader: Resumable, data: Buffer) -> None:
    """Feeds a reader. It holds little, except for a compressed message of magic 0 or 1, which it counts once it is complete."""
    reader.feed(data)
    if reader.whole is None:
        del reader.state.wrapped[_SPAN:]  # it is enough to know that there is one
    else:
        _count_passed(reader, reader.whole)


def _count_passed(reader: Resumable, data: bytearray) -> None:
    """Counts the records in compressed messages that are complete, and releases their bytes."""
    spans, shift, counted = reader.state.wrapped, reader.shift, 0
    passed = shift + len(data)
    while counted < len(spans) and spans[counted + 2] <= passed:
        low, high = spans[counted + 1] - shift, spans[counted + 2] - shift
        counted += _SPAN
        try:
            reader.counted += in_wrapped(data, [(low, high)], len(data))
        except Exception as error:  # noqa: BLE001 - the other values of the message remain valid
            reader.fault = fault_of(error)
    del spans[:counted]
    reader.shift = min(spans[1] if spans else passed, reader.read if reader.state.status == SHORT else passed)
    del data[: reader.shift - shift]


def values_of(reader: Resumable, excerpts: Pieces = ()) -> BodyValues:
    """Returns the values and excerpts of a body that was read piece by piece. If compressed messages of magic 0 and 1 were not
    stored, their records cannot be counted, and the number of records is null."""
    found, kept = reader.result(), reader.kept
    if reader.whole is not None:
        _count_passed(reader, reader.whole)
    row = [int(column[0]) for column in found.values]
    status, mask = int(found.status[0]), int(found.mask[0])
    if reader.whole is None and len(found.wrapped[0]):
        mask &= ~(1 << slots.RECORD_COUNT)
    row[slots.RECORD_COUNT] += reader.counted
    if reader.fault is not None:
        status = MALFORMED
    texts = tuple(piece_of(kept, row[TEXTS + 2 * i], row[TEXTS + 2 * i + 1]) for i in range(len(NO_TEXTS)))
    _, starts, ends, ids = found.topics
    topics = topics_of(kept, starts, ends, ids)
    return BodyValues(status, mask, tuple(row), texts, topics, fault=reader.fault, excerpts=excerpts, passed=True)
