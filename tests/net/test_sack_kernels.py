"""Selective acknowledgements in TCP options."""

from struct import pack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.net.sack_kernels import selective
from kcap.net.segment_columns import SACKED, SPURIOUS
from tests.capture.handmade import batch_of, ethernet, ipv4, tcp
from tests.net.engines import both

ACK = 5_000
TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)
HOLE, TWICE = (6_000, 7_000), (4_000, 4_500)


def sack(*blocks: tuple[int, int]) -> bytes:
    """The option, padded to words as Linux does."""
    return b"\x01\x01\x05" + bytes([2 + 8 * len(blocks)]) + b"".join(pack(">II", *block) for block in blocks)


def reported(options: bytes, ack: int = ACK) -> int:
    return selective.py_func(options, 0, len(options), ack)


@pytest.mark.parametrize(("options", "said"), [
    (b"", 0), (TIMESTAMPS, 0), (b"\x02\x04\x05\xb4\x04\x02\x01\x01", 0),
    (sack(HOLE), SACKED), (sack(HOLE, (8_000, 9_000)), SACKED), (TIMESTAMPS + sack(HOLE), SACKED),
    (sack(TWICE), SPURIOUS), (sack(TWICE, HOLE), SPURIOUS | SACKED), (sack((6_100, 6_200), HOLE), SPURIOUS | SACKED),
    (sack((ACK, ACK)), 0), (b"\0" + sack(HOLE), 0), (sack(HOLE)[:-1], 0), (b"\x08\x01" + sack(HOLE), 0), (b"\x05\x02", 0),
])  # fmt: skip
def test_a_hole_and_bytes_that_came_twice_are_told_apart(options: bytes, said: int) -> None:
    assert reported(options) == said


def test_sequence_numbers_begin_anew() -> None:
    assert reported(sack((50, 90)), 0xFFFFFF00) == SACKED
    assert reported(sack((0xFFFFFF00, 0xFFFFFF90)), 50) == SPURIOUS


@given(st.binary(max_size=40) | st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4).map(lambda b: sack(*b)))
def test_machine_code_reads_options_as_its_text_does(options: bytes) -> None:
    data = np.frombuffer(options + b"\xff", np.uint8)
    assert selective(data, 0, len(options), 5) == reported(options, 5)


@given(
    st.sampled_from([b"", TIMESTAMPS, sack(HOLE), TIMESTAMPS + sack(TWICE)]), st.integers(0, 90), st.sampled_from([16, 24, 18])
)
def test_engines_see_them_alike_in_cut_packets_too(options: bytes, size: int, flags: int) -> None:
    packet = ethernet(ipv4(tcp(b"hello", ack=ACK, flags=flags, options=options)))
    both(batch_of(PLAIN, packet[:size], packet, wire=len(packet)), finish=True)


PLAIN = ethernet(ipv4(tcp(b"hello")))


def test_they_stand_beside_the_flags_where_ack_is_set_and_syn_is_not() -> None:
    flags = [16, 24, 17, 18, 20, 0]
    packets = [ethernet(ipv4(tcp(b"", ack=ACK, flags=each, options=sack(HOLE)))) for each in flags]
    found = [segment[6] for segment in both(batch_of(*packets))[0]]
    assert [each >> 8 for each in found] == [1, 1, 1, 0, 0, 0]
    assert [each & 0xFF for each in found] == flags
