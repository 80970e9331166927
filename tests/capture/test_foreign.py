"""A file that is no capture is named as what it is."""

import struct

import pytest

from kcap.capture.foreign import ADVICE, FOREIGN
from kcap.capture.source import MAGIC_BYTES
from kcap.errors import CaptureError
from tests.capture.handmade import read_all, save


@pytest.mark.parametrize("magic", FOREIGN)
def test_a_foreign_file_is_named(tmp_path, magic):
    with pytest.raises(CaptureError) as error:
        read_all(save(tmp_path, magic.ljust(100, b"\1")))
    assert str(error.value).endswith(f": {FOREIGN[magic]} is not read; {ADVICE}")


def test_a_record_of_erf_is_named_and_other_bytes_are_not(tmp_path):
    """Time in 2^-32 s, type, flags, length, counter, length on the wire."""
    record = struct.pack("<Q", 1_795_000_000 << 32) + struct.pack(">BBHHH", 2, 4, 82, 0, 64)
    provenance = bytes(8) + b"\x9b" + record[9:]  # what Wireshark begins a file with
    for head, named in (
        (record, True), (provenance, True), (bytes(8) + record[8:], False), (b"time,api,latency\n", False)
    ):  # fmt: skip
        with pytest.raises(CaptureError) as error:
            read_all(save(tmp_path, head.ljust(100, b"\1")))
        assert ("(ERF) is not read" in str(error.value)) is named


def test_every_magic_fits_the_bytes_that_are_looked_at():
    assert max(map(len, FOREIGN)) <= MAGIC_BYTES
