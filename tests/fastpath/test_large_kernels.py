"""Large frames that are read as they pass say what the resumable reader says of the same bytes, however they are cut."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.arrays.arrow import of_type
from kcap.decode import slots
from kcap.decode.interpreter import MALFORMED
from kcap.decode.programs import program_index
from kcap.decode.projection import Resumable, project
from kcap.fastpath import layout as at
from kcap.fastpath.large_frames import LargeFrames
from kcap.fastpath.large_kernels import open_large, take_large
from kcap.kafka.body_values import REQUEST, RESPONSE, values_of
from kcap.kafka.headers import FETCH, PRODUCE
from kcap.kernels import compiled
from kcap.table.batch_headers import COLUMNS as FACTS
from kcap.table.batch_headers import BatchFacts
from kcap.table.partition_pairs import HEADED
from kcap.table.partitions import KINDS, OF_RECORDS


@compiled
def opened(program, size, big, meta):  # type: ignore[no-untyped-def]
    return open_large(program, size, limits.FRAME_HEAD_KEPT, big, meta)


@compiled
def taken(data, start, end, frame, big):  # type: ignore[no-untyped-def]
    return take_large(data, start, end, frame, big)


def batch(size: int, count: int, codec: int = 0) -> bytes:
    """A record batch of format version 2 with `size` bytes of records."""
    head = struct.pack(">iibIhiqqqhii", size + 49, 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, count)
    return struct.pack(">q", 7) + head + b"\xaa" * size


def message(size: int, codec: int = 0, magic: int = 1) -> bytes:
    """A message of format version 0 or 1 with a value of `size` bytes."""
    times = struct.pack(">q", 5) if magic else b""
    body = struct.pack(">Ibb", 0, magic, codec) + times + struct.pack(">ii", -1, size) + b"\xbb" * size
    return struct.pack(">qi", 3, len(body)) + body


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Batches and messages, sometimes cut."""
    sizes = st.one_of(st.integers(0, 40), st.integers(200, 9000))
    kinds = st.one_of(
        st.builds(batch, sizes, st.integers(-1, 50), st.integers(0, 4)),
        st.builds(message, sizes, st.sampled_from((0, 0, 1)), st.integers(0, 1)),
    )
    made = b"".join(draw(st.lists(kinds, max_size=6)))
    return made[: draw(st.integers(0, len(made)))] if draw(st.booleans()) else made


