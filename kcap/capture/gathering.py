"""Pieces of bytes put one behind the other, and directions told apart.

In: bytes, and where pieces or flow keys stand in them. Out: the pieces together; the keys, and whose each packet is. Law: the
compiled way gives what the plain one gives.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kcap.net.shares import FACTORS, MIXING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.net.columns import SegmentColumns

    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]
    Words = NDArray[np.uint64]


def gather(source: "Bytes", starts: "Int64s", sizes: "Int64s", out: "Bytes", *, compiled: bool) -> None:
    """Copies pieces to the beginning of `out`."""
    if compiled:
        from kcap.capture.jit import copy_pieces

        copy_pieces(source, starts, sizes, out)
        return
    view = memoryview(source.data)
    pieces = b"".join([view[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())])
    out[: len(pieces)] = np.frombuffer(pieces, np.uint8)


def directions_of(columns: "SegmentColumns", where: "Int64s") -> "tuple[list[bytes], Int64s, Int64s]":
    """Flow keys of the segments at some places, none of them twice; the first segment of each, and the key of each segment."""
    sizes = columns.flow_size[where]
    if not columns.flows and sizes.min() == sizes.max():
        rows: Any = columns.data[columns.flow_at[where][:, None] + np.arange(int(sizes[0]))]
        _, first, own = np.unique(hashed(rows), return_index=True, return_inverse=True)
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


def hashed(rows: "Bytes") -> "Words":
    """A number for the bytes of each row; rows that differ may share one."""
    wide = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    wide[:, : rows.shape[1]] = rows
    words, found = wide.view("<u8"), np.zeros(len(rows), np.uint64)
    for at in range(words.shape[1]):
        found = (found ^ words[:, at]) * FACTORS[at % len(FACTORS)]
        found ^= found >> np.uint64(29)
    return found * MIXING
