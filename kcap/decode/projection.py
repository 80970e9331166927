"""Row columns of many messages at once: bodies and programs in; slots, texts, topics and a status for each out.

A body span starts right after the fixed header (see `programs.program_index`) and may end early: fields before the cut are
there, the rest is missing. Laws: each value equals the tree's; the compiled interpreter equals the plain one; a `Resumable` fed
in pieces equals one call over the whole body.
"""

import functools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from kcap.decode import opcodes, slots
from kcap.decode.interpreter import COMPLETE, MALFORMED, SHORT, TRAILING, UNKNOWN, State, run
from kcap.decode.plan import Row, plan_for
from kcap.decode.programs import ROWS, place_of, program_index
from kcap.faults import Fault, fault_of
from kcap.limits import COMPILED_FROM_BYTES, FED_COMPILED_BYTES, FED_GATHERED_BYTES, FED_PROBED_BYTES, PROJECTED_MESSAGE_BYTES
from kcap.model import Buffer
from kcap.schema import registry
from kcap.wire.formats import MESSAGE0_MIN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Engine = Literal["auto", "plain", "jit"]

JIT_AFTER = 2_000
"""Messages after which a process loads the compiled interpreter, which takes as long as projecting these in plain Python."""


COMPILE_AFTER: Final = 60_000
"""Number of messages after which a process compiles the interpreter, if that was not done yet."""


PRODUCE: Final = 0
"""API key of the only request that may expect no response."""

_TEXTS: Final = len(slots.SLOTS)
_TOPIC: Final = 4
_UUID: Final = 16
_WRAPPED: Final = 3
INTEGER_BYTES: Final = 40
"""Memory of a number in a list, bytes."""
_ELEMENTS_ROOM: Final = 64
"""Initial entries in the side buffer of partitions, besides one per message. Memory that is not written costs nothing."""
_BYTE_NS: Final = 100
"""Processor time, ns, that Python takes per byte of small fields: 20 to 500 ns."""
_NO_TOPIC: Final = (-1, -1, -1)


@dataclass(slots=True)
class Projection:
    """Columns of a batch; entry i belongs to message i of the batch. Sequences are lists or numpy int64 arrays."""

    status: Sequence[int]
    """0 complete and consumed exactly, 1 out of bytes, 2 malformed, 3 bytes left after the message; -1 no program."""
    mask: Sequence[int]
    """Presence bits: bit i is `slots.SLOTS[i]`, bit `len(SLOTS) + j` is `slots.TEXTS[j]`."""
    position: Sequence[int]
    """Offset in the buffer at which reading ended. It is beyond the end if bytes were skipped that are not there."""
    values: Sequence[Sequence[int]]
    """One column per slot, then start and end of each text; only valid if the mask has the bit. A null text is -1."""
    topics: Sequence[Sequence[int]]
    """Columns message, name start, name end, uuid start, in wire order; -1 for a value that is null or not in the version. A
    message with more than TOPICS_OF_MESSAGE topics has that many first ones and its last one. Consecutive topics without a name
    and an id are stored as one, since a batch has room for sixteen million."""
    wrapped: Sequence[Sequence[int]]
    """Columns message, start, end of compressed messages of magic 0 and 1, whose records are not in `record_count`."""
    elements: Sequence[Sequence[int]]
    """Columns of `slots.ELEMENTS`, partitions in wire order; empty except for programs made for partitions. A message with more
    than PARTITIONS_OF_MESSAGE partitions has that many first ones and its last one."""
    faults: dict[int, Fault] = field(default_factory=dict)
    """Messages on which kcap's code failed; their status is 2."""

    def __len__(self) -> int:
        return len(self.status)

    def unread(self) -> list[int]:
        """Messages whose bytes ended before their program, or that were malformed."""
        status: Any = self.status
        if isinstance(status, list):
            return [at for at, ended in enumerate(status) if ended in (SHORT, MALFORMED)]
        found: list[int] = ((status == SHORT) | (status == MALFORMED)).nonzero()[0].tolist()
        return found

    def column(self, name: str) -> list[int | None]:
        """One slot of every message; None if the message does not have it."""
        bit = slots.SLOT[name]
        pairs = zip(listed(self.values[bit]), listed(self.mask), strict=True)
        return [value if mask >> bit & 1 else None for value, mask in pairs]


def listed(values: Any) -> list[int]:
    """A column as a list of Python's integers."""
    found: list[int] = values if isinstance(values, list) else values.tolist()
    return found


