"""Selective acknowledgements in the options of a TCP header (RFC 2018, RFC 2883).

In: the options' bytes and the acknowledgement number. Out: `SACKED` if a block reports bytes behind a hole, `SPURIOUS` if the
first block reports bytes that were received twice (D-SACK). Law: damaged options report nothing, and nothing raises.
"""

from typing import Any, Final

from kcap.kernels import compiled
from kcap.net.segment_columns import SACKED, SPURIOUS

END, PADDING, SACK = 0, 1, 5
"""Kinds of options (RFC 9293 section 3.1, RFC 2018)."""
BLOCKS_MOST: Final = 4
HALF: Final = 1 << 31


@compiled
def selective(data: Any, at: int, end: int, ack: int) -> int:
    """Returns what the options in `data[at:end]` report, as bits beside the flags."""
    while at + 1 < end:
        kind = int(data[at])
        if kind == END:
            return 0
        if kind == PADDING:
            at += 1
            continue
        size = int(data[at + 1])
        if size < 2 or at + size > end:
            return 0
        if kind == SACK:
            found, left0, right0 = 0, 0, 0
            for block in range(min((size - 2) // 8, BLOCKS_MOST)):
                left, right = 0, 0
                for place in range(at + 2 + 8 * block, at + 6 + 8 * block):
                    left, right = left << 8 | int(data[place]), right << 8 | int(data[place + 4])
                ahead = (left - ack) & 0xFFFFFFFF
                if block == 0:
                    left0, right0 = left, right
                    found = SPURIOUS if ahead >= HALF else SACKED if ahead else 0
                elif block == 1 and (left0 - left) & 0xFFFFFFFF < HALF and (right - right0) & 0xFFFFFFFF < HALF:
                    found = SPURIOUS | SACKED  # the first block lies within the second
                elif ahead and ahead < HALF:
                    found |= SACKED
            return found
        at += size
    return 0
