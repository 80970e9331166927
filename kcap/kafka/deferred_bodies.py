"""Bodies of a batch that another process projects while this one goes on with the packets.

In: a closed batch that is not projected. Out: the same batch in a form that can be sent and from which the other process makes
a `BodyBatch`. Law: that equals the `BodyBatch` that this process would have made. This process projects only bodies of requests
that still wait for their response, one by one, because their values are carried over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from kcap.decode.programs import place_of, program_index
from kcap.kafka.body_batch import BodyBatch, carried_values, projected
from kcap.kafka.body_values import UNKNOWN, BodyValues
from kcap.kafka.frames import NO_BODY

if TYPE_CHECKING:
    from kcap.kafka.waiting_bodies import WaitingBodies


@dataclass(frozen=True, slots=True)
class DeferredBodies:
    """A closed batch whose bodies are not projected. A slot is the number of a body."""

    arena: Any
    """The bytes of all bodies."""
    starts: Any
    ends: Any
    programs: Any
    """Start, end and program of each body, as lists or numpy int64 arrays."""
    carried: dict[int, BodyValues]
    compiled: bool = False
    """Whether the compiled interpreter is available."""
    keep: bool = False
    partitions: bool = False
    """As in `projected`."""
    waiting: "WaitingBodies | None" = None
    """As in `BodyBatch`."""

    def unread(self) -> dict[int, str]:
        """Always empty, since the other process reports such bodies."""
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
        """Some bodies as a batch, with new slots from 0 on."""
        import numpy as np

        starts, ends, programs = (np.asarray(column, np.int64)[wanted] for column in (self.starts, self.ends, self.programs))
        return projected(self.arena, starts, ends, programs, {}, compiled=True, keep=self.keep)

    def projected(self, room: Any = None) -> BodyBatch:
        """The batch with its bodies projected. `room` is that of `BodyBatch`."""
        how: Any = {"compiled": self.compiled, "keep": self.keep, "partitions": self.partitions, "room": room}
        return replace(projected(self.arena, self.starts, self.ends, self.programs, self.carried, **how), waiting=self.waiting)

    def token(self, slot: int) -> BodyValues | None:
        """As `BodyBatch.token`."""
        return self._alone(slot).token(0)

    def _alone(self, slot: int) -> BodyBatch:
        """A batch of one body."""
        data = bytearray(self.arena[self.starts[slot] : self.ends[slot]])
        return projected(data, [0], [len(data)], [int(self.programs[slot])], {}, compiled=False, keep=self.keep)

    def portable(self) -> "PortableBodies":
        """The form that can be sent; it shares the bytes of this one."""
        import numpy as np

        programs = np.asarray(self.programs, np.int64)
        calls: list[tuple[int, int, int] | None] = [None]
        entry = np.zeros(programs.max(initial=UNKNOWN) + 2, np.int32)
        entry[programs] = 1  # UNKNOWN refers to the last entry
        entry[UNKNOWN] = 0
        for number in np.flatnonzero(entry).tolist():
            entry[number] = len(calls)
            calls.append(place_of(number)[0][:3])
        spans = np.asarray(self.starts, np.int64), np.asarray(self.ends, np.int64), entry[programs]
        return PortableBodies(
            PickleBuffer(self.arena), *spans, calls, self.carried, self.compiled, self.keep, self.partitions, self.waiting
        )


@dataclass(frozen=True, slots=True)
class PortableBodies:
    """A batch in the form that is sent. It has APIs and versions, because numbers of programs differ between processes."""

    arena: Any
    starts: Any
    ends: Any
    places: Any
    """Body -> index of its entry in `calls`."""
    calls: list[tuple[int, int, int] | None]
    """API key, version and side of each program; None for no program."""
    carried: dict[int, BodyValues]
    compiled: bool
    keep: bool
    partitions: bool
    waiting: "WaitingBodies | None"

    def deferred(self) -> DeferredBodies:
        """Restores the batch in this process."""
        import numpy as np

        programs = np.array([UNKNOWN if call is None else program_index(*call) for call in self.calls], np.int64)[self.places]
        spans: tuple[Any, Any, Any] = self.starts, self.ends, programs
        if not self.compiled:
            spans = self.starts.tolist(), self.ends.tolist(), programs.tolist()
        return DeferredBodies(self.arena, *spans, self.carried, self.compiled, self.keep, self.partitions, self.waiting)
