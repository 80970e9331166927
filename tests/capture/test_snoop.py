"""snoop captures read as the pcap file that they would be."""

from struct import pack

import pytest

from tests.capture.handmade import START_NS, pcap, read_all, save

PACKETS = [(START_NS + n * 1000, bytes([n % 256]) * (n % 97), n % 97 + 3) for n in range(300)]


def snoop(packets, link: int = 4) -> bytes:
    """By RFC 1761; records are padded to four bytes."""
    out = b"snoop\0\0\0" + pack(">II", 2, link)
    for time, data, wire in packets:
        pad = -len(data) % 4
        head = pack(">IIIIII", wire, len(data), 24 + len(data) + pad, 7, time // 10**9, time % 10**9 // 1000)
        out += head + data + b"\xee" * pad
    return out


@pytest.fixture
def plain(tmp_path):
    return [row[:-1] for row in read_all(save(tmp_path, pcap(PACKETS), "plain.pcap"))[0]]


def test_snoop_reads_as_pcap(tmp_path, plain):
    got, found, weirds = read_all(save(tmp_path, snoop(PACKETS)))
    assert [row[:-1] for row in got] == plain
    assert found.files[0].format == "pcap+snoop"
    assert found.files[0].links == {1}
    assert not weirds.seen


@pytest.mark.parametrize("cut", [1, 20, 30, 105])
def test_a_cut_file_gives_what_was_there_and_says_so(tmp_path, plain, cut):
    got, found, weirds = read_all(save(tmp_path, snoop(PACKETS)[:-cut]))
    assert 0 < len(got) < len(plain)
    assert [row[:-1] for row in got] == plain[: len(got)]
    assert not found.files[0].complete
    assert "of a record of" in found.files[0].fault
    assert weirds.kinds == ["compressed_truncated"]


def test_a_record_that_contradicts_itself_ends_the_file(tmp_path, plain):
    got, found, _ = read_all(save(tmp_path, snoop(PACKETS[:5]) + pack(">IIIIII", 9, 9, 24, 0, 1, 0) + bytes(99)))
    assert [row[:-1] for row in got] == plain[:5]
    assert found.files[0].fault == "a record claims 9 bytes in 24"


def test_an_unknown_data_link_is_no_ethernet(tmp_path):
    assert read_all(save(tmp_path, snoop(PACKETS, link=2)))[1].files[0].links == {0xFFFF}
