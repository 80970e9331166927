"""Pieces of bytes put one behind the other, and directions told apart.

In: bytes, and where pieces or flow keys stand in them. Out: the pieces together; the keys, and whose each packet is. Law: the
compiled way gives what the plain one gives.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.net.segment_columns import SegmentColumns

    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]


def gather(source: "Bytes", starts: "Int64s", sizes: "Int64s", out: "Bytes", *, compiled: bool) -> None:
    """Copies pieces to the beginning of `out`."""
    if compiled:
        from kcap.capture.record_kernels import copy_pieces

        copy_pieces(source, starts, sizes, out)
        return
    view = memoryview(source.data)
    pieces = b"".join([view[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())])
    out[: len(pieces)] = np.frombuffer(pieces, np.uint8)


def directions_of(columns: "SegmentColumns", where: "Int64s", keys: "Int64s") -> "tuple[list[bytes], Int64s, Int64s]":
    """Flow keys of the segments at some places, none of them twice; the first segment of each, and the key of each segment.

    `keys` are the numbers of their flows (`kcap.distributed.flow_shards`), which both directions share.
    """
    sizes = columns.flow_size[where]
    if not columns.flows and sizes.min() == sizes.max():
        rows: Any = columns.data[columns.flow_at[where][:, None] + np.arange(int(sizes[0]))]
        ends = rows[:, -8:].copy().view("<i8")[:, 0]  # the target and the ports, which tell directions apart
        _, first, own = np.unique(keys ^ ends, return_index=True, return_inverse=True)
        if (rows[first][own] == rows).all():
            return [rows[at].tobytes() for at in first.tolist()], first, own
    places: dict[bytes, int] = {}
    heads: list[int] = []
    inverse: list[int] = []
    for at, key in enumerate(columns.lists(where).flow):
        place = places.setdefault(key, len(places))
        if place == len(heads):
            heads.append(at)
        inverse.append(place)
    return list(places), np.array(heads, np.int64), np.array(inverse, np.int64)
