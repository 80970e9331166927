"""The row projection equals the tree, however it is computed and however the bytes are cut."""

import pickle
import random
import struct
import subprocess
import sys
from array import array
from importlib.util import find_spec
from typing import Any

import pytest

from kcap.decode import projection, slots
from kcap.decode.interpreter import COMPLETE, MALFORMED, SHORT, TRAILING, UNKNOWN
from kcap.decode.programs import with_partitions
from kcap.decode.projection import Projection, Resumable, project
from kcap.limits import FED_PROBED_BYTES, PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE
from tests.decode.samples import body_of, program, sample, vectors

NAMES = (*slots.SLOTS, *slots.TEXTS)


def batch(found: list[dict[str, Any]]) -> tuple[bytes, list[int], list[int], list[int]]:
    """Many bodies in one buffer: (buffer, starts, ends, programs)."""
    buffer, starts, ends = bytearray(), [], []
    for vector in found:
        starts.append(len(buffer))
        buffer += body_of(vector)
        ends.append(len(buffer))
    return bytes(buffer), starts, ends, [program(vector) for vector in found]


def read(result: Projection, buffer: bytes, at: int) -> dict[str, Any]:
    """What a projection says of message `at`, by name, in values."""
    found: dict[str, Any] = {}
    for bit, name in enumerate(NAMES):
        if not int(result.mask[at]) >> bit & 1:
            continue
        if name in slots.SLOT:
            found[name] = int(result.values[bit][at])
        else:
            first = len(slots.SLOTS) + 2 * slots.TEXT[name]
            start, end = (int(result.values[first + side][at]) for side in (0, 1))
            found[name] = None if start < 0 else buffer[start:end]
    found["topics"] = [
        (None if start < 0 else buffer[start:end], None if uuid < 0 else buffer[uuid : uuid + 16])
        for message, start, end, uuid in zip(*result.topics, strict=True)
        if message == at
    ]
    found["wrapped"] = sum(int(message) == at for message in result.wrapped[0])
    return found


