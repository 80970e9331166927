"""Packets can be fetched again by file and position."""

import gzip
import os

import pytest

from kcap.capture import packet_source
from kcap.capture.packet_source import PacketSource
from tests.capture.handmade import START_NS, enhanced, interface, old_packet, pcap, read_all, rows, save, section

PACKETS = [(START_NS + n * 1000, bytes([n % 256]) * (n * 37 % 9000)) for n in range(300)]
NG = (
    section()
    + interface()
    + b"".join(enhanced(time // 1000, data) for time, data in PACKETS[:100])
    + section(">")
    + interface(113, 9, order=">")
    + b"".join(enhanced(time, data, order=">") for time, data in PACKETS[100:])
    + old_packet(START_NS, b"abc", order=">")
)
FORMS = {
    "pcap": pcap(PACKETS),
    "swapped": pcap(PACKETS, ">", ns=True),
    "modified": pcap(PACKETS, modified=True),
    "pcapng": NG,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_packet_reads_again(tmp_path, form):
    got, found, _ = read_all(save(tmp_path, FORMS[form]))
    source = PacketSource(found.files, found.layouts)
    for _, time, data, wire, position, link in got:
        assert source.packet(0, position) == (time, data, wire, link)
        assert source.read(0, position) == data
    source.close()


def test_a_source_that_nobody_holds_lets_its_files_go(tmp_path):
    got, found, _ = read_all(save(tmp_path, FORMS["pcap"]))
    source = PacketSource(found.files, found.layouts)
    source.read(0, got[0][4])
    numbers = list(source._open.values())
    assert len(numbers) == 1
    del source
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(numbers[0])


def test_a_source_finds_the_layout_itself(tmp_path):
    got, found, _ = read_all(save(tmp_path, section() + interface(113, 9) + enhanced(START_NS, b"abc")))
    assert PacketSource(found.files).packet(0, got[0][4]) == (START_NS, b"abc", 3, 113)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_ranges_read_again(tmp_path, monkeypatch, form, compiled):
    monkeypatch.setattr(packet_source, "is_long", lambda size: compiled)
    got, found, _ = read_all(save(tmp_path, FORMS[form]))
    source = PacketSource(found.files, found.layouts)
    for first, last in [(0, 0), (3, 50), (120, len(got) - 1)]:
        again = [row for batch in source.batches(0, got[first][4], got[last][4]) for row in rows(batch)]
        assert [row[1:] for row in again] == [row[1:] for row in got[first : last + 1]]


def test_what_is_not_kept_is_none(tmp_path):
    got, found, _ = read_all(save(tmp_path, gzip.compress(pcap(PACKETS[:3]))))
    source = PacketSource(found.files, found.layouts)
    assert source.read(0, got[0][4]) is None
    assert not list(source.batches(0, 24, 24))


def test_a_file_that_has_gone_is_none(tmp_path):
    path = save(tmp_path, pcap(PACKETS[:3]))
    got, found, _ = read_all(path)
    source = PacketSource(found.files, found.layouts)
    (tmp_path / "a.pcap").unlink()
    assert source.read(0, got[1][4]) is None
