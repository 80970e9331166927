"""Secrets of sessions in a few buffers."""

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls import packed_secrets
from kcap.tls.packed_secrets import PackedSecrets

WRITES = st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=300)), max_size=200)


def random_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


@given(WRITES, WRITES, st.sampled_from([0, 1 << 16]))
def test_it_is_a_mapping_like_any_and_so_is_a_copy(
    first: list[tuple[int, bytes]], then: list[tuple[int, bytes]], least: int
) -> None:
    """Whatever is written to either, in whatever order and size, and however soon room is given back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_secrets, "LEAST_WASTE", least)
        packed, known = PackedSecrets(), dict[bytes, bytes]()
        for number, secrets in first:
            packed[random_of(number)] = known[random_of(number)] = secrets
        other, others = packed.copy(), dict(known)
        third = packed.copy()
        for at, (number, secrets) in enumerate(then):
            some, words = ((packed, known), (other, others))[at % 2]
            some[random_of(number)] = words[random_of(number)] = secrets
            assert some[random_of(number)] == secrets
        for some, words in ((packed, known), (other, others), (pickle.loads(pickle.dumps(other)), others)):
            assert list(some.items()) == list(words.items())
            assert all((random_of(number) in some) == (random_of(number) in words) for number in range(42))
            assert some.get(random_of(41)) is None
            assert len(some) == len(words)
        assert len(third) == len(dict(first))


def test_what_is_written_again_and_again_takes_no_more_room() -> None:
    packed = PackedSecrets()
    for at in range(20_000):
        packed[random_of(at % 100)] = bytes([at % 256]) * 100
    assert len(packed._data) < 200_000
    assert [packed[random_of(at)] for at in range(100)] == [bytes([(19_900 + at) % 256]) * 100 for at in range(100)]


def test_another_process_finds_what_was_stored_here() -> None:
    """Its hashes are others."""
    packed = PackedSecrets()
    for at in range(1000):
        packed[random_of(at)] = b"%d" % at
    words = (
        "import pickle, sys; p = pickle.load(sys.stdin.buffer); print(all(p[k] == b'%d' % n for n, k in enumerate(p)), len(p))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", words], input=pickle.dumps(packed), capture_output=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.stdout.split() == [b"True", b"1000"]


def test_no_secret_shows() -> None:
    packed = PackedSecrets()
    packed[random_of(1)] = b"secret"
    assert repr(packed) == "PackedSecrets(1)"
    with pytest.raises(KeyError, match="no secrets of this session"):
        packed[random_of(2)]
