"""Laws of the readers: the window's size, the place of a cut and the engine change nothing; no bytes raise."""

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.capture.pcap import PcapReader
from kcap.capture.pcapng import PcapngReader
from kcap.capture.window import Window
from kcap.model import CaptureFile
from tests.capture.handmade import START_NS, Weirds, block, enhanced, interface, old_packet, pcap, rows, section, simple

READERS = {"pcap": PcapReader, "pcapng": PcapngReader}

packets = st.lists(st.tuples(st.integers(0, 10**12), st.binary(max_size=90)), max_size=25)


@st.composite
def pcap_files(draw):
    chosen = draw(packets)
    return pcap(
        [(START_NS + time, data, len(data) + draw(st.integers(0, 3))) for time, data in chosen],
        draw(st.sampled_from("<>")),
        draw(st.booleans()),
        modified=False,
    )


@st.composite
def pcapng_files(draw):
    out = b""
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.sampled_from("<>"))
        out += section(order) + interface(order=order, resolution=draw(st.sampled_from([6, 9, 0x8A])))
        for time, data in draw(packets):
            kind = draw(st.integers(0, 9))
            if kind == 0:
                out += interface(draw(st.sampled_from([1, 113])), 9, order=order)
            elif kind == 1:
                out += simple(data, order=order)
            elif kind == 2:
                out += old_packet(time, data, order=order)
            elif kind == 3:
                out += block(draw(st.integers(4, 20)), data, order)
            else:
                out += enhanced(time, data, draw(st.sampled_from([0, 0, 0, 1])), order=order)
    return out


captures = st.one_of(st.tuples(st.just("pcap"), pcap_files()), st.tuples(st.just("pcapng"), pcapng_files()))


def read(form, data, window=1 << 16, chunk=1 << 20, jit_after=None):
    at = 0

    def some(size):
        nonlocal at
        part = data[at : at + min(size, chunk)]
        at += len(part)
        return part

    weirds, file = Weirds(), CaptureFile("a", "a")
    reader = READERS[form](Window(some, window, first=window), file, 0, weirds, jit_after)
    return [row for batch in reader.batches() for row in rows(batch)], weirds, file


@given(captures, st.integers(1, 300), st.integers(1, 300))
def test_any_window_and_any_pipe_give_the_same_packets(capture, window, chunk):
    whole, told, file = read(*capture)
    got, weirds, other = read(*capture, window, chunk)
    assert got == whole
    assert sorted(weirds.seen) == sorted(told.seen)
    assert other == file


@given(captures, st.integers(1, 400))
def test_the_compiled_readers_equal_the_plain_ones(capture, window):
    whole, told, file = read(*capture)
    got, weirds, other = read(*capture, window, jit_after=0)
    assert got == whole
    assert sorted(weirds.seen) == sorted(told.seen)
    assert other == file


@given(captures, st.data())
def test_a_cut_file_gives_a_prefix_and_says_so(capture, data):
    form, whole = capture
    cut = data.draw(st.integers(28 if form == "pcapng" else 24, len(whole)))
    everything, *_ = read(form, whole)
    got, weirds, file = read(form, whole[:cut], window=64)
    assert got == everything[: len(got)]
    again, *_ = read(form, whole[:cut], jit_after=0)
    assert again == got
    if not file.complete:
        assert "file_truncated" in weirds.kinds
    if cut == len(whole):
        assert file.complete
        assert got == everything


@pytest.mark.parametrize("jit_after", [None, 0])
@given(data=st.data())
@settings(max_examples=60)
def test_no_bytes_raise(jit_after, data):
    form, whole = data.draw(captures)
    spoilt = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 8))):
        if len(spoilt) > 28:
            spoilt[data.draw(st.integers(28, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    tail = data.draw(st.binary(max_size=200))
    got, _, file = read(form, bytes(spoilt) + tail, window=97, jit_after=jit_after)
    assert file.packets == len(got)
    assert [number for number, *_ in got] == list(range(1, len(got) + 1))
    assert all(wire >= len(content) for _, _, content, wire, _, _ in got)


@given(st.binary(max_size=300), st.sampled_from("<>"))
def test_random_blocks_do_not_raise(tail, order):
    body = section(order) + interface(order=order)
    plain = read("pcapng", body + tail)
    assert read("pcapng", body + tail, jit_after=0)[0] == plain[0]
    for kind in (1, 2, 3, 5, 6, 10):
        read("pcapng", body + block(kind, tail, order) + pack(order + "I", 6))