def text(value: Any) -> Any:
    """Spans are bytes, the tree has text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def equal(a: Projection, b: Projection) -> bool:
    """Whether two projections are the same numbers, in lists or arrays."""
    pairs = [(a.status, b.status), (a.mask, b.mask), (a.position, b.position)]
    for name in ("values", "topics", "wrapped"):
        pairs += zip(getattr(a, name), getattr(b, name), strict=True)
    return all(list(x) == list(y) for x, y in pairs)


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_programs_with_partitions_give_all_that_the_others_give(engine: projection.Engine) -> None:
    """Law: partitions come in addition, on whole bodies, on bodies cut anywhere and on damaged ones."""
    if engine == "jit":
        pytest.importorskip("numba")
    chance = random.Random(7)
    buffer, starts, ends, programs = batch(vectors("messages"))
    every = [with_partitions(number) for number in programs]
    assert sum(one != other for one, other in zip(programs, every)) > 100

    def checked(data: bytes, stops: list[int]) -> None:
        plain, more = (project(data, starts, stops, some, engine=engine) for some in (programs, every))
        assert [list(column) for column in (plain.status, plain.mask)] == [list(column) for column in (more.status, more.mask)]
        for one, other in zip((*plain.topics, *plain.wrapped), (*more.topics, *more.wrapped), strict=True):
            assert list(one) == list(other)
        for at in chance.sample(range(len(starts)), min(len(starts), 300)):
            assert read(plain, data, at) == read(more, data, at)

    checked(buffer, ends)
    checked(buffer, [chance.randint(start, end) for start, end in zip(starts, ends, strict=True)])
    damaged = bytearray(buffer)
    for start, end in zip(starts, ends, strict=True):
        for _ in range(3 if end > start else 0):
            damaged[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
    checked(bytes(damaged), ends)


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_too_many_partitions_are_found_out(engine: projection.Engine) -> None:
    if engine == "jit":
        pytest.importorskip("numba")
    wide = (4000).to_bytes(4, "big") + bytes(4000 * 4)
    body = b"\0\1x" + bytes(10) + b"\0\0\0\1\0\1t" + wide
    spans = [0, 0], [len(body)] * 2, [projection.program_index(24, 0, 0, True)] * 2
    assert projection.project_some(body, *spans, 7_999, engine=engine) is None
    found = projection.project_some(body, *spans, 8_000, engine=engine)
    assert found is not None
    assert len(found.elements[0]) == 8_000


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_a_topic_takes_sixteen_bytes(engine: projection.Engine) -> None:
    """Law: bodies of a batch have room for millions of topics, whose places have 32 bits each."""
    if engine == "jit":
        pytest.importorskip("numba")
    many, index = 100_000, projection.program_index(20, 1, 0)
    body = many.to_bytes(4, "big") + b"\0\1t" * many + bytes(4)
    found = project(body * 2, [0, len(body)], [len(body), 2 * len(body)], [index] * 2, engine=engine)
    assert [len(column) for column in found.topics] == [2 * many] * 4
    assert {memoryview(column).itemsize for column in found.topics} == {4}  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_topics_without_a_letter_that_follow_one_another_are_one(engine: projection.Engine) -> None:
    """Law: names of no letter and names that are null have one place in a row, of each message its own; ids keep theirs."""
    if engine == "jit":
        pytest.importorskip("numba")
    index, id_index = projection.program_index(24, 0, 0, True), projection.program_index(3, 12, 0)
    body = b"\0\1x" + bytes(10) + b"\0\0\0\6" + b"".join(
        struct.pack(">h", len(name)) + name + struct.pack(">ii", 1, 7) for name in (b"", b"", b"t", b"", b"", b"u")
    )  # fmt: skip
    ids = b"\0\5" + b"".join(bytes([i]) * 16 + b"\0\0" for i in (1, 1, 2, 2)) + b"\0\0\0"
    data, cuts = body + body + ids, [0, len(body), 2 * len(body), 2 * len(body) + len(ids)]
    found = project(data, cuts[:3], cuts[1:], [index, index, id_index], engine=engine)
    assert list(found.status) == [COMPLETE] * 3
    message, start, end, uuid = (list(map(int, column)) for column in found.topics)
    assert message == [0] * 4 + [1] * 4 + [2] * 4
    assert [data[low:high] for low, high in zip(start[:8], end)] == [b"", b"t", b"", b"u"] * 2
    assert start[8:] == [-1] * 4
    assert min(uuid[8:]) > 0
    assert [int(at) for at in found.elements[slots.TOPIC]] == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_topics_of_a_message_are_bounded(engine: projection.Engine) -> None:
    """Law: a message has places for so many and for its last; the next message has its own, and pieces make no difference."""
    if engine == "jit":
        pytest.importorskip("numba")
    many, index = TOPICS_OF_MESSAGE + 3, projection.program_index(24, 0, 0, True)
    body = b"\0\1x" + bytes(10) + many.to_bytes(4, "big") + b"\0\1t\0\0\0\0" * (many - 1) + b"\0\1u\0\0\0\1\0\0\0\7"
    small = b"\0\1x" + bytes(10) + b"\0\0\0\1\0\1v\0\0\0\1\0\0\0\x08"
    found = project(body + small, [0, len(body)], [len(body), len(body) + len(small)], [index] * 2, engine=engine)
    assert list(found.status) == [COMPLETE] * 2
    message, start, end, _ = (list(map(int, column)) for column in found.topics)
    assert message == [0] * (TOPICS_OF_MESSAGE + 1) + [1]
    assert [(body + small)[low:high] for low, high in list(zip(start, end))[-3:]] == [b"t", b"u", b"v"]
    assert list(found.elements[slots.TOPIC]) == [TOPICS_OF_MESSAGE, TOPICS_OF_MESSAGE + 1]


def test_topics_of_a_message_in_pieces_are_bounded(pieces: str) -> None:
    """Law: such a message has the same places however it comes."""
    number, body = listing([b"t"] * (TOPICS_OF_MESSAGE + 2) + [b"u"])
    resumed = Resumable(number)
    for at in range(0, len(body), 300_000):
        resumed.feed(body[at : at + 300_000])
    topics = resumed.result().topics
    assert len(topics[0]) == TOPICS_OF_MESSAGE + 1
    assert resumed.kept[topics[1][-1] : topics[2][-1]] == b"u"


@pytest.mark.parametrize("engine", ["plain", "jit"])
def test_partitions_of_a_message_are_bounded(engine: projection.Engine) -> None:
    """Law: a message has places for so many and for its last; the next message has its own."""
    if engine == "jit":
        pytest.importorskip("numba")
    many = PARTITIONS_OF_MESSAGE + 3
    wide = many.to_bytes(4, "big") + b"".join(number.to_bytes(4, "big") for number in range(many))
    body = b"\0\1x" + bytes(10) + b"\0\0\0\1\0\1t"
    small = body + (2).to_bytes(4, "big") + b"\0\0\0\7\0\0\0\x08"
    size = len(body) + len(wide)
    found = project(
        body + wide + small, [0, size], [size, size + len(small)], [projection.program_index(24, 0, 0, True)] * 2, engine=engine
    )
    assert found.column("partition_count") == [many, 2]
    assert list(found.status) == [COMPLETE] * 2
    assert list(found.elements[slots.MESSAGE]) == [0] * (PARTITIONS_OF_MESSAGE + 1) + [1] * 2
    assert list(found.elements[slots.PARTITION]) == [*range(PARTITIONS_OF_MESSAGE), many - 1, 7, 8]


def test_a_cut_body_keeps_what_stands_before_the_cut() -> None:
    """Law: of a body cut at any byte each value is that of the whole, or missing; the last byte makes it complete."""
    chance = random.Random(5)
    for vector in chance.sample(sample("messages"), 120):
        body = body_of(vector)
        whole = read(project(body, [0], [len(body)], [program(vector)], engine="plain"), body, 0)
        cuts = sorted(chance.sample(range(len(body)), min(len(body), 60)))
        result = project(body, [0] * len(cuts), cuts, [program(vector)] * len(cuts), engine="plain")
        for at in range(len(cuts)):
            part = read(result, body, at)
            topics, wrapped = part.pop("topics"), part.pop("wrapped")
            assert result.status[at] == SHORT
            assert part.items() <= whole.items()
            assert wrapped <= whole["wrapped"]
            # The last topic may lack the half that joins it.
            assert topics[:-1] == whole["topics"][: max(0, len(topics) - 1)]


def same_message(resumed: Resumable, body: bytes, number: int) -> None:
    one, whole = resumed.result(), project(body, [0], [len(body)], [number], engine="plain")
    assert (one.status, one.mask, one.position) == (whole.status, whole.mask, whole.position)
    assert read(one, bytes(resumed.kept), 0) == read(whole, body, 0)
    assert one.wrapped == whole.wrapped


@pytest.fixture(params=["plain", "compiled"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a Resumable reads its pieces: in Python, or in compiled code from the second byte on."""
    way: str = request.param
    if way == "compiled":
        pytest.importorskip("numba")
        projection.load_compiled()
        monkeypatch.setattr(projection, "FED_PROBED_BYTES", 1)
        monkeypatch.setattr(projection, "FED_COMPILED_BYTES", 1)
    else:
        monkeypatch.setattr(projection, "FED_COMPILED_BYTES", 1 << 62)
    return way


