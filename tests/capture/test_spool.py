"""What can be read only once is kept for a second look."""

import errno
import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.capture.spool import Spool


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=20), st.integers(0, 20), st.integers(0, 400))
def test_what_was_read_is_given_again(data: bytes, sizes: list[int], early: int, limit: int) -> None:
    """Law: whenever it is decided, the bytes from the first on, up to the bound, as they were."""
    spool, source = Spool(limit), io.BytesIO(data)
    read = spool.reading(source.read)
    seen = b""
    for number, size in enumerate(sizes):
        if number == early:
            spool.decide(True)
        seen += read(size)
    spool.decide(True)
    assert spool.kept == min(len(seen), limit)
    assert spool.read(1000, 0) == seen[:limit]
    assert spool.read(3, 2) == seen[:limit][2:5]
    assert spool.read(1, len(seen)) == b""
    if spool.number is not None:
        assert os.pread(spool.number, 1000, 0) == seen[:limit], "another process sees it at once"


def test_a_full_disk_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: reading goes on; what was kept before can be read again."""
    spool = Spool()
    read = spool.reading(io.BytesIO(b"abcdef").read)
    assert read(3) == b"abc"
    spool.decide(True)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert read(2) == b"de"
    monkeypatch.undo()
    assert read(2) == b"f"
    assert (spool.kept, spool.read(9, 0)) == (3, b"abc")


def test_nothing_is_kept_unasked() -> None:
    spool = Spool()
    read = spool.reading(io.BytesIO(b"abc").read)
    assert read(2) == b"ab"
    spool.decide(False)
    spool.decide(True)
    assert read(2) == b"c"
    assert (spool.kept, spool.read(9, 0)) == (0, b"")


@pytest.mark.parametrize("name", ["java-transactions.pcap", "tls13.pcapng"])
def test_bodies_of_a_compressed_capture(pcaps: Path, tmp_path: Path, name: str) -> None:
    """Law: the messages of a compressed capture are those of the plain one."""
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((pcaps / name).read_bytes()))

    def messages(path: Path) -> list[object]:
        found = [(one.request, one.response) for one in kcap.open(path)]
        return [None if message is None else message.frame for pair in found for message in pair]

    plain = messages(pcaps / name)
    assert any(plain)
    assert messages(tmp_path / f"{name}.gz") == plain
