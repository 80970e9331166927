"""Batches are found by their checksums, and nothing else is."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.records import verified as module
from kcap.records.verified import can_verify, find_verified
from kcap.wire.checksums import crc32c
from kcap.wire.formats import BATCH_MIN
from tests.records.batches import batch, message, record

NOISE = st.one_of(st.binary(max_size=80), st.just(bytes(70)), st.just(batch(b"abc")[:40]), st.just(message(b"old")))
BATCHES = st.builds(batch, st.binary(max_size=200), st.integers(0, 5), st.integers(0, 4), st.sampled_from([0, 0x10, 0x20]))


def found(data: bytes, stretches: Sequence[tuple[int, int, int]] | None = None) -> list[tuple[int, int]]:
    """Where records of batches are, after making sure that both searches agree."""
    where = np.array(stretches if stretches is not None else [(0, len(data), 0)], np.int64).reshape(-1, 3)
    both = [find_verified(np.frombuffer(data, np.uint8), where, compiled=compiled).tolist() for compiled in (False, True)]
    assert both[0] == both[1]
    return [(low, high) for low, high in both[0]]


@given(st.lists(st.one_of(st.tuples(st.just(True), BATCHES), st.tuples(st.just(False), NOISE)), max_size=8))
def test_batches_among_other_bytes(parts: list[tuple[bool, bytes]]) -> None:
    """Law: each batch with records is found, wherever it stands; other bytes are not."""
    at, wanted = 0, []
    for is_batch, data in parts:
        if is_batch and len(data) > BATCH_MIN:
            wanted.append((at + BATCH_MIN, at + len(data)))
        at += len(data)
    assert found(b"".join(data for _, data in parts)) == wanted


@given(BATCHES, st.data())
def test_a_changed_batch_is_none(data: bytes, drawn: st.DataObject) -> None:
    """Law: from the attributes on, no byte may be another one."""
    at = drawn.draw(st.integers(17, len(data) - 1))
    changed = bytearray(data)
    changed[at] ^= 1 << drawn.draw(st.integers(0, 7))
    assert found(bytes(changed)) == []


def test_a_batch_is_of_one_stretch() -> None:
    """What goes over the edge of a stretch is not proven; those that begin before a place do not count, and hide nothing."""
    one, two = batch(record(value=b"a" * 50)), batch(record(value=b"b" * 70), codec=2)
    data, end = one + two, len(one) + len(two)
    whole = [(BATCH_MIN, len(one)), (len(one) + BATCH_MIN, end)]
    assert found(data) == whole
    assert found(data, [(0, len(one) + 10, 0), (len(one) + 10, end, 0)]) == whole[:1]
    assert found(data, [(0, end, 1)]) == whole[1:]
    assert found(data, [(0, end, end)]) == []
    assert found(data, []) == []


def test_a_batch_in_a_batch() -> None:
    """The records of a batch may be batches; the outer one is found."""
    inner = batch(record(value=b"x" * 30))
    outer = batch(inner)
    assert found(outer) == [(BATCH_MIN, len(outer))]
    assert found(outer[: BATCH_MIN - 1] + inner) == [(2 * BATCH_MIN - 1, BATCH_MIN - 1 + len(inner))]


def test_the_search_is_bounded() -> None:
    """Bytes that look like one header behind the other are not summed up again and again."""
    head = bytearray(batch(b"")[:BATCH_MIN])
    head[8:12] = (6000).to_bytes(4, "big")
    data = bytes(head[:23]) * 400 + batch(record(value=b"behind" * 500))
    assert found(data) == []
    assert len(found(batch(b"a") * 100)) == 100


@pytest.mark.parametrize("count", [0, 1, module.MANY - 1, module.MANY, 3 * module.MANY])
def test_sums_are_those_of_the_library(count: int) -> None:
    """Law: few spans and many, short ones and long ones, also empty ones, have the CRC-32C of their bytes."""
    chance = random.Random(count)
    data = chance.randbytes(8 * module.SHORT)
    starts = np.array([chance.randrange(len(data)) for _ in range(count)], np.int64)
    sizes = np.array([chance.choice((0, 1, 61, module.SHORT, module.SHORT + 1, 5000)) for _ in range(count)], np.int64)
    ends = np.minimum(starts + sizes, len(data))
    found = module.checksums(np.frombuffer(data, np.uint8), starts, ends)
    assert found.tolist() == [crc32c(data[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def test_without_a_quick_sum_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_fast_crc32c", lambda: False)
    assert can_verify(compiled=True)
    assert not can_verify(compiled=False)