def test_a_body_in_pieces_equals_the_whole(pieces: str) -> None:
    """Law: a Resumable fed in any pieces, pickled anywhere, equals one call."""
    chance = random.Random(2)
    for vector in vectors("messages"):
        body, number = body_of(vector), program(vector)
        resumed, at = Resumable(number), 0
        while at < len(body):
            size = chance.randint(1, chance.choice((3, 40, 400)))
            resumed.feed(body[at : at + size])
            at += size
            if chance.random() < 0.02:
                resumed = pickle.loads(pickle.dumps(resumed))
        same_message(resumed, body, number)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bodies_in_pieces(pieces: str, seed: int) -> None:
    """The same for bodies with a byte changed, some bytes more or some less."""
    chance = random.Random(seed)
    for vector in chance.sample(sample("messages"), 40):
        body = bytearray(body_of(vector))
        if body:
            body[chance.randrange(len(body))] = chance.randrange(256)
        body += chance.randbytes(chance.randrange(5))
        body = body[: chance.randint(0, len(body))]
        resumed, step = Resumable(program(vector)), chance.randint(1, 50)
        for at in range(0, len(body), step):
            resumed.feed(body[at : at + step])
        same_message(resumed, bytes(body), program(vector))


def listing(names: list[bytes]) -> tuple[int, bytes]:
    """A Metadata request of version 1 for these topics: its program, and its body."""
    entries = b"".join(struct.pack(">h", len(name)) + name for name in names)
    return projection.program_index(3, 1, 0), struct.pack(">i", len(names)) + entries


