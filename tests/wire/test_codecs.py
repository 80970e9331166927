"""Decompression: right, bounded, and never an exception."""

import gzip
import random
import subprocess
import sys
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kcap.wire import codecs
from kcap.wire.codecs import CODECS, codec_name, inflate

LIMIT = 1 << 20


def xerial(data: bytes, size: int = 32 << 10) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + size])) for at in range(0, len(data), size)]
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def streamed_zstd(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": (1, gzip.compress),
    "gzip members": (1, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "snappy": (2, xerial),
    "snappy raw": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: lz4.frame.compress(data, block_linked=False)),
    "lz4 linked": (3, lambda data: lz4.frame.compress(data, block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB)),
    "lz4 sums": (3, lambda data: lz4.frame.compress(data, content_checksum=True, block_checksum=True)),
    "zstd": (4, zstandard.compress),
    "zstd streamed": (4, streamed_zstd),
    "zstd frames": (4, lambda data: zstandard.compress(data[:9]) + streamed_zstd(data[9:])),
}


@pytest.mark.parametrize("name", PACKERS)
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    """Law: what was packed comes out, alone or in several members, frames and blocks."""
    codec, pack = PACKERS[name]
    plain = data.draw(st.binary(min_size=10, max_size=100)) * data.draw(st.sampled_from([1, 3, 4000]))
    result = inflate(codec, pack(plain), 1 << 20)
    assert bytes(result.data) == plain
    assert result.fault is None


@pytest.mark.parametrize("name", PACKERS)
def test_the_limit_holds(name: str) -> None:
    """No more than the limit comes out, and it is said; exactly the limit is no fault."""
    codec, pack = PACKERS[name]
    packed = pack(bytes(LIMIT + 1))
    result = inflate(codec, packed, LIMIT)
    assert len(result.data) <= LIMIT
    assert "more than" in (result.fault or "")
    assert inflate(codec, packed, LIMIT + 1).fault is None


@pytest.mark.parametrize("name", PACKERS)
def test_damage_keeps_what_came_before(name: str) -> None:
    """Cut or changed input: no exception, a fault where the codec can tell, a prefix of the plain bytes from a cut."""
    codec, pack = PACKERS[name]
    chance = random.Random(name)
    plain = chance.randbytes(200_000) + bytes(100_000)
    packed = pack(plain)
    for _ in range(12):
        cut = chance.randrange(1, len(packed) - 1)
        result = inflate(codec, packed[:cut], 1 << 20)
        assert plain.startswith(bytes(result.data))
        changed = bytearray(packed)
        changed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        inflate(codec, changed, 1 << 20)


def test_what_is_given_to_zlib_grows_with_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may be a chain of members of 20 bytes: what is behind each of them is not given to it, and not copied."""
    given_bytes: list[int] = []
    made = codecs.zlib.decompressobj

    class Counting:
        def __init__(self, bits: int) -> None:
            self.inner = made(bits)

        def decompress(self, data: memoryview, size: int) -> bytes:
            given_bytes.append(len(data))
            return self.inner.decompress(data, size)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    monkeypatch.setattr(codecs.zlib, "decompressobj", Counting)
    found = []
    for members in (100, 400):
        given_bytes.clear()
        packed = gzip.compress(b"x") * members
        assert inflate(1, packed, LIMIT).data == b"x" * members
        found.append(sum(given_bytes))
    assert found[1] <= 4.2 * found[0]


@given(st.integers(0, 7), st.binary(max_size=60))
def test_any_bytes(codec: int, data: bytes) -> None:
    """Law: nothing raises."""
    heads = (b"", b"\x82SNAPPY\0", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08")
    for head in heads:
        assert inflate(codec, head + data, 1 << 16).data is not None


def test_a_decompressor_of_zstd_is_used_again_but_for_a_large_or_a_damaged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is left with after a batch is no part of the next one; the window of 16 MiB of one batch does not stay."""
    idle: list[Any] = []
    monkeypatch.setattr(codecs, "_IDLE", idle)
    small, damaged = streamed_zstd(b"a record " * 9), streamed_zstd(b"b" * 5000)[:-6]
    writer = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=24)).compressobj()
    large = writer.compress(b"c" * 100) + writer.flush()
    assert inflate(4, small, 1000).data == b"a record " * 9
    (first,) = idle
    assert inflate(4, small, 1000).data == b"a record " * 9
    assert idle == [first]
    assert inflate(4, damaged + b"no frame", 10_000).fault
    assert idle == []
    assert inflate(4, small, 20).fault == "zstd: more than 20 bytes"
    assert inflate(4, small, 1000).data == b"a record " * 9
    assert len(idle) == 1
    assert inflate(4, large, 1000).data == b"c" * 100
    assert idle == []


def test_names() -> None:
    """Kafka's own, and a number for what it does not use."""
    assert [codec_name(codec) for codec in range(5)] == list(CODECS)
    assert codec_name(6) == "codec 6"
    assert inflate(6, b"", 1).fault == "unknown codec 6"
    assert inflate(0, memoryview(b"as it is"), 1).data == b"as it is"


def test_libraries_are_imported_when_used() -> None:
    """A process that meets no snappy loads none."""
    program = (
        "import sys, kcap.wire.codecs as c\n"
        "assert not {'cramjam', 'lz4', 'zstandard'} & set(sys.modules)\n"
        "sys.modules['cramjam'] = None\n"
        "assert 'not installed' in c.inflate(2, b'x', 10).fault"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
