"""The compiled interpreter's own matters; its law (equal to the plain one) is tested with the projection."""

import random

import pytest

from kcap.decode.interpreter import MALFORMED, SHORT
from kcap.decode.projection import Projection, project
from tests.decode.samples import body_of, program, sample, vectors
from tests.decode.test_projection import batch, equal

pytest.importorskip("numba")


def test_side_buffers_grow() -> None:
    """A message with more topics than there is room for is done again with more room."""
    vector = next(v for v in sample("messages") if v["api"] == "Metadata" and v["version"] == 0 and v["kind"] == "request")
    names = b"".join(b"\0\3" + b"%03d" % n for n in range(900))
    bodies = [body_of(vector), (900).to_bytes(4, "big") + names, body_of(vector)]
    buffer = b"".join(bodies)
    starts = [0, len(bodies[0]), len(bodies[0]) + len(bodies[1])]
    ends = [*starts[1:], len(buffer)]
    results: list[Projection] = [
        project(buffer, starts, ends, [program(vector)] * 3, engine=engine)
        for engine in ("plain", "jit")  # type: ignore[arg-type]
    ]
    plain, jitted = ([list(column) for column in result.topics] for result in results)
    assert plain == jitted
    assert len(plain[0]) >= 900


def test_wrapped_messages_grow_too() -> None:
    """The same for compressed messages of magic 0 and 1."""
    message = bytes(8) + (14).to_bytes(4, "big") + bytes(4) + b"\0\1" + b"\xff" * 8
    records = message * 300
    body = bytes.fromhex("ffff000000000000000100000000000100000000") + len(records).to_bytes(4, "big") + records
    vector = next(v for v in sample("messages") if v["api"] == "Produce" and v["version"] == 0 and v["kind"] == "request")
    result = project(body, [0], [len(body)], [program(vector)], engine="jit")
    assert len(result.wrapped[0]) == 300
    assert result.column("codecs") == [2]
    assert result.column("record_count") == [0]


def test_both_know_what_was_not_read_to_its_end() -> None:
    some = [vector for vector in sample("messages") if body_of(vector)][::7]
    buffer, starts, ends = bytearray(), [], []
    for at, vector in enumerate(some):
        starts.append(len(buffer))
        buffer += body_of(vector)
        ends.append(len(buffer) - at % 2)
    numbers = [program(vector) for vector in some]
    plain, jitted = project(buffer, starts, ends, numbers, engine="plain"), project(buffer, starts, ends, numbers, engine="jit")
    assert plain.unread() == jitted.unread()
    assert 0 < len(plain.unread()) < len(some)
    assert plain.unread() == [at for at, ended in enumerate(plain.status) if ended in (SHORT, MALFORMED)]


def test_compiled_equals_plain() -> None:
    """Law: jitted = plain, on whole bodies, on bodies cut anywhere and on damaged ones."""
    pytest.importorskip("numba")
    chance = random.Random(11)
    buffer, starts, ends, programs = batch(vectors("messages"))
    assert equal(project(buffer, starts, ends, programs, engine="plain"), project(buffer, starts, ends, programs, engine="jit"))
    for _ in range(6):
        cuts = [chance.randint(start, end) for start, end in zip(starts, ends, strict=True)]
        plain = project(buffer, starts, cuts, programs, engine="plain")
        assert equal(plain, project(buffer, starts, cuts, programs, engine="jit"))
        damaged = bytearray(buffer)
        for start, end in zip(starts, ends, strict=True):
            if end > start:
                damaged[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
        plain = project(damaged, starts, ends, programs, engine="plain")
        assert equal(plain, project(damaged, starts, ends, programs, engine="jit"))