@pytest.mark.parametrize("size", [700, 30_000, 1 << 20])
def test_small_fields_in_pieces_are_read_in_compiled_code(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: of names, ids and small messages Python reads the first bytes of a piece alone, and what is found is the same."""
    pytest.importorskip("numba")
    projection.load_compiled()
    read_plainly, plain = [0], projection.run

    def counted(state: Any, rows: Any, buffer: bytes, end: int) -> None:
        before = state.position
        plain(state, rows, buffer, end)
        read_plainly[0] += min(state.position, end) - before

    number, names = listing([b""] * 40_000 + [b"t%d" % at for at in range(9_000)] + [b"", b"x"] * 2_000)
    id_number, ids = projection.program_index(3, 12, 0), b"\0\xa9\x46" + b"".join(
        (at % 7).to_bytes(16, "big") + bytes([at % 5]) + b"abcd"[: max(0, at % 5 - 1)] + b"\0" for at in range(9_000)
    ) + b"\0\0\0"  # fmt: skip
    small = struct.pack(">qiIbbii", 0, 14, 0, 0, 0, -1, -1)
    head = b"\xff\xff" + struct.pack(">hiih", -1, 1000, 1, 1) + b"t" + struct.pack(">ii", 1, 0)
    produce, records = projection.program_index(0, 3, 0), head + struct.pack(">i", len(small) * 9_000) + small * 9_000
    for program_, body in ((number, names), (id_number, ids), (produce, records)):
        read_plainly[0], resumed = 0, Resumable(program_)
        with monkeypatch.context() as patch:
            patch.setattr(projection, "run", counted)
            for at in range(0, len(body), size):
                resumed.feed(body[at : at + size])
        same_message(resumed, body, program_)
        assert list(resumed.result().status) == [COMPLETE]
        assert read_plainly[0] <= (len(body) // size + 1) * 4 * FED_PROBED_BYTES


def test_a_large_frame_is_stepped_over() -> None:
    """Records of a frame that arrives in pieces are not gathered."""
    vector = next(v for v in sample("messages") if v["api"] == "Produce" and v["kind"] == "request" and v["version"] == 3)
    plan_body = bytes.fromhex("ffff0001000003e8000000010001740000000100000000".replace(" ", ""))
    batch_bytes = bytes(8) + (8 << 20).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(8 << 20)
    records = batch_bytes[: 12 + (8 << 20)]
    body = plan_body + len(records).to_bytes(4, "big") + records
    resumed = Resumable(program(vector))
    for at in range(0, len(body), 1460):
        resumed.feed(body[at : at + 1460])
        assert len(resumed._tail) < 100
    result = resumed.result()
    assert list(result.status) == [COMPLETE]
    assert result.column("records_bytes") == [len(records)]
    assert result.column("batch_count") == [1]


def test_status_tells_how_a_body_ended() -> None:
    """Complete, short, malformed, bytes behind."""
    vector = next(v for v in sample("messages") if v["api"] == "Heartbeat" and v["version"] == 4 and v["kind"] == "request")
    body, number = body_of(vector), program(vector)
    bad = bytearray(body)
    bad[1:6] = b"\xff\xff\xff\xff\xff"
    bodies = [body, body[:-1], bytes(bad), body + b"\0"]
    got = [project(b, [0], [len(b)], [number]).status[0] for b in bodies]
    assert got == [COMPLETE, SHORT, MALFORMED, TRAILING]


def test_acks_come_through_the_plan() -> None:
    """acks of every Produce version, with and without transactional id; None before it is there."""
    found = [v for v in vectors("messages") if v["api_key"] == 0 and v["kind"] == "request"]
    assert len({v["version"] for v in found}) > 3
    for vector in found:
        body, version = body_of(vector), vector["version"]
        assert projection.acks_of_produce(body, 0, len(body), version) == vector["body"]["acks"]
        assert projection.acks_of_produce(body, 0, 1, version) is None
        assert projection.acks_of_produce(b"\0" * 5 + body, 5, 5 + len(body), version) == vector["body"]["acks"]
    assert projection.acks_of_produce(b"\0" * 64, 0, 64, 99) is None


def test_acks_behind_a_long_name_and_header_tags() -> None:
    """The slow way is taken where a length has two bytes or the header has tags, and gives the same."""
    name = b"x" * 200
    plain = b"\x00" + b"\xc9\x01" + name + b"\xff\xff" + b"\0" * 4
    tagged = b"\x01\x07\x02ab" + b"\xc9\x01" + name + b"\x00\x01" + b"\0" * 4
    assert projection.acks_of_produce(plain, 0, len(plain), 9) == -1
    assert projection.acks_of_produce(tagged, 0, len(tagged), 9) == 1


def test_columns_by_name() -> None:
    """The helpers say None for what a message does not have."""
    found = [v for v in sample("messages") if v["api"] in ("Heartbeat", "Produce") and v["kind"] == "request"]
    buffer, starts, ends, programs = batch(found)
    result = project(buffer, starts, ends, programs)
    assert len(result) == len(found)
    assert result.column("acks") == [v["body"].get("acks") for v in found]
    number, first = slots.TEXT["group_id"], len(slots.SLOTS)
    at, bit = first + 2 * number, first + number
    spans = zip(result.values[at], result.values[at + 1], result.mask, strict=True)
    groups = [buffer[start:end].decode() if mask >> bit & 1 else None for start, end, mask in spans]
    assert groups == [v["body"].get("groupId") for v in found]
    assert len(project(b"", [], [], [])) == 0


def test_messages_of_unknown_apis_are_left_out() -> None:
    """Program -1: no value, no status of reading, by either interpreter."""
    vector = next(v for v in sample("messages") if v["api"] == "Heartbeat" and v["kind"] == "request")
    body, number = body_of(vector), program(vector)
    for engine in ("plain", "jit") if find_spec("numba") else ("plain",):
        result = project(body * 2, [0, len(body)], [len(body), 2 * len(body)], [-1, number], engine=engine)  # type: ignore[arg-type]
        assert (int(result.status[0]), int(result.mask[0]), int(result.position[0])) == (UNKNOWN, 0, 0)
        assert int(result.status[1]) == COMPLETE


def test_everything_works_without_numba() -> None:
    """Where numba is not installed the plain interpreter goes on, whatever the batch."""
    run = (
        "import sys\n"
        "sys.modules['numba'] = None\n"
        "from kcap.decode import projection\n"
        "projection.JIT_AFTER = 0\n"
        "number = projection.program_index(12, 0, 1)\n"
        "assert projection.project(bytes(2), [0] * 9, [2] * 9, [number] * 9).column('error_code') == [0] * 9\n"
    )
    assert subprocess.run([sys.executable, "-c", run], check=False).returncode == 0


def test_numba_is_taken_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small inputs never import it; after enough messages it is used, with the same result."""
    pytest.importorskip("numba")
    buffer, starts, ends, programs = batch(sample("messages"))
    monkeypatch.setattr(projection._engines, "messages", 0)
    plain = project(buffer, starts, ends, programs)
    assert isinstance(plain.status, list)
    monkeypatch.setattr(projection, "JIT_AFTER", 1)
    jitted = project(buffer, starts, ends, programs)
    assert not isinstance(jitted.status, list)
    assert equal(plain, jitted)


def test_wide_messages_count_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages with thousands of partitions each are as much work as thousands."""
    pytest.importorskip("numba")
    wide = (4000).to_bytes(4, "big") + bytes(4000 * 4)
    body = b"\0\1x" + bytes(10) + b"\0\0\0\1\0\1t" + wide
    number = projection.program_index(24, 0, 0, True)
    monkeypatch.setattr(projection._engines, "messages", 0)
    plain = project(body, [0], [len(body)], [number])
    assert isinstance(plain.status, list)
    assert {(type(column), column.itemsize) for column in plain.elements} == {(array, 8)}, "no objects"
    monkeypatch.setattr(projection, "JIT_AFTER", 16)
    jitted = project(body, [0], [len(body)], [number])
    assert not isinstance(jitted.status, list)
    assert [list(column) for column in plain.elements] == [column.tolist() for column in jitted.elements]
    assert len(jitted.elements[0]) == 4000
