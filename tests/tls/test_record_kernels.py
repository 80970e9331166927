"""Content of records behind the library: data stays, what says nothing is left out, anything else ends its direction."""

import numpy as np
import pytest

from kcap.tls.record_kernels import KEYS_WIDTH, contents

TICKET = b"\x04\0\0\x05lives"


@pytest.mark.parametrize(
    ("content_type", "data", "silent"),
    [
        (b"\x16", TICKET, True),
        (b"\x16", TICKET + TICKET, True),
        (b"\x16", TICKET[:-1], False),
        (b"\x16", TICKET + b"\x18\0\0\x01\0", False),
        (b"\x16", b"\x18\0\0\x01\0", False),
        (b"\x16", b"", False),
        (b"\x15", b"\x01\0", True),
        (b"\x15", b"\x01\x5a", True),
        (b"\x15", b"\x02\x28", False),
        (b"\x15", b"", False),
        (b"", b"", False),
    ],
)
@pytest.mark.parametrize("padding", [0, 16])
def test_tickets_and_close_notify_are_passed_among_data(content_type: bytes, data: bytes, silent: bool, padding: int) -> None:
    """KeyUpdates, other alerts and parts of messages are not: the session has to read them."""
    inner = [b"before\x17", data + content_type + bytes(padding), b"behind\x17\0\0"]
    bounds = np.array([(0, at, at + 1) for at in range(3)] + [(1, 3, 4)], np.int64)
    sizes, counts = np.array([*map(len, inner), 6], np.int64), np.array([3, 1])
    plain = np.frombuffer(bytearray(b"".join(inner) + b"other\x17"), np.uint8)
    contents(np.full(4, 23, np.uint8), bounds, np.array([0, 3]), counts, np.zeros((2, KEYS_WIDTH), np.uint8), plain, sizes)
    assert counts.tolist() == [3 if silent else 1, 1]
    assert sizes[: counts.sum()].tolist() == [6, *([0, 6] if silent else []), 5]
    wanted = b"before" + (b"behind" if silent else b"") + b"other"
    assert plain[: len(wanted)].tobytes() == wanted
