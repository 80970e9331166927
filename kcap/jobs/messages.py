"""The messages between the two processes of a pass.

In: what is to be read; a pass in progress. Out: an order, and steps by which a pass in another process follows it. Law: a pass
that applied all steps so far has the state of the pass that made them.
"""

import pickle
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Final

from kcap.analyzer import SLOTS_AT, Analyzer, ClosedConnection, KeptConnection, Options, RowBatch, SilentConnection
from kcap.capture.sections import FileSections
from kcap.errors import CaptureError
from kcap.fastpath.closed_rows import ClosedRow
from kcap.kafka.body_values import BodyValues
from kcap.kafka.deferred_bodies import DeferredBodies, PortableBodies
from kcap.kafka.frames import NO_BODY
from kcap.model import ROW, CaptureFile
from kcap.tls.keylog import GrowingKeyLog
from kcap.weird import Weird

if TYPE_CHECKING:
    from kcap.capture_pass import CapturePass
    from kcap.facts.tracker import Fact
    from kcap.filter.ast import Filter

FIELDS: Final = tuple(one.name for one in fields(CaptureFile))


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """What is to be read, and how."""

    paths: list[str]
    options: Options
    keep_connections: bool = False
    keep_bodies: bool = False
    """`BodyCollector.keep`."""
    keep_records: bool = False
    """`BodyCollector.records`."""
    project_partitions: bool = False
    """`BodyCollector.partitions`."""
    infer_turns: bool = False
    patient: bool = False
    """`CapturePass.patient`."""
    growing: list[GrowingKeyLog] = field(default_factory=list)
    """Key logs of the options that programs may still write to; pickled secrets do not include them."""
    pushed: "tuple[Filter, Fact] | None" = None
    """The part of a filter that decides which bodies need not be decoded (`kcap.table.push_down.PushDown`)."""


@dataclass(slots=True)
class Step:
    """The changes since the previous step."""

    batch: RowBatch | None = None
    rows: int = 0
    """Number of rows so far."""
    positions: list[int] = field(default_factory=list)
    """How far each file was read, in bytes."""
    files: dict[int, tuple[CaptureFile, FileSections]] = field(default_factory=dict)
    """Files that changed, by index, with their layouts."""
    failed: list[tuple[str, CaptureError]] = field(default_factory=list)
    phases: Counter[str] = field(default_factory=Counter)
    details: Counter[str] = field(default_factory=Counter)
    kafka_connections: int = 0
    connections: list[KeptConnection | ClosedRow | tuple[bytes, bytes]] = field(default_factory=list)
    """Connections that ended; for one that carried no bytes, its flow key and its compact form."""
    weirds: list[tuple[Weird, int]] = field(default_factory=list)
    """Oddities: the first sighting of each kind and connection, and the count."""
    error: Exception | None = None
    """Why no more steps come; None if they do."""
    over: bool = False


class Steps:
    """Makes the steps of a pass."""

    def __init__(self, reading: "CapturePass") -> None:
        self.reading = reading
        self._sent: dict[int, bytes] = {}
        """File -> pickle that was last sent for it."""
        self._read: set[int] = set(range(len(reading.capture_files)))
        """Files that may have changed since then."""
        self._last = 0

    def packets(self, file: int) -> None:
        """Packets of a file were read."""
        self._read.add(file)
        self._last = file

    def step(self, batch: RowBatch | None = None, *, over: bool = False) -> Step:
        """Makes the step up to here."""
        reading = self.reading
        closed, reading.connections = reading.connections, []
        return Step(
            None if batch is None else portable(batch),
            reading.rows,
            reading.positions,
            self._changed(every=over),
            reading.files.failed,
            reading.phases,
            reading.details,
            reading.analyzer.kafka_connections,
            [one.compact if isinstance(one, SilentConnection) else one for one in closed],
            reading.analyzer.take_sightings(),
            over=over,
        )

    def _changed(self, *, every: bool) -> dict[int, tuple[CaptureFile, FileSections]]:
        reading, found = self.reading, {}
        for index in range(len(reading.capture_files)) if every else self._read:
            facts = reading.capture_files[index], reading.files.layouts.get(index, FileSections())
            data = pickle.dumps(facts)
            if self._sent.get(index) != data:
                self._sent[index], found[index] = data, facts
        self._read = {self._last}  # its end is noticed only when its next packets are requested
        return found


def project(batch: RowBatch, analyzer: Analyzer) -> None:
    """Projects the bodies of a batch in this process, unless this was done, and reports those that do not match their
    schema.
    """
    bodies: Any = batch.bodies
    if isinstance(bodies, DeferredBodies):
        batch.bodies = bodies.projected()
        analyzer.report_undecoded(batch)


def portable(batch: RowBatch) -> RowBatch:
    """A batch without the parts that another process does not need, with its bodies in separate buffers."""
    nothing: Any = None
    passed = [(row, place, one._replace(conversation=nothing)) for row, place, one in batch.passed_over]
    settled = slots_of(batch)
    carried: Any = {slot: tuple(one) for slot, one in batch.bodies.carried.items() if slot in settled}
    waiting = batch.bodies.waiting
    if waiting is not None:
        waiting = waiting.of(settled)
    bodies: Any = replace(batch.bodies, carried=carried, waiting=waiting)
    arena: Any = None if isinstance(bodies, DeferredBodies) else PickleBuffer(bodies.arena)
    sent = bodies.portable() if arena is None else replace(bodies, arena=arena, room=None)
    return replace(batch, bodies=sent, passed_over=passed, _rows=None)


def slots_of(batch: RowBatch) -> set[int]:
    """Slots of the bodies that rows of a batch refer to. Carried values of other requests wait for a later batch."""
    found = {slot for row in batch.tuples for slot in row[SLOTS_AT : SLOTS_AT + 2]}
    if batch.fast_rows is not None:
        for name in ROW[SLOTS_AT : SLOTS_AT + 2]:
            slots = batch.fast_rows.numbers(name)[0]
            found.update(slots[slots < NO_BODY].tolist())
    return found


def follow(reading: "CapturePass", step: Step) -> None:
    """Applies a step to a pass, so that it has the state of the other one."""
    reading.rows, reading.positions = step.rows, step.positions
    reading.phases, reading.details = step.phases, step.details
    for index, (facts, sections) in step.files.items():
        for name in FIELDS:
            setattr(reading.capture_files[index], name, getattr(facts, name))
        reading.files.layouts.setdefault(index, FileSections()).become(sections)
    reading.files.failed[:] = step.failed
    analyzer = reading.analyzer
    analyzer.kafka_connections = step.kafka_connections
    closed: list[ClosedConnection] = [
        SilentConnection(*one, analyzer) if isinstance(one, tuple) else one for one in step.connections
    ]
    reading.connections += closed
    analyzer.add_sightings(step.weirds)
    if step.batch is not None:
        bodies: Any = step.batch.bodies
        bodies = replace(bodies, carried={slot: BodyValues(*one) for slot, one in bodies.carried.items()})
        if isinstance(bodies, PortableBodies):
            bodies = bodies.deferred()
        step.batch.bodies = bodies
        project(step.batch, analyzer)
