"""Addresses of PROXY protocol headers do not survive, however packets cut them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.export.proxied import HeaderEraser
from kcap.export.pseudonyms import Pseudonyms
from kcap.kafka.proxy_header import BINARY, is_text, proxy_header
from kcap.session import Capture
from tests.export.test_rewrite import Rewriter
from tests.fuzz.hostile import Connection, pcap, request, response

FLOW, START = b"flow", (1 << 32) - 20
TEXT = b"PROXY TCP4 203.0.113.77 198.51.100.99 40000 9092\r\n"
BINARY_ONE = BINARY + bytes([0x21, 0x11, 0, 12]) + bytes([203, 0, 113, 77, 198, 51, 100, 99]) + bytes(4)
HEADERS = (TEXT, BINARY_ONE, BINARY + bytes([0x21, 0x21, 0, 39]) + bytes(range(1, 37)) + bytes([4, 0, 0]), b"PROXY UNKNOWN\r\n")
BEHIND = request(1)


def sent(stream: bytes, cuts: Sequence[int]) -> list[tuple[int, bytes]]:
    """The stream in packets that end at these places, each with its offset."""
    ends = sorted({*cuts, len(stream)})
    return [(start, stream[start:end]) for start, end in zip([0, *ends], ends)]


@given(st.sampled_from(HEADERS), st.lists(st.integers(1, 60), max_size=8), st.booleans(), st.data())
def test_a_header_is_the_same_in_whatever_packets_it_comes(
    header: bytes, cuts: list[int], reads_before: bool, data: st.DataObject
) -> None:
    """Law: put together, they are a header of the same size that names no address, and what was behind it."""
    stream = header + BEHIND
    packets = sent(stream, [cut for cut in cuts if cut < len(stream)])
    eraser, out = HeaderEraser(), bytearray(len(stream))
    eraser.begins(FLOW, START)
    known = (len(header), is_text(header)) if reads_before else None
    again = data.draw(st.lists(st.sampled_from(packets), max_size=3))
    for offset, piece in data.draw(st.permutations([*packets, *again])) if reads_before else [*packets, *again]:
        made = eraser.erased(FLOW, (START + offset) % (1 << 32), piece, known)
        out[offset : offset + len(piece)] = made + piece[len(made) :]
    found = proxy_header(out)
    assert found is not None
    assert (found.size, found.addresses) == (len(header), "")
    assert out[len(header) :] == BEHIND


@pytest.mark.parametrize("size", range(1, len(TEXT)))
def test_a_header_that_never_ends_names_no_address(size: int) -> None:
    made = HeaderEraser().erased(FLOW, START, TEXT[:size])
    assert len(made) == size
    assert b"203" not in made


@given(st.binary(max_size=40))
def test_other_streams_stay(data: bytes) -> None:
    if not data.startswith((BINARY[:12], b"PROXY ")):
        made = HeaderEraser().erased(FLOW, START, data)
        assert made + data[len(made) :] == data


def test_ports_that_are_used_again_may_have_another_header() -> None:
    eraser = HeaderEraser()
    assert eraser.erased(FLOW, START, BEHIND) == b""
    eraser.begins(FLOW, 7)
    assert eraser.erased(FLOW, 7, TEXT).startswith(b"PROXY UNKNOWN")
    eraser.forget(FLOW)
    assert eraser.erased(FLOW, 99, TEXT).startswith(b"PROXY UNKNOWN")


@pytest.mark.parametrize("header", [TEXT, BINARY_ONE])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_capture_with_a_header_in_two_packets(header: bytes, shuffled: bool, tmp_path) -> None:  # type: ignore[no-untyped-def]
    connection = Connection().open()
    connection.send(0, header[:20])
    connection.send(0, header[20:] + BEHIND)
    connection.send(1, response(1))
    if shuffled:
        connection.packets[3:5] = [
            (when, data) for (when, _), (_, data) in zip(connection.packets[3:5], connection.packets[4:2:-1])
        ]
    path, out = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    path.write_bytes(pcap(iter(connection.packets)))
    with out.open("wb") as stream:
        Rewriter(str(path), None, redact=False, names=Pseudonyms("key")).write(stream, "pcapng", "")
    data = out.read_bytes()
    assert b"203.0" not in data
    assert b"100.99" not in data
    assert bytes([113, 77]) not in data
    rows = Capture([str(out)]).table("connections", ["detail", "exchanges"]).to_arrow().to_pylist()
    assert [row["exchanges"] for row in rows] == [1]
    assert rows[0]["detail"].startswith("PROXY protocol")
