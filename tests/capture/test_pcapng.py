"""pcapng files, block by block, with the cases that other libraries get wrong."""

from io import BytesIO
from struct import pack
from unittest.mock import patch

import pytest

from kcap.capture import pcapng
from kcap.capture.fileset import FileSet, ignore
from kcap.capture.pcapng_annotations import read_annotations
from kcap.capture.unread import faults
from kcap.capture.window import FileWindow
from kcap.model import CaptureFile
from tests.capture.handmade import (
    START_NS,
    block,
    enhanced,
    interface,
    old_packet,
    option,
    pcap,
    read_all,
    save,
    section,
    simple,
)

US, NS = START_NS // 1000, START_NS


def read(tmp_path, *parts: bytes, jit_after=None):
    return read_all(save(tmp_path, b"".join(parts), "a.pcapng"), jit_after=jit_after)


def times(got):
    return [time for _, time, *_ in got]


@pytest.mark.parametrize("order", "<>")
def test_nanoseconds_are_exact_in_both_byte_orders(tmp_path, order):
    got, found, weirds = read(
        tmp_path, section(order), interface(resolution=9, order=order), enhanced(NS + 79, b"abc", order=order, wire=9)
    )
    assert got == [(1, NS + 79, b"abc", 9, 28 + 32, 1)]
    assert not weirds.seen
    assert found.files[0].format == "pcapng"
    assert found.files[0].cut_packets == 1


@pytest.mark.parametrize("jit_after", [None, 0])
def test_each_interface_has_its_own_clock(tmp_path, jit_after):
    got, *_ = read(
        tmp_path,
        section(),
        interface(),
        interface(resolution=9),
        enhanced(US, b"a"),
        enhanced(NS + 7, b"b", 1),
        enhanced(US + 1, b"c"),
        jit_after=jit_after,
    )
    assert times(got) == [START_NS, START_NS + 7, START_NS + 1000]


@pytest.mark.parametrize("jit_after", [None, 0])
def test_each_interface_has_its_own_link_type(tmp_path, jit_after):
    got, found, _ = read(
        tmp_path, section(), interface(1), interface(276), enhanced(US, b"a"), enhanced(US, b"b", 1), jit_after=jit_after
    )
    assert [link for *_, link in got] == [1, 276]
    assert found.files[0].links == {1, 276}


@pytest.mark.parametrize("jit_after", [None, 0])
def test_a_section_forgets_the_interfaces_of_the_one_before(tmp_path, jit_after):
    got, found, weirds = read(
        tmp_path,
        section(),
        interface(),
        enhanced(US, b"a"),
        section(">"),
        interface(113, resolution=9, order=">"),
        enhanced(NS + 5, b"b", order=">"),
        enhanced(NS + 6, b"c", 1, order=">"),
        jit_after=jit_after,
    )
    assert [(time, link) for _, time, _, _, _, link in got] == [(START_NS, 1), (START_NS + 5, 113)]
    assert weirds.kinds == ["block_malformed"]
    assert [part.order for part in found.layouts[0]] == ["<", ">"]


@pytest.mark.parametrize("jit_after", [None, 0])
def test_packets_of_many_sections_come_together(tmp_path, jit_after):
    """Law: a batch costs as much as hundreds of packets, so sections of a packet each share one; each packet keeps the clock,
    the link type and the byte order of its own section."""
    parts = []
    for at in range(600):
        order, link = "<>"[at % 2], (1, 101)[at % 3 == 0]
        parts += [section(order), interface(link, resolution=9 if at % 5 == 0 else None, order=order)]
        parts.append(enhanced(NS + 1000 * at if at % 5 == 0 else US + at, b"%d" % at, order=order))
    path = save(tmp_path, b"".join(parts), "a.pcapng")
    got, _, weirds = read_all(path, jit_after=jit_after)
    assert [(time, data, link) for _, time, data, _, _, link in got] == [
        (START_NS + 1000 * at, b"%d" % at, (1, 101)[at % 3 == 0]) for at in range(600)
    ]
    assert not weirds.seen
    files = FileSet([str(path)], ignore, jit_after=jit_after)
    assert len(list(files.batches())) < 10
    assert [part.order for part in files.layouts[0]] == ["<", ">"] * 300


def test_drops_of_a_section_are_not_those_of_the_next(tmp_path):
    def drops(count):
        return block(5, pack("<III", 0, 0, 0) + option(5, pack("<Q", count)) + option(0, b""))

    parts = [section(), interface(), enhanced(US, b"a"), drops(2), drops(7)]
    _, found, _ = read(tmp_path, *parts, *parts)
    assert found.files[0].kernel_drops == 14