class _Engines:
    """Selects the interpreter: counts the messages of this process, and holds the table as an array. Changes only speed."""

    def __init__(self) -> None:
        self.messages = 0
        self.loaded = False
        self.rows: NDArray[np.int32] | None = None

    def jit(self, count: int, engine: Engine, size: int = 0) -> bool:
        """Whether a batch of `count` messages goes to the compiled interpreter. `size` is the number of bytes in its buffer."""
        self.messages += count + size // PROJECTED_MESSAGE_BYTES
        if engine == "plain" or (engine == "auto" and self.messages < JIT_AFTER):
            return False
        from kcap import kernels

        self.loaded = engine == "jit" or kernels.usable(make=self.messages >= COMPILE_AFTER)
        return self.loaded

    def table(self) -> "NDArray[np.int32]":
        """The rows as an array. Only rows that are new since the last call are converted."""
        import numpy as np

        have = 0 if self.rows is None else len(self.rows)
        if self.rows is None or have < len(ROWS):
            new = np.array(ROWS[have:], np.int32).reshape(-1, 4)
            self.rows = new if self.rows is None else np.concatenate([self.rows, new])
        return self.rows


_engines = _Engines()


def load_compiled() -> bool:
    """Uses the compiled interpreter from now on, if there is one; returns whether there is."""
    return _engines.jit(COMPILE_AFTER, "auto")


def compiled_programs() -> "NDArray[np.int32]":
    """The rows of all programs so far as an array, for compiled code."""
    return _engines.table()


def end_of(buffer: Buffer, rows: tuple[Row, ...], pc: int, start: int, end: int) -> int | None:
    """Offset at which reading `buffer[start:end]` from row `pc` on ends, by the compiled interpreter.

    None if the span is small, the compiled interpreter is not loaded, or the bytes are damaged or too few.
    """
    if end - start < COMPILED_FROM_BYTES or not _engines.loaded:
        return None
    from kcap.decode.projection_kernels import ended

    status, position = ended(buffer, _array_of(rows), pc, start, end)
    return position if status in (COMPLETE, TRAILING) else None


@functools.lru_cache(maxsize=64)
def _array_of(rows: tuple[Row, ...]) -> "NDArray[np.int32]":
    import numpy as np

    return np.array(rows, np.int32).reshape(-1, 4)


def _plain(
    buffer: Buffer, starts: Sequence[int], ends: Sequence[int], programs: Sequence[int], most: int | None
) -> Projection | None:
    state = State()
    status, mask, position, values = [], [], [], list[int]()
    faults: dict[int, Fault] = {}
    room = None if most is None else most * len(slots.ELEMENTS)
    for i, (start, end, program) in enumerate(zip(starts, ends, programs, strict=True)):
        state.begin(i, program, start)
        if program < 0:
            state.status = UNKNOWN
        else:
            try:
                run(state, ROWS, buffer, end)
            except Exception as error:  # noqa: BLE001 - only this message lacks its values
                state.status = MALFORMED
                faults[i] = fault_of(error)
        if room is not None and len(state.elements) > room:
            return None
        status.append(state.status)
        mask.append(state.mask)
        position.append(state.position)
        values += state.values
    tables = (_columns(values, slots.WIDTH), _columns(state.topics, _TOPIC), _columns(state.wrapped, _WRAPPED))
    return Projection(status, mask, position, *tables, _columns(state.elements, len(slots.ELEMENTS)), faults)


def _columns(flat: Sequence[int], width: int) -> list[Sequence[int]]:
    """The columns of a table that is stored row by row."""
    return [flat[column::width] for column in range(width)]


def _jitted(
    buffer: Buffer, starts: Sequence[int], ends: Sequence[int], programs: Sequence[int], most: int | None
) -> Projection | None:
    import numpy as np

    from kcap.decode.projection_kernels import project_arrays

    found = project_arrays(
        buffer,
        _engines.table(),
        np.asarray(starts, np.int64),
        np.asarray(ends, np.int64),
        np.asarray(programs, np.int64),
        len(starts) + _ELEMENTS_ROOM,
        most,
    )
    if found is None:
        return None
    values, facts, topics, wrapped, elements = found
    columns: tuple[Any, ...] = (*facts, values, topics.T, wrapped.T, elements.T)
    return Projection(*columns)


