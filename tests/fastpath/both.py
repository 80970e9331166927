"""The same segments through the reference path alone and with the fast path on from the first packet."""

import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from unittest.mock import patch

from kcap import limits
from kcap.analyzer import Analyzer, KeptConnection, Options, RowBatch, SilentConnection
from kcap.decode import slots
from kcap.fastpath import engine
from kcap.model import ROW, SegmentBatch
from kcap.net.segment_columns import columns_of
from kcap.weird import Weird
from tests.support.wire import Segment, batch

SLOTS = ROW.index("request_slot")
TEXTS = len(slots.SLOTS)


@dataclass
class Result:
    """Everything that may not differ."""

    rows: list[tuple[object, ...]] = field(default_factory=list)
    connections: list[dict[str, object]] = field(default_factory=list)
    weirds: list[tuple[Weird, int]] = field(default_factory=list)
    tallies: Counter[str] = field(default_factory=Counter)
    """Connections by phase and by detail, as they are counted without rows."""
    fast_rows: int = 0
    own: int = 0
    """Connections that were never more than numbers."""

    def take(self, analyzer: Analyzer) -> None:
        """The rows decided by now, with what their bodies say instead of where these are."""
        made = analyzer.take()
        self.fast_rows += len(made.fast_rows) if made.fast_rows is not None else 0
        for row in made.rows:
            bodies = tuple(said(made, slot) for slot in row[SLOTS : SLOTS + 2])
            self.rows.append((made.identities[row[0]], *row[1:SLOTS], *row[SLOTS + 2 :], *bodies))

    def same(self, other: "Result") -> None:
        """All is equal, order included."""
        assert self.rows == other.rows
        assert self.connections == other.connections
        assert self.weirds == other.weirds
        assert self.tallies == other.tallies


def said(made: RowBatch, slot: int) -> tuple[object, ...] | None:
    """What a body says, without numbers that mean nothing."""
    values = made.bodies.values(slot)
    if values is None:
        return None
    numbers = tuple(number for at, number in enumerate(values.values[:TEXTS]) if values.mask >> at & 1)
    texts = tuple(text for at, text in enumerate(values.texts, TEXTS) if values.mask >> at & 1)
    return values.status, values.mask, numbers, texts, values.topics


def result_of(
    batches: list[SegmentBatch],
    *,
    fast_path: bool,
    often: bool = False,
    pickled: bool = False,
    step: int = 8,
    options: Options | None = None,
) -> Result:
    """One way; `often` takes rows after every batch, `pickled` goes on with a copy after each."""
    result = Result()
    analyzer = Analyzer(options)
    with patch.object(engine, "STEP", step), patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0):
        for each in batches:
            analyzer.feed(columns_of(each) if fast_path else each)
            if often:
                result.take(analyzer)
            if pickled:
                data = pickle.dumps(analyzer, pickle.HIGHEST_PROTOCOL)
                analyzer.fast_path = None
                analyzer = pickle.loads(data)
        analyzer.finish()
    result.take(analyzer)
    together = analyzer.take_closed()
    for one in together:
        result.tallies.update(one.phases)
        result.tallies.update(one.details)
    closed = [each for one in together for each in one.each()]
    result.own = sum(
        not (isinstance(each, KeptConnection) and isinstance(each._connection, tuple))
        for each in closed
        if not isinstance(each, SilentConnection)
    )
    result.connections = [each.values for each in closed]
    result.weirds = analyzer.sightings()
    analyzer.fast_path = None  # megabytes that lead back to the analyzer, as readers of captures drop them
    return result


def cut(segments: list[Segment], size: int, slow: frozenset[int] = frozenset()) -> list[SegmentBatch]:
    """Segments as batches of a file; those at `slow` come as what only the slow path of the parser reads."""
    batches = [batch(segments[at : at + size], at + 1) for at in range(0, len(segments), size)]
    for number, each in enumerate(batches):
        each.buffers = {at: each.buffer for at in range(len(each)) if number * size + at in slow}
    return batches


def agree(
    segments: list[Segment], size: int = 60, step: int = 8, slow: frozenset[int] = frozenset(), options: Options | None = None
) -> Result:
    """Both ways give the same; what the fast path gave."""
    return agree_in_steps(segments, (step,), size, slow, options)


def agree_in_steps(
    segments: list[Segment], steps: Iterable[int], size: int = 60, slow: frozenset[int] = frozenset(),
    options: Options | None = None,
) -> Result:  # fmt: skip
    """The same, with walks of each of these sizes; what the fast path gave with the last one."""
    batches = cut(segments, size, slow)
    for often in (False, True):
        plain = result_of(batches, fast_path=False, often=often, options=options)
        for step in steps:
            fast = result_of(batches, fast_path=True, often=often, step=step, options=options)
            fast.same(plain)
    return fast