def test_drops_of_an_interface_that_was_not_described_are_not_counted(tmp_path):
    drops = block(5, pack("<III", 1, 0, 0) + option(5, pack("<Q", 7)) + option(0, b""))
    _, found, weirds = read(tmp_path, section(), interface(), enhanced(US, b"a"), drops)
    assert weirds.kinds == ["block_malformed"]
    assert not found.files[0].kernel_drops


@pytest.mark.parametrize("jit_after", [None, 0])
def test_interfaces_above_the_bound_are_not_held(tmp_path, jit_after):
    """Packets of the others are read; those of the next section begin anew. A copy holds what was read."""
    first = [section(), interface(), interface(101), interface(), interface()]
    parts = [*first, *(enhanced(US, b"%d" % number, number) for number in range(4)), *first, enhanced(US, b"z")]
    with patch.object(pcapng, "INTERFACES_MAX", 2):
        got, _, weirds = read(tmp_path, *parts, jit_after=jit_after)
        notes = read_annotations(str(save(tmp_path, b"".join(parts), "noted.pcapng")))
    assert [(packet[2], packet[5]) for packet in got] == [(b"0", 1), (b"1", 101), (b"z", 1)]
    assert weirds.kinds == ["interface_limit"] * 2 + ["block_malformed"] * 2 + ["interface_limit"] * 2
    assert [len(described) for described in notes.sections] == [2, 2]


