"""What pcapng says beside its packets is read in either byte order and can be written again."""

from struct import pack
from time import process_time

import pytest

from kcap.capture.pcapng_annotations import (
    PACKET_KEPT,
    kept_options,
    name_records,
    packet_notes,
    read_annotations,
)
from kcap.capture.pcapng_blocks import each_option
from kcap.capture.writer import option as written
from tests.capture import handmade
from tests.capture.handmade import block, enhanced, interface, option, save, section

ORDERS = ("<", ">")


@pytest.mark.parametrize("order", ORDERS)
def test_numbers_become_little_endian(order):
    body = (
        option(1, b"seen", order) + option(2, pack(order + "I", 7), order) + option(3, b"hash", order) + option(0, b"", order)
    )
    assert kept_options(body, order, 0, len(body), PACKET_KEPT) == written(1, b"seen") + written(2, pack("<I", 7))
    assert list(each_option(body, order, 0, len(body))) == [(1, b"seen"), (2, pack(order + "I", 7)), (3, b"hash")]


@pytest.mark.parametrize("order", ORDERS)
def test_all_that_stands_beside_packets(order, tmp_path):
    header = pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + option(1, b"why", order) + option(4, b"other", order)
    described = pack(order + "HHI", 113, 0, 99) + option(2, b"eth0", order) + option(8, pack(order + "Q", 10), order)
    names = option(1, bytes((10, 0, 0, 1)) + b"broker\0", order) + option(0, b"", order)
    secrets = pack(order + "II", 0x544C534B, 4) + b"KEYS"
    drops = pack(order + "III", 0, 0, 0) + option(5, pack(order + "Q", 3), order)
    data = block(0x0A0D0D0A, header, order) + block(1, described, order) + block(4, names, order)
    data += block(10, secrets, order) + enhanced(5, b"abc", order=order) + block(5, drops, order)
    notes = read_annotations(str(save(tmp_path, data)))
    assert notes.headers == [written(1, b"why")]
    (((only,),),) = (notes.sections,)
    assert (only.link, only.snaplen, only.options) == (113, 99, written(2, b"eth0") + written(8, pack("<Q", 10)))
    assert notes.names == [written(1, bytes((10, 0, 0, 1)) + b"broker\0")]
    assert notes.secrets == [pack("<II", 0x544C534B, 4) + b"KEYS"]
    assert notes.drops == 3


def test_a_pcap_file_says_nothing(tmp_path):
    notes = read_annotations(str(save(tmp_path, handmade.pcap([(0, b"abc")]))))
    assert (notes.sections, notes.names, notes.secrets, notes.drops) == ([], [], [], None)


@pytest.mark.parametrize("order", ORDERS)
def test_packets_tell_their_interface_and_comment(order):
    before = section(order) + interface(order=order)
    packet = enhanced(5, b"abcde", 3, order=order, options=option(1, b"odd", order) + option(0, b"", order))
    assert packet_notes(before + packet, len(before) + 28, 5, order) == (3, written(1, b"odd"))
    assert packet_notes(before + handmade.simple(b"abcde", order=order), len(before) + 12, 5, order) == (0, b"")
    assert packet_notes(b"abcde", 0, 5, order) == (0, b"")


def test_a_block_of_many_names_takes_time_by_its_size():
    """Each record was once copied with all before it: a minute for these."""
    body = b"".join(option(1, pack(">I", number) + b"name\0", "<") for number in range(100_000))
    begun = process_time()
    assert name_records(body, "<") == body
    assert kept_options(body, "<", 0, len(body), PACKET_KEPT) == body
    assert process_time() - begun < 3
