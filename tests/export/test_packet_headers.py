"""Checksums are those of the new bytes; what was not captured whole stays as right as it was. scapy is the judge."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.export.packet_headers import EditablePacket, ip_start, ones_sum, renew, tcp_start
from kcap.export.pseudonyms import Pseudonyms
from kcap.net.link import LINK_ETHERNET

PAYLOADS = st.binary(min_size=1, max_size=40)


def made(payload: bytes, six: bool = False, options=()) -> tuple[bytes, EditablePacket]:
    from scapy.layers.inet import IP, TCP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether

    ip = IPv6(src="fe80::1", dst="2001:db8::2") if six else IP(src="10.1.2.3", dst="10.1.9.9", options=list(options))
    data = bytes(Ether(src="00:11:22:33:44:55", dst="00:aa:bb:cc:dd:ee") / ip / TCP(sport=40000, dport=9092, seq=7) / payload)
    source = bytes.fromhex("fe80" + "0" * 27 + "1" + "20010db8" + "0" * 23 + "2") if six else bytes((10, 1, 2, 3, 10, 1, 9, 9))
    flow = source + (40000).to_bytes(2, "big") + (9092).to_bytes(2, "big")
    return data, EditablePacket(data, len(data) - len(payload), len(payload), flow, LINK_ETHERNET)


def right(data: bytes, six: bool) -> bytes:
    """The same packet with the checksums that scapy gives it."""
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether

    packet = Ether(data)
    del packet[TCP].chksum
    if not six:
        del packet[IP].chksum
    return bytes(packet)


@given(PAYLOADS, st.data(), st.booleans())
def test_checksums_are_right(payload, data, six):
    other = data.draw(st.binary(min_size=len(payload), max_size=len(payload)))
    original, packet = made(payload, six)
    for names in (None, Pseudonyms("key")):
        changed = renew(packet, other, names)
        assert changed is not None
        assert len(changed) == len(original)
        assert changed.endswith(other)
        assert changed == right(changed, six)


@given(st.binary(min_size=30, max_size=40), st.integers(0, 29))
def test_a_packet_that_was_cut_stays_as_right_as_it_was(payload, kept):
    original, packet = made(payload)
    cut = EditablePacket(original[: packet.payload + kept], packet.payload, len(payload), packet.flow, packet.link)
    changed = renew(cut, bytes(kept), Pseudonyms("key"))
    assert changed is not None
    whole = changed + original[packet.payload + kept :]
    assert whole == right(whole, False)


@given(st.integers(0, 31), st.sampled_from([b"", b"payload"]))
def test_a_packet_that_was_cut_in_its_tcp_header_stays_as_long_and_as_right_as_it_was(kept, payload):
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether

    segment = TCP(sport=40000, dport=9092, seq=7, options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))])
    data = bytes(Ether(dst="00:aa:bb:cc:dd:ee") / IP(src="10.1.2.3", dst="10.1.9.9") / segment / payload)
    header = 14 + 20 + kept
    _, packet = made(b"")
    cut = EditablePacket(data[:header], len(data) - len(payload), len(payload), packet.flow, packet.link)
    changed = renew(cut, b"", Pseudonyms("key"))
    assert (changed is None) == (kept <= 12)  # where the header says its length
    if changed is not None:
        assert len(changed) == header
        whole = changed + data[header:]
        assert whole == right(whole, False) or kept < 18


@given(PAYLOADS, st.binary(min_size=1, max_size=20))
def test_what_lies_behind_the_payload_is_zeros(payload, tail):
    """A packet that was damaged may say less of its length than it holds: behind that a secret may stand."""
    original, packet = made(payload)
    longer = EditablePacket(original + tail, packet.payload, len(payload), packet.flow, packet.link)
    for names in (None, Pseudonyms("key")):
        changed = renew(longer, payload, names)
        assert changed is not None
        assert changed[packet.payload :] == payload + bytes(len(tail))
        assert changed[: len(original)] == right(changed[: len(original)], False)


def test_headers_are_found_behind_options_and_not_where_there_are_none():
    from scapy.layers.inet import IPOption_NOP

    _, packet = made(b"abc", options=[IPOption_NOP()] * 4)
    tcp = tcp_start(packet)
    assert tcp == packet.payload - 20
    assert ip_start(packet, tcp) == 14
    assert tcp_start(EditablePacket(bytes(60), 54, 6, packet.flow, 1)) is None
    assert renew(EditablePacket(bytes(60), 54, 6, packet.flow, 1), b"abcdef", None) is None


def test_a_packet_under_other_addresses_is_not_changed():
    """The outer addresses of a tunnel would stay."""
    data, packet = made(b"abc")
    inside = EditablePacket(bytes(50) + data, packet.payload + 50, 3, packet.flow, packet.link)
    assert renew(inside, b"xyz", Pseudonyms("key")) is None
    assert renew(inside, b"xyz", None) is not None


@given(st.binary(max_size=50))
def test_sums_are_those_of_words(data):
    padded = data + b"\0" * (len(data) & 1)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    assert (ones_sum(data) - total) % 0xFFFF == 0
    assert 0 <= ones_sum(data) <= 0xFFFF
