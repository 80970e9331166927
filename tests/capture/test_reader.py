"""Laws of both readers: the window's size and the place of a cut change nothing; no bytes raise."""

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.drawn import captures, read
from tests.capture.handmade import block, interface, section


@given(captures, st.integers(1, 300), st.integers(1, 300))
def test_any_window_and_any_pipe_give_the_same_packets(capture, window, chunk):
    whole, reported, file = read(*capture)
    got, weirds, other = read(*capture, window, chunk)
    assert got == whole
    assert sorted(weirds.seen) == sorted(reported.seen)
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
