"""How files begin: each compression by what its own library writes."""

import bz2
import gzip
import lzma
import subprocess
import sys

import lz4.frame
import pytest
import zstandard

from kcap.capture.beginnings import COMPRESSIONS, SKIPPABLE, SNOOP, compression

WRITERS = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_compression_is_known_by_what_its_library_writes(name: str) -> None:
    assert compression(WRITERS[name](b"kafka")) == name
    assert set(WRITERS) == set(COMPRESSIONS.values())


def test_frames_of_no_content_may_come_first_and_captures_are_no_compression() -> None:
    assert {compression(magic + bytes(4)) for magic in SKIPPABLE} == {"zstd"}
    for head in (SNOOP, b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a", b"", b"B", b"\x1f"):
        assert compression(head) is None


def test_what_decompresses_is_loaded_for_a_compressed_file_alone() -> None:
    program = "import sys, kcap.capture.source; sys.exit('kcap.capture.compressed' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
