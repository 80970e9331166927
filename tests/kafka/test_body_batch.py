"""The bodies of a batch in one buffer: the same values from either engine."""

from itertools import accumulate
from unittest.mock import patch

import numpy as np

from kcap.decode.programs import program_index
from kcap.kafka import body_batch
from kcap.kafka.body_batch import BodyBatch, mapped, positions, projected
from kcap.kafka.body_values import REQUEST, RESPONSE, UNKNOWN
from kcap.kafka.frames import NO_BODY
from kcap.limits import OVERTAKEN_BODY_BYTES
from tests.support.wire import produce, produce_answer


def test_positions_of_some_values() -> None:
    """The same of a list as of an array."""
    column = [0, 2, 1, 2, -1]
    for values in (column, np.array(column)):
        assert positions(values, {2, -1}) == [1, 3, 4]
        assert positions(values, {}) == []


def batches_of(*messages: bytes, programs: list[int]) -> list[BodyBatch]:
    """The bodies as either engine projects them."""
    ends = list(accumulate(map(len, messages)))
    starts = [end - len(body) for end, body in zip(ends, messages, strict=True)]
    arena = b"".join(messages)
    plain = projected(arena, starts, ends, programs, {}, compiled=False)
    arrays = [np.array(column, np.int64) for column in (starts, ends, programs)]
    return [plain, projected(arena, *arrays, {}, compiled=True)]


PRODUCE, ANSWER = program_index(0, 2, REQUEST), program_index(0, 2, RESPONSE)
ONE, TWO = produce(1, -1, b"", "orders")[17:], produce_answer(1, throttle=9)[8:]


def test_values_are_the_same_of_both_engines_and_of_several_at_once() -> None:
    plain, compiled = batches_of(ONE, b"token", TWO, ONE[:-3], programs=[PRODUCE, UNKNOWN, ANSWER, PRODUCE])
    slots = range(4)
    assert [plain.values(slot) for slot in slots] == [compiled.values(slot) for slot in slots]
    assert list(compiled.several(np.array([2, 0, 3, 1]))) == [compiled.values(slot) for slot in (2, 0, 3, 1)]
    assert [values is None for values in map(plain.values, slots)] == [False, True, False, False]
    answer = plain.values(2)
    assert answer is not None
    assert answer.topics.names == b"t"
    assert plain.unread() == compiled.unread() == {3: "out of bytes"}
    for batch in (plain, compiled):
        token = batch.token(1)
        assert token is not None
        assert token.data == b"token"
        assert batch.values(NO_BODY) is None
    assert list(compiled.several(np.array([], np.int64))) == []


def test_a_large_token_is_not_retained() -> None:
    (plain, _) = batches_of(bytes(OVERTAKEN_BODY_BYTES + 1), programs=[UNKNOWN])
    assert plain.token(0) is None


def test_partitions_come_along_unless_they_are_very_many() -> None:
    found = projected(ONE, [0], [len(ONE)], [PRODUCE], {}, compiled=False, partitions=True)
    assert found.partitioned
    with patch.object(body_batch, "PARTITIONS_PROJECTED_MAX", 0):
        again = projected(ONE, [0], [len(ONE)], [PRODUCE], {}, compiled=False, partitions=True)
    assert not again.partitioned
    assert again.values(0) == found.values(0)


def test_what_numbers_are_mapped_to_is_looked_up_once_each() -> None:
    seen: list[int] = []
    found = mapped(np.array([3, 1, 3, 3, 0]), lambda number: seen.append(number) or number * 10)
    assert found.tolist() == [30, 10, 30, 30, 0]
    assert seen == [0, 1, 3]
    assert mapped(np.array([], np.int64), lambda _: 1).tolist() == []
