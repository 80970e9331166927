"""Bodies of a batch that another process projects: this one goes on with the packets meanwhile.

In: a closed batch that is not projected. Out: the same batch in a form that can be sent, of which the other process makes a
`BodyBatch`. Law: it is the `BodyBatch` that this process would have made. Only bodies of requests that still wait for their
response are projected here, one by one, since their values are carried over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from kcap.decode.programs import place_of, program_index
from kcap.kafka.bodies import UNKNOWN, BodyBatch, BodyValues, carried_values, projected
from kcap.kafka.frames import NO_BODY

if TYPE_CHECKING:
    from kcap.kafka.waiting_bodies import WaitingBodies


@dataclass(frozen=True, slots=True)
class DeferredBodies:
    """A closed batch whose bodies are not projected. A slot is the number of a body, those of the reference path first."""

    arena: Any
    """Bytes of the reference path's bodies."""
    more: Any
    """Bytes of the fast path's bodies, behind these."""
    starts: Any
    ends: Any
    programs: Any
    """Start, end and program of each body: lists, or numpy int64 arrays."""
    carried: dict[int, BodyValues]
    compiled: bool = False
    """The compiled interpreter is there."""
    keep: bool = False
    partitions: bool = False
    """As for `projected`."""
    waiting: "WaitingBodies | None" = None
    """As of `BodyBatch`."""

    def unread(self) -> dict[int, str]:
        """None: the other process reports them."""
        return {}

    def values(self, slot: int) -> BodyValues | None:
        """As `BodyBatch.values`."""
        if slot < NO_BODY:
            return carried_values(self.carried, self.waiting, slot)
        return self._alone(slot).values(0) if slot >= 0 and self.programs[slot] >= 0 else None

    def several(self, wanted: Any) -> Iterator[BodyValues | None]:
        """As `BodyBatch.several`."""
        return self.some(wanted).several(range(len(wanted))) if len(wanted) else iter(())

    def some(self, wanted: Any) -> BodyBatch:
        """Some bodies as a batch, in which their slots count from 0."""
        import numpy as np

        pieces = [self._bytes(slot) for slot in wanted.tolist()]
        ends = np.cumsum([len(piece) for piece in pieces])
        starts = np.concatenate([[0], ends[:-1]])
        programs = np.asarray(self.programs, np.int64)[wanted]
        return projected(bytearray(b"".join(pieces)), starts, ends, programs, {}, compiled=True, keep=self.keep)

    def token(self, slot: int) -> BodyValues | None:
        """As `BodyBatch.token`."""
        return self._alone(slot).token(0)

    def _alone(self, slot: int) -> BodyBatch:
        """A batch of one body."""
        data = bytearray(self._bytes(slot))
        return projected(data, [0], [len(data)], [int(self.programs[slot])], {}, compiled=False, keep=self.keep)

    def _bytes(self, slot: int) -> Any:
        """The bytes of a body."""
        start, end, size = int(self.starts[slot]), int(self.ends[slot]), len(self.arena)
        return self.arena[start:end] if start < size or end <= size else memoryview(self.more)[start - size : end - size]

    def portable(self) -> "PortableBodies":
        """The form that can be sent, which refers to the bytes of this one."""
        import numpy as np

        programs = np.asarray(self.programs, np.int64)
        calls: list[tuple[int, int, int] | None] = [None]
        entry = np.zeros(programs.max(initial=UNKNOWN) + 2, np.int32)
        entry[programs] = 1  # UNKNOWN is the last entry
        entry[UNKNOWN] = 0
        for number in np.flatnonzero(entry).tolist():
            entry[number] = len(calls)
            calls.append(place_of(number)[0][:3])
        spans = np.asarray(self.starts, np.int64), np.asarray(self.ends, np.int64)
        pieces, places = (PickleBuffer(self.arena), PickleBuffer(self.more)), entry[programs]
        return PortableBodies(
            pieces, *spans, places, calls, self.carried, self.compiled, self.keep, self.partitions, self.waiting
        )


@dataclass(frozen=True, slots=True)
class PortableBodies:
    """Such a batch on its way: numbers of programs differ from process to process, APIs and versions do not."""

    pieces: tuple[Any, Any]
    starts: Any
    ends: Any
    places: Any
    """Body -> its entry of `calls`."""
    calls: list[tuple[int, int, int] | None]
    """API key, version and side of each program; None for no program."""
    carried: dict[int, BodyValues]
    compiled: bool
    keep: bool
    partitions: bool
    waiting: "WaitingBodies | None"

    def projected(self) -> BodyBatch:
        """The batch with its bodies projected; it refers to nothing of this one's bytes."""
        import numpy as np

        programs = np.array([UNKNOWN if call is None else program_index(*call) for call in self.calls], np.int64)[self.places]
        arena = bytearray(self.pieces[0])
        arena += self.pieces[1]
        starts, ends = self.starts.copy(), self.ends.copy()
        spans: tuple[Any, Any, Any] = starts, ends, programs
        if not self.compiled:
            spans = starts.tolist(), ends.tolist(), programs.tolist()
        how: Any = {"compiled": self.compiled, "keep": self.keep, "partitions": self.partitions}
        return replace(projected(arena, *spans, self.carried, **how), waiting=self.waiting)
