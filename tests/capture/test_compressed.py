"""Compressed captures are streams: of several members, cut anywhere, with anything behind."""

import bz2
import gzip
import lzma
import struct

import lz4.frame
import pytest
import zstandard

from kcap.capture.compressed import Decompressed
from tests.capture.handmade import START_NS, pcap, read_all, save

PACKETS = [(START_NS + n * 1000, bytes([n % 256]) * (n % 200)) for n in range(3000)]
PLAIN = pcap(PACKETS)
COMPRESS = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstandard.compress, "lz4": lz4.frame.compress,
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return read_all(save(tmp_path_factory.mktemp("plain"), PLAIN))[0]


@pytest.mark.parametrize("name", COMPRESS)
def test_compressed_reads_as_plain(tmp_path, plain, name):
    got, found, weirds = read_all(save(tmp_path, COMPRESS[name](PLAIN), "any.name"))
    assert got == plain
    assert found.files[0].format == f"pcap+{name}"
    assert not weirds.seen


@pytest.mark.parametrize("name", COMPRESS)
def test_members_follow_each_other(tmp_path, plain, name):
    pieces = [PLAIN[:100], b"", PLAIN[100:20000], PLAIN[20000:]]
    got, *_ = read_all(save(tmp_path, b"".join(map(COMPRESS[name], pieces))))
    assert got == plain


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_cut_stream_gives_what_was_there(tmp_path, plain, name, share):
    pieces = b"".join(COMPRESS[name](PLAIN[at : at + 20000]) for at in range(0, len(PLAIN), 20000))
    got, found, weirds = read_all(save(tmp_path, pieces[: int(len(pieces) * share)]))
    assert 0 < len(got) < len(plain) or (name == "xz" and share == 0.999)  # the end of xz is an index of its blocks
    assert got == plain[: len(got)]
    assert "compressed_truncated" in weirds.kinds
    assert not found.files[0].complete


@pytest.mark.parametrize("name", COMPRESS)
def test_zeros_behind_are_padding_and_anything_else_is_told(tmp_path, plain, name):
    got, _, weirds = read_all(save(tmp_path, COMPRESS[name](PLAIN) + bytes(512)))
    assert got == plain
    assert not weirds.seen
    got, _, weirds = read_all(save(tmp_path, COMPRESS[name](PLAIN) + b"what is this"))
    assert got == plain
    assert weirds.kinds == ["compressed_truncated"]


@pytest.mark.parametrize("name", COMPRESS)
def test_damage_in_the_middle_gives_what_came_before(tmp_path, plain, name):
    pieces = [COMPRESS[name](PLAIN[at : at + 20000]) for at in range(0, len(PLAIN), 20000)]
    pieces[5] = pieces[5][:8] + b"\xff" * 40 + pieces[5][48:]
    got, _, weirds = read_all(save(tmp_path, b"".join(pieces)))
    assert got == plain[: len(got)]
    assert "compressed_truncated" in weirds.kinds


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_skippable_frames_are_skipped(tmp_path, plain, name):
    skippable = struct.pack("<II", 0x184D2A53, 70000) + bytes(70000)
    half = len(PLAIN) // 2
    none = struct.pack("<II", 0x184D2A50, 0) * 3000
    data = COMPRESS[name](PLAIN[:half]) + skippable + none + COMPRESS[name](PLAIN[half:]) + skippable
    got, _, weirds = read_all(save(tmp_path, data))
    assert got == plain
    assert not weirds.seen


def test_compressed_twice_is_still_a_capture(tmp_path, plain):
    got, found, _ = read_all(save(tmp_path, gzip.compress(zstandard.compress(PLAIN))))
    assert got == plain
    assert found.files[0].format == "pcap+zstd+gzip"


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("size", [1, 7, 5000])
def test_reads_of_any_size_give_the_same(name, size):
    data = PLAIN[:9000]
    packed = memoryview(COMPRESS[name](data[:4000]) + COMPRESS[name](data[4000:]))
    at = 0

    def read(count):
        nonlocal at
        part = bytes(packed[at : at + min(count, 11)])
        at += len(part)
        return part

    stream, out = Decompressed(read, name, lambda *_: pytest.fail("whole stream")), b""
    while part := stream.read(size):
        assert len(part) <= size
        out += part
    assert out == data


@pytest.mark.parametrize("name", COMPRESS)
def test_a_bomb_takes_no_memory(name):
    packed, given = COMPRESS[name](bytes(64 << 20)), []

    def read(count):
        given.append(count)
        return packed if len(given) == 1 else b""

    stream = Decompressed(read, name, lambda *_: None)
    assert len(stream.read(1 << 16)) <= 1 << 16
    assert len(stream._ready) <= 33 << 20