def project(
    buffer: Buffer,
    starts: Sequence[int],
    ends: Sequence[int],
    programs: Sequence[int],
    *,
    engine: Engine = "auto",
) -> Projection:
    """Projects message i, whose body is `buffer[starts[i]:ends[i]]`, by its `program_index`; with -1, nothing is read.

    `engine` is for tests. "auto" uses compiled code, if available, once a process has projected enough for it to pay off.
    """
    found = project_some(buffer, starts, ends, programs, None, engine=engine)
    assert found is not None
    return found


def project_some(
    buffer: Buffer, starts: Sequence[int], ends: Sequence[int], programs: Sequence[int], most: int | None, *, engine: Engine
) -> Projection | None:
    """As `project`; None if the messages have more than `most` partitions, found before memory for many more is allocated."""
    if _engines.jit(len(starts), engine, len(buffer)):
        return _jitted(buffer, starts, ends, programs, most)
    return _plain(buffer, starts, ends, programs, most)


class Resumable:
    """Projects one body that arrives in pieces, by a program without partitions. It retains no more than an incomplete field,
    or a few pieces of small ones.

    It can be pickled. `result()` may be called at any time. Its texts and topics are spans in `kept`, and the spans of
    `wrapped` count from the start of the body.
    """

    __slots__ = (
        "_base", "_dense", "_last", "_tail", "_texts", "_topics", "counted", "fault", "kept", "shift", "state", "whole",
    )  # fmt: skip

    def __init__(self, program: int) -> None:
        self.state = State()
        self.state.begin(0, program, 0)
        self.kept = bytearray()
        """Names and ids that `result()` refers to."""
        self._tail = b""
        self._base = 0
        """Number of body bytes before the tail."""
        self._last = _NO_TOPIC
        """The last topic; the other half of its name and id may come with a later piece."""
        self._topics = 0
        """Number of the state's topics whose bytes are copied."""
        self._texts = 0
        """Presence bits of the texts whose bytes are copied."""
        self._dense = False
        """Whether the current fields are small."""
        self.whole: bytearray | None = None
        """The bytes from `shift` on, if spans of `wrapped` can be read; None otherwise."""
        self.shift = 0
        self.counted = 0
        """Number of records in spans of `wrapped` that were read and removed."""
        self.fault: Fault | None = None
        """The failure on one of these spans; None if there was none."""
        run(self.state, ROWS, b"", 0)

    def __getstate__(self) -> tuple[Any, ...]:
        # Rows are numbered in the order of first use, which differs between processes.
        return (
            place_of(self.state.pc), self.state, self.kept, self._tail, self._base, self._last, self._topics, self._texts,
            self.whole, self.shift, self.counted, self.fault, self._dense,
        )  # fmt: skip

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (place, offset), self.state, self.kept, self._tail, self._base, self._last, self._topics, self._texts = state[:8]
        self.whole, self.shift, self.counted, self.fault, self._dense = state[8:]
        self.state.pc = program_index(*place) + offset

    def restore(self, stored: bytes, names: int, read: int, passed: int, *, whole: bool) -> None:
        """Continues from `state` as the compiled interpreter left it after `passed` bytes of the body.

        `stored[:names]` has the names and ids that the state points into, `stored[read:]` the bytes that were not read yet.
        `whole`: from here on all bytes are stored.
        """
        state = self.state
        self.kept, self._tail = bytearray(stored[:names]), stored[read:]
        self._base = passed - len(self._tail)
        self._topics, self._texts = len(state.topics), state.mask >> _TEXTS << _TEXTS
        _, *last = state.topics[-_TOPIC:] or (0, *_NO_TOPIC)
        self._last = last[0], last[1], last[2]
        if whole:
            self.whole, self.shift = bytearray(stored), passed - len(stored)
            for at in range(0, len(state.wrapped), _WRAPPED):
                state.wrapped[at + 1] += self.shift
                state.wrapped[at + 2] += self.shift

    def feed(self, chunk: Buffer) -> None:
        """Takes the next bytes of the body."""
        state = self.state
        if self.whole is not None:
            self.whole += chunk
        if state.status in (MALFORMED, TRAILING) or not len(chunk):
            return
        if state.status == COMPLETE:
            state.status = TRAILING
            return
        size = len(self._tail) + len(chunk)
        if state.position > size and not self._tail:
            self._forget(size)
            return
        self._tail += chunk
        if not self._dense or size >= FED_GATHERED_BYTES:
            self._read_tail()

    def _read_tail(self) -> None:
        """Reads the bytes that it retains, up to an incomplete field."""
        state, buffer = self.state, self._tail
        size, wraps = len(buffer), len(state.wrapped)
        self._advance(buffer, size)
        self._keep(buffer, wraps)
        done = min(state.position, size)
        self._tail = buffer[done:]
        self._forget(done)

    def _advance(self, buffer: bytes, size: int) -> None:
        """Reads `buffer[:size]`: in Python if few steps cover many bytes, in compiled code if fields are small."""
        state, stop = self.state, 0
        while state.status == SHORT and stop < size:
            left = size - state.position
            if left < FED_COMPILED_BYTES:
                run(state, ROWS, buffer, size)
                return
            if self._dense:
                from kcap import kernels

                self._compiled(buffer, size) if kernels.worthwhile(left * _BYTE_NS) else run(state, ROWS, buffer, size)
                self._dense = state.position < size + FED_PROBED_BYTES
                return
            stop = state.position + FED_PROBED_BYTES
            run(state, ROWS, buffer, stop)
            self._dense = state.position < stop + FED_PROBED_BYTES
        if state.status == COMPLETE and stop < size:
            state.status = TRAILING

    def _compiled(self, buffer: bytes, size: int) -> None:
        """Runs over `buffer[:size]` in compiled code. The state is passed as arrays, with only the last of the topics."""
        import numpy as np

        from kcap.decode.projection_kernels import message

        state, left = self.state, size - self.state.position
        last = state.topics[-_TOPIC:]
        have = len(last) // _TOPIC
        topics = np.empty((have + left + 1, _TOPIC), np.int32)  # one per byte; unwritten memory is not allocated
        topics[:have] = np.array(last, np.int32).reshape(-1, _TOPIC)
        wrapped = np.empty((left // MESSAGE0_MIN + 2, _WRAPPED), np.int64)
        room = have + (state.topic_room - len(state.topics)) // _TOPIC
        numbers = np.array([*state.values, *state.counters, *state.ends, 1, *state.group, 0, room], np.int64)
        values, rest = numbers[: slots.WIDTH], numbers[slots.WIDTH :]
        many = opcodes.COUNTERS
        counters, ends, part = rest[:many], rest[many : 2 * many], rest[2 * many :]
        state.status, state.position, state.pc, state.mask, state.records_end, t, w = message(
            np.frombuffer(buffer, np.uint8), state.position, size, _engines.table(), state.pc, state.mask, state.records_end, 0,
            values.reshape(-1, 1), topics, have, wrapped, 0, np.empty((1, len(slots.ELEMENTS)), np.int64), part, counters, ends,
        )  # fmt: skip
        state.values, state.counters, state.ends = values.tolist(), counters.tolist(), ends.tolist()
        state.group = int(part[1]), int(part[2])
        del state.topics[len(state.topics) - len(last) :]
        state.topics.frombytes(topics[:t].tobytes())
        state.wrapped += wrapped[:w].ravel().tolist()

    @property
    def read(self) -> int:
        """Number of bytes of the body before an incomplete field."""
        return self._base

    def settled(self) -> bytes:
        """The bytes of an incomplete field, after everything before them was read."""
        if self._tail and self.state.status == SHORT:
            self._read_tail()
        return self._tail

    @property
    def held(self) -> int:
        """Memory that it takes besides its values, bytes."""
        state, whole = self.state, b"" if self.whole is None else self.whole
        spans = state.topics.itemsize * len(state.topics) + INTEGER_BYTES * len(state.wrapped)
        return len(self.kept) + len(self._tail) + len(whole) + spans

    def _forget(self, size: int) -> None:
        """Drops the first `size` bytes before the tail; the positions in the state are shifted."""
        state = self.state
        self._base += size
        state.position -= size
        if state.records_end >= 0:
            state.records_end -= size
        state.ends = [end - size for end in state.ends]

    def _copy(self, buffer: bytes, start: int, end: int) -> tuple[int, int]:
        if start < 0:
            return -1, -1
        at = len(self.kept)
        self.kept += buffer[start:end]
        return at, len(self.kept)

    def _keep(self, buffer: bytes, wraps: int) -> None:
        """Copies what the spans of this piece point at before it is released. `wrapped` is older up to `wraps`."""
        state = self.state
        for text in range(len(slots.TEXTS)):
            bit = 1 << _TEXTS + text
            if state.mask & bit & ~self._texts:
                self._texts |= bit
                at = _TEXTS + 2 * text
                state.values[at], state.values[at + 1] = self._copy(buffer, state.values[at], state.values[at + 1])
        topics, wrapped = state.topics, state.wrapped
        many = len(topics) - self._topics > _TOPIC * FED_PROBED_BYTES
        for at in range(max(0, self._topics - _TOPIC), self._topics if many else len(topics), _TOPIC):
            _, start, end, uuid = topics[at : at + _TOPIC]
            old = self._last if at < self._topics else _NO_TOPIC
            if start != old[0]:
                start, end = self._copy(buffer, start, end)
            if uuid != old[2]:
                uuid, _ = self._copy(buffer, uuid, uuid + _UUID)
            self._last = start, end, uuid
            topics[at + 1 : at + _TOPIC] = array("i", self._last)
        if many:
            self._keep_topics(buffer)
        self._topics = len(topics)
        for at in range(wraps, len(wrapped), _WRAPPED):
            wrapped[at + 1] += self._base
            wrapped[at + 2] += self._base

    def _keep_topics(self, buffer: bytes) -> None:
        """Copies the names and ids of many new topics at once."""
        import numpy as np

        topics, data = self.state.topics, np.frombuffer(buffer, np.uint8)
        rows = np.array(topics[self._topics :], np.int32).reshape(-1, _TOPIC)
        sizes = rows[:, 2] - rows[:, 1]
        for column, wide in (1, sizes), (3, np.where(rows[:, 3] < 0, 0, _UUID)):
            old, ends = rows[:, column], wide.cumsum()
            new = np.where(old < 0, -1, len(self.kept) + ends - wide)
            self.kept += data[np.repeat(old + wide - ends, wide) + np.arange(ends[-1])].tobytes()
            rows[:, column] = new
        rows[:, 2] = rows[:, 1] + sizes
        topics[self._topics :] = array("i", rows.tobytes())
        self._last = int(rows[-1, 1]), int(rows[-1, 2]), int(rows[-1, 3])

    def result(self) -> Projection:
        """The projection of the body so far, as a batch of one."""
        state = self.state
        if state.status == SHORT and self._tail:
            self._read_tail()
        return Projection(
            [state.status],
            [state.mask],
            [self._base + state.position],
            _columns(state.values, slots.WIDTH),
            _columns(state.topics, _TOPIC),
            _columns(state.wrapped, _WRAPPED),
            _columns(state.elements, len(slots.ELEMENTS)),
        )


@functools.cache
def acks_steps(version: int) -> tuple[tuple[int, int], ...] | None:
    """(op, size) of the rows of a Produce request up to its acks; None if the version is unknown."""
    plan = plan_for(PRODUCE, version, registry.REQUEST)
    if plan is None:
        return None
    steps = [(opcodes.TAGS, 0)] if registry.request_header_version(PRODUCE, version) > 1 else []
    for op, a, b, _ in plan.rows:
        if op == opcodes.INT and b == slots.SLOT["acks"]:
            break
        steps.append((op, a))
    return tuple(steps)


def acks_of_produce(buffer: Buffer, start: int, end: int, version: int) -> int | None:
    """`acks` of a Produce request whose body (after the client id) is `buffer[start:end]`: 0, 1 or -1.

    None if the bytes end before it or the version is unknown.
    """
    steps = acks_steps(version)
    if steps is None:
        return None
    at = start
    for op, size in steps:
        if at + 2 > end:
            return None
        if op == opcodes.FIXED:
            at += size
        elif op == opcodes.STRING:
            length = buffer[at] << 8 | buffer[at + 1]
            at += 2 + (length if length < 0x8000 else 0)
        elif op == opcodes.COMPACT_STRING and buffer[at] < 128:
            at += buffer[at] or 1
        elif op == opcodes.TAGS and buffer[at] == 0:
            at += 1
        else:
            return _acks_slowly(bytes(buffer[start:end]), version)
    if at + 2 > end:
        return None
    acks = buffer[at] << 8 | buffer[at + 1]
    return acks - 0x10000 if acks & 0x8000 else acks


def _acks_slowly(body: bytes, version: int) -> int | None:
    """Finds the acks with the interpreter, for long names and header tags."""
    projection = project(body, [0], [len(body)], [program_index(PRODUCE, version, registry.REQUEST)], engine="plain")
    return projection.column("acks")[0]
