"""pcap files as libpcap writes them, and as damage leaves them."""

from struct import pack

import pytest

from kcap.errors import CaptureError
from kcap.limits import PACKET_BYTES_MAX
from tests.capture.handmade import START_NS, pcap, read_all, save

PACKETS = [(START_NS + n * 1000, bytes([n]) * (n * 7 % 60)) for n in range(40)]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("ns", "modified"), [(False, False), (True, False), (False, True)])
def test_every_form_gives_the_same_packets(tmp_path, order, ns, modified):
    got, found, weirds = read_all(save(tmp_path, pcap(PACKETS, order, ns, modified=modified)))
    assert [(time, data, wire) for _, time, data, wire, _, _ in got] == [(time, data, len(data)) for time, data in PACKETS]
    assert [number for number, *_ in got] == list(range(1, 41))
    assert not weirds.seen
    assert found.files[0].format == "pcap"
    assert found.files[0].packets == 40


def test_positions_are_those_of_the_records(tmp_path):
    data = pcap(PACKETS)
    got, _, _ = read_all(save(tmp_path, data))
    for _, time, content, _, position, _ in got:
        assert data[position : position + 8] == pack("<II", time // 10**9, time % 10**9 // 1000)
        assert data[position + 16 : position + 16 + len(content)] == content


def test_nanoseconds_are_exact(tmp_path):
    got, _, _ = read_all(save(tmp_path, pcap([(START_NS + 123456789, b"x")], ns=True)))
    assert got[0][1] == START_NS + 123456789


def test_the_wire_is_never_shorter_than_what_was_captured(tmp_path):
    got, found, _ = read_all(save(tmp_path, pcap([(START_NS, b"abcd", 2), (START_NS, b"abcd", 9)])))
    assert [wire for *_, wire, _, _ in got] == [4, 9]
    assert found.files[0].cut_packets == 1
    assert found.files[0].packet_bytes == 8


def test_upper_bits_of_the_link_type_are_no_link_type(tmp_path):
    got, found, _ = read_all(save(tmp_path, pcap([(START_NS, b"x")], link=0x14000001)))
    assert got[0][5] == 1
    assert found.files[0].links == {1}


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 50])
def test_a_cut_record_ends_the_file_with_a_weird(tmp_path, cut):
    whole = pcap(PACKETS[:20])
    data = whole + (pack("<IIII", 1, 1, 90, 90) + bytes(90))[:cut]
    got, found, weirds = read_all(save(tmp_path, data))
    assert len(got) == 20
    assert weirds.kinds == ["file_truncated"]
    assert weirds.seen[0][4] == len(whole)
    assert not found.files[0].complete


def test_a_record_of_impossible_size_ends_the_file(tmp_path):
    data = pcap(PACKETS[:3]) + pack("<IIII", 1, 1, PACKET_BYTES_MAX + 1, 5) + bytes(1000)
    got, found, weirds = read_all(save(tmp_path, data))
    assert len(got) == 3
    assert weirds.kinds == ["file_truncated"]
    assert not found.files[0].complete


def test_a_file_without_packets_says_so(tmp_path):
    got, _, weirds = read_all(save(tmp_path, pcap([])))
    assert not got
    assert weirds.kinds == ["file_empty"]


def test_time_that_goes_back_is_told_at_each_place(tmp_path):
    times = [5, 4, 6, 6, 3, 9]
    got, found, weirds = read_all(save(tmp_path, pcap([(START_NS + time * 1000, b"x") for time in times])))
    assert len(got) == 6
    assert [(kind, packet) for kind, _, _, packet, _ in weirds.seen] == [("time_went_back", 2), ("time_went_back", 5)]
    assert (found.files[0].first_ns, found.files[0].last_ns) == (START_NS + 3000, START_NS + 9000)


def test_a_cut_header_is_no_capture(tmp_path):
    with pytest.raises(CaptureError, match="cut before"):
        read_all(save(tmp_path, pcap([])[:20]))