def test_binary_resolution_and_offset(tmp_path):
    seconds, part = 1000, 3
    got, *_ = read(
        tmp_path, section(), interface(resolution=0x80 | 20, offset=1_700_000_000), enhanced(seconds << 20 | part, b"x")
    )
    assert times(got) == [START_NS + seconds * 10**9 + part * 10**9 // 2**20]


@pytest.mark.parametrize(("resolution", "ticks", "expected"), [(0, 5, 5 * 10**9), (3, 5, 5_000_000), (12, 5001, 5)])
def test_decimal_resolutions(tmp_path, resolution, ticks, expected):
    got, *_ = read(tmp_path, section(), interface(resolution=resolution), enhanced(ticks, b"x"))
    assert times(got) == [expected]


def test_simple_packets_take_the_time_before_them_and_the_snapshot_length(tmp_path):
    got, *_ = read(tmp_path, section(), interface(snaplen=4), simple(b"abcd", 10), enhanced(US, b"b"), simple(b"xyz"))
    assert [(time, data, wire) for _, time, data, wire, _, _ in got] == [
        (0, b"abcd", 10),
        (START_NS, b"b", 1),
        (START_NS, b"xyz", 3),
    ]


def test_obsolete_packet_blocks_are_packets(tmp_path):
    got, *_ = read(tmp_path, section(), interface(), interface(resolution=9), old_packet(NS + 3, b"abc", 1))
    assert got[0][1:4] == (NS + 3, b"abc", 3)


def test_key_logs_names_and_drops_are_kept(tmp_path):
    log = b"CLIENT_RANDOM 00 11\n"
    names = pack("<HH", 1, 12) + b"\x0a\0\0\x01broker1\0" + pack("<HH", 2, 19) + bytes(15) + b"\x01me\0\0" + pack("<HH", 0, 0)

    def statistics(number, dropped, system):
        options = option(5, pack("<Q", dropped)) + option(7, pack("<Q", system)) + option(0, b"")
        return block(5, pack("<III", number, 0, 0) + options)

    got, found, weirds = read(
        tmp_path,
        section(),
        interface(),
        interface(),
        block(10, pack("<II", 0x544C534B, len(log)) + log),
        block(10, pack("<II", 0x57474B4C, 4) + b"none"),
        block(4, names),
        statistics(0, 1, 1),
        enhanced(US, b"a"),
        statistics(0, 3, 2),
        statistics(1, 4, 0),
        block(0xBAD, b"custom"),
    )
    file = found.files[0]
    assert len(got) == 1
    assert file.secrets == [log]
    assert file.names == {"10.0.0.1": "broker1", "::1": "me"}
    assert file.kernel_drops == 9
    assert weirds.kinds == ["kernel_drops"]


def test_a_drop_count_of_nothing_is_no_weird(tmp_path):
    _, found, weirds = read(
        tmp_path, section(), interface(), enhanced(US, b"a"), block(5, pack("<III", 0, 0, 0) + option(5, bytes(8)))
    )
    assert found.files[0].kernel_drops == 0
    assert not weirds.seen


@pytest.mark.parametrize("cut", [1, 11, 20, 35])
def test_a_cut_block_ends_the_file_with_a_weird(tmp_path, cut):
    whole = section() + interface() + enhanced(US, b"a") * 3
    got, found, weirds = read(tmp_path, whole + enhanced(US, b"bbbb")[:cut])
    assert len(got) == 3
    assert weirds.kinds == ["file_truncated"]
    assert weirds.seen[0][4] == len(whole)
    assert not found.files[0].complete


@pytest.mark.parametrize(
    "bad",
    [
        pack("<II", 6, 8) + bytes(40),
        pack("<II", 6, 1 << 30) + bytes(40),
        b"\x0a\x0d\x0d\x0a" + pack("<II", 28, 0x11111111) + bytes(16),
    ],
)
def test_a_block_that_cannot_be_followed_ends_the_file(tmp_path, bad):
    got, found, weirds = read(tmp_path, section(), interface(), enhanced(US, b"a"), bad, enhanced(US, b"never"))
    assert len(got) == 1
    assert weirds.kinds == ["block_malformed"]
    assert not found.files[0].complete


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("size", [2001, 300_000, 9_000_000])
@pytest.mark.parametrize("jit_after", [None, 0])
def test_packets_behind_secrets_above_the_bound_are_read(tmp_path, order, size, jit_after):
    """Wherever windows end; also in a pipe, whose bytes come in pieces. It is said that the keys are not known."""
    secrets = block(10, pack(order + "II", 0x544C534B, size) + b"k" * size, order)
    parts = [section(order), interface(order=order), enhanced(US, b"a", order=order), secrets]
    parts += [enhanced(US + n, b"z", order=order) for n in range(700)]
    with patch.object(pcapng, "BLOCK_BYTES_MAX", 2000):
        got, found, weirds = read(tmp_path, *parts, jit_after=jit_after)
        stream, file = BytesIO(b"".join(parts)), CaptureFile("-", "-")
        reader = pcapng.PcapngReader(FileWindow(lambda size: stream.read(min(size, 5000))), file, 0, weirds, jit_after)
        assert sum(map(len, reader.batches())) == 701
    assert len(got) == 701
    assert weirds.kinds == ["secrets_limit"] * 2
    assert found.files[0].complete
    assert found.files[0].secrets == []
    (said,) = faults(found.files[0])
    assert "Decryption Secrets Blocks above the bound" in said
    assert "--tls-keylog reads a key log of any size" in said


@pytest.mark.parametrize(("behind", "kind"), [(bytes(40), "file_truncated"), (bytes(4000), "block_malformed")])
def test_secrets_above_the_bound_whose_length_is_wrong_end_the_file(tmp_path, behind, kind):
    secrets = pack("<III", 10, 3000, 0x544C534B) + behind
    with patch.object(pcapng, "BLOCK_BYTES_MAX", 2000):
        got, found, weirds = read(tmp_path, section(), interface(), enhanced(US, b"a"), secrets)
    assert len(got) == 1
    assert weirds.kinds == [kind]
    assert not found.files[0].complete


@pytest.mark.parametrize("jit_after", [None, 0])
def test_a_packet_larger_than_its_block_gives_what_is_there(tmp_path, jit_after):
    lie = bytearray(enhanced(US, b"abcd", wire=500))
    lie[20:24] = pack("<I", 400)
    got, _, weirds = read(
        tmp_path, section(), interface(), enhanced(US, b"a"), bytes(lie), enhanced(US, b"z"), jit_after=jit_after
    )
    assert [data for _, _, data, *_ in got] == [b"a", b"abcd", b"z"]
    assert weirds.kinds == ["block_malformed"]


@pytest.mark.parametrize("jit_after", [None, 0])
def test_a_time_beyond_64_bits_takes_the_one_before(tmp_path, jit_after):
    got, _, weirds = read(
        tmp_path, section(), interface(), enhanced(US, b"a"), enhanced(1 << 63, b"b"), enhanced(US, b"c"), jit_after=jit_after
    )
    assert times(got) == [START_NS] * 3
    assert weirds.kinds == ["block_malformed"]


@pytest.mark.parametrize(
    "odd",
    [
        block(1, b"ab"),
        interface(resolution=0xFF),
        interface(offset=1 << 62),
        block(1, pack("<HHI", 1, 0, 0) + b"\x0e\0\4\0abcd"),
    ],
)
def test_odd_interface_descriptions_do_not_stop(tmp_path, odd):
    got, _, weirds = read(tmp_path, section(), odd, interface(), enhanced(US, b"a", 1))
    assert times(got) == [START_NS]
    assert weirds.kinds == ["block_malformed"]


def test_lengths_without_padding_are_forgiven(tmp_path):
    body = pack("<IIIII", 0, US >> 32, US & 0xFFFFFFFF, 3, 3) + b"abc"
    odd = pack("<II", 6, 35) + body + b"\0" + pack("<I", 35)
    got, _, weirds = read(tmp_path, section(), interface(), odd, enhanced(US, b"z"))
    assert [data for _, _, data, *_ in got] == [b"abc", b"z"]
    assert not weirds.seen


def test_pcap_inside_is_content(tmp_path):
    inner = pcap([(START_NS, b"x")])
    got, *_ = read(tmp_path, section(), interface(), enhanced(US, inner))
    assert got[0][2] == inner
