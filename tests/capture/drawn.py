"""Capture files drawn by hypothesis, and a reader over any window and pipe."""

from hypothesis import strategies as st

from kcap.capture.pcap import PcapReader
from kcap.capture.pcapng import PcapngReader
from kcap.capture.window import FileWindow
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
    reader = READERS[form](FileWindow(some, window, first=window), file, 0, weirds, jit_after)
    return [row for batch in reader.batches() for row in rows(batch)], weirds, file