@st.composite
def bodies(draw: st.DrawFn) -> tuple[int, bytes]:
    """Produce requests and Fetch responses with their programs; some are damaged or end early."""
    topics = draw(st.lists(st.tuples(st.integers(1, 40), st.lists(records(), max_size=4)), max_size=4))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        parts = struct.pack(">i", len(topics))
        for name, sets in topics:
            count = draw(st.integers(0, 200)) * len(sets)
            parts += struct.pack(">h", name) + b"t" * name + struct.pack(">i", count)
            parts += b"".join(struct.pack(">ihqq", at, at % 5, 7, -1) for at in range(count))
        parts += struct.pack(">i", 3)
        program = program_index(PRODUCE, 3, RESPONSE)
    elif kind == 1:
        parts = struct.pack(">hhii", -1, 1, 500, len(topics))
        for name, sets in topics:
            parts += struct.pack(">h", name) + b"t" * name + struct.pack(">i", len(sets))
            parts += b"".join(struct.pack(">ii", 0, len(each)) + each for each in sets)
        program = program_index(PRODUCE, 3, REQUEST)
    else:
        parts = struct.pack(">ihii", 9, 0, 77, len(topics))
        for name, sets in topics:
            parts += struct.pack(">h", name) + b"t" * name + struct.pack(">i", len(sets))
            parts += b"".join(struct.pack(">ihqqqiii", 1, 0, 5, 5, 0, -1, -1, len(each)) + each for each in sets)
        program = program_index(FETCH, 11, RESPONSE)
    data = bytearray(parts)
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return program, bytes(data)[: draw(st.sampled_from((len(data), len(data), len(data) // 2)))]


@given(bodies(), st.lists(st.integers(1, 4000), max_size=40), st.integers(0, 40))
def test_as_the_resumable_reader(body: tuple[int, bytes], sizes: list[int], change: int) -> None:
    """Whatever the cuts; also where another reader continues from the state in between."""
    program, data = body
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.meta[at.M_EXCERPTS] = 1
    large.make_room()
    frame = opened(program, limits.FRAME_BYTES_MAX, large.arrays, large.meta)
    other = opened(program, limits.FRAME_BYTES_MAX, large.arrays, large.meta)
    plain, changed, start = Resumable(program), None, 0
    array = np.frombuffer(data or b"\0", np.uint8)
    for number, size in enumerate([*sizes, len(data)]):
        end = min(start + size, len(data))
        if number == change:
            changed = large.reader(frame + at.LARGE_BASE)
        if changed is not None:
            changed.feed(data[start:end])
        plain.feed(data[start:end])
        assert taken(array, start, end, frame, large.arrays) == end
        assert taken(array, start, min(end, start + 9), other, large.arrays) == min(end, start + 9)  # side by side
        start = end
    assert values_of(large.reader(frame + at.LARGE_BASE)) == values_of(plain)
    assert changed is None or values_of(changed) == values_of(plain)
    assert large.used == 2


def test_little_is_stored() -> None:
    """Of a frame with three batches of 300 kB less than 800 bytes; a frame that is malformed is passed over."""
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.meta[at.M_EXCERPTS] = 1
    large.make_room()
    for head, stored in ((struct.pack(">hhii", -1, 1, 500, 1), 800), (struct.pack(">hhii", -1, 1, 500, -9), 300)):
        sets = batch(300_000, 9) * 3
        body = head + struct.pack(">h", 1) + b"t" + struct.pack(">iii", 1, 0, len(sets)) + sets
        frame = opened(program_index(PRODUCE, 3, REQUEST), len(body), large.arrays, large.meta)
        data = np.frombuffer(body, np.uint8)
        for start in range(0, len(body), 1400):
            end = min(start + 1400, len(body))
            assert taken(data, start, end, frame, large.arrays) == end
        assert large.arrays.large[frame, at.L_TOP] < stored
        assert large.arrays.large[frame, at.L_PASSED] == len(body)
    assert large.arrays.large[frame, at.L_STATUS] == MALFORMED


def test_of_small_fields_what_was_read_is_not_stored() -> None:
    """Of a response with 50,000 partitions its topic's name alone; of a request its first bytes, among which its acks are."""
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.make_room()
    parts = b"".join(struct.pack(">ihqq", number, 0, 7, -1) for number in range(50_000))
    body = struct.pack(">i", 1) + b"\0\4name" + struct.pack(">i", 50_000) + parts + struct.pack(">i", 3)
    data = np.frombuffer(body, np.uint8)
    for side, most in (RESPONSE, limits.FAST_PATH_LARGE_PIECE), (REQUEST, limits.FRAME_HEAD_KEPT + 300):
        head = limits.FRAME_HEAD_KEPT if side == REQUEST else 0
        frame = open_large(program_index(PRODUCE, 3, RESPONSE), len(body), head, large.arrays, large.meta)
        stored = 0
        for start in range(0, len(body), 1400):
            end = min(start + 1400, len(body))
            assert taken(data, start, end, frame, large.arrays) == end
            stored = max(stored, large.arrays.large[frame, at.L_TOP])
        assert head <= stored < most
        first = min(head, limits.FAST_PATH_LARGE_PIECE)
        assert large.arrays.stored[frame, :first].tobytes() == body[:first]
        values = large.take(frame + at.LARGE_BASE)
        assert values.values[slots.PARTITION_COUNT] == 50_000
        assert values.topics.names == b"name"
        assert values.excerpts == ()  # none were kept


def test_what_excerpts_of_all_frames_hold_is_bounded() -> None:
    """With more no further bytes are kept; a frame that is gone leaves its room to others."""
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.meta[at.M_EXCERPTS] = 1
    large.make_room()
    body = struct.pack(">hhii", -1, 1, 500, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">iii", 1, 0, 100) + batch(30, 1)
    data, program = np.frombuffer(body, np.uint8), program_index(PRODUCE, 3, REQUEST)

    def slot_of_next() -> int:
        frame = opened(program, len(body), large.arrays, large.meta)
        taken(data, 0, len(body), frame, large.arrays)
        return int(frame) + at.LARGE_BASE

    assert large.take(slot_of_next()).excerpts != ()
    assert large.arrays.excerpted_bytes[0] == 0
    first = slot_of_next()
    held = int(large.arrays.excerpted_bytes[0])
    large.arrays.excerpted_bytes[0] = limits.FAST_PATH_EXCERPTED_MAX - held
    assert large.excerpts(slot_of_next()) != ()
    assert large.excerpts(slot_of_next()) == ()
    large.release(first)
    assert large.excerpts(slot_of_next()) != ()


def test_a_row_that_held_much_gives_its_memory_back() -> None:
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.make_room()
    for size, left in (limits.FAST_PATH_LARGE_KEPT, 1), (limits.FAST_PATH_LARGE_KEPT + 1, 0):
        frame = opened(program_index(PRODUCE, 3, REQUEST), 1 << 20, large.arrays, large.meta)
        large.arrays.stored[frame, :size], large.arrays.large[frame, at.L_TOP] = 1, size
        large.release(frame + at.LARGE_BASE)
        assert large.arrays.stored[frame, 0] == left


@given(bodies(), st.lists(st.integers(1, 4000), max_size=40))
def test_excerpts_are_enough_but_for_the_records(body: tuple[int, bytes], sizes: list[int]) -> None:
    """Law: partitions and batch headers read from excerpts, with zeros between them, are those read from all of the body."""
    program, data = body
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.meta[at.M_EXCERPTS] = 1
    large.make_room()
    slot = opened(program, limits.FRAME_BYTES_MAX, large.arrays, large.meta) + at.LARGE_BASE
    array, start = np.frombuffer(data or b"\0", np.uint8), 0
    for size in [*sizes, len(data)]:
        end = min(start + size, len(data))
        assert taken(array, start, end, slot - at.LARGE_BASE, large.arrays) == end
        start = end
    excerpts = large.excerpts(slot)
    values = large.take(slot)
    assert values.excerpts == excerpts
    if values.values[slots.MAGICS] not in HEADED:
        return
    room = bytearray(len(data))
    for place, part in excerpts:
        assert data[place : place + len(part)] == part
        room[place : place + len(part)] = part
    assert excerpts[-1] == (len(data), b"")
    produced = program == program_index(PRODUCE, 3, REQUEST)
    answered = program == program_index(PRODUCE, 3, RESPONSE)
    apart = program_index(PRODUCE if produced or answered else FETCH, 3 if produced or answered else 11, 1 - produced, True)
    for engine in ("plain", "jit"):
        whole, parts = (project(bytes(each), [0], [len(data)], [apart], engine=engine) for each in (data, room))
        for name in ("status", "mask", "position", "topics", "elements"):
            assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    starts, ends = (np.array(whole.elements[column], np.int64) for column in (slots.RECORDS_START, slots.RECORDS_END))
    found, made = (BatchFacts(bytes(each), starts, ends) for each in (data, room))
    for name in set(KINDS) & set(FACTS) - OF_RECORDS:
        both = [of_type(each.column(name, KINDS[name]), KINDS[name]) for each in (found, made)]
        assert both[0].equals(both[1]), name


def test_a_frame_of_many_batches_has_no_excerpts() -> None:
    """More batch headers than there is room for: its partitions are read from the file again."""
    large = LargeFrames(np.zeros(at.META_WIDTH, np.int64))
    large.meta[at.M_EXCERPTS] = 1
    large.make_room()
    sets = batch(400, 1) * (limits.FAST_PATH_EXCERPTS + 10)
    body = struct.pack(">hhii", -1, 1, 500, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">iii", 1, 0, len(sets)) + sets
    slot = opened(program_index(PRODUCE, 3, REQUEST), len(body), large.arrays, large.meta) + at.LARGE_BASE
    data, reached = np.frombuffer(body, np.uint8), 0
    reached = taken(data, 0, len(body), slot - at.LARGE_BASE, large.arrays)
    assert reached == len(body)
    assert large.take(slot).excerpts == ()
