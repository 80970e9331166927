"""Both engines of the segment parser, held against each other."""

from struct import pack

import numpy as np

from kcap.model import PacketBatch
from kcap.net.segments import SegmentParser
from tests.capture.handmade import Weirds, segments

FLOW = b"\x0a\0\0\x01\x0a\0\0\x02" + pack(">HH", 40000, 9092)
FLOW6 = bytes(15) + b"\x01" + bytes(15) + b"\x02" + pack(">HH", 40000, 9092)


def columns(batch: PacketBatch) -> PacketBatch:
    """The same batch as the compiled readers would give it."""
    return PacketBatch(
        batch.file,
        batch.first_packet,
        batch.buffer,
        *(np.array(column, np.int64) for column in (batch.time_ns, batch.start, batch.captured, batch.wire, batch.position)),
        batch.link,
    )


def both(batch: PacketBatch, finish=False):
    """Segments and weirds, after making sure that both engines agree."""
    results = []
    for one in (batch, columns(batch)):
        weirds = Weirds()
        parser = SegmentParser(weirds)
        out = parser.parse(one)
        if finish:
            parser.finish()
        assert all(
            isinstance(number, int) for name in ("packet", "time_ns", "position", "seq") for number in getattr(out, name)
        )
        assert all(type(flow) is bytes for flow in out.flow)
        results.append((segments(out), weirds))
    assert results[0] == results[1]
    return results[0]
