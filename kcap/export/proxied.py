"""Removes the addresses from PROXY protocol headers, packet by packet, also from headers that span packets.

In: the payloads of each direction in the order of the file. Out: the replacement of the header's bytes in each. Law: no byte of
an address remains, and no byte after the header changes.
"""

from dataclasses import dataclass
from typing import Final

from kcap.kafka.proxy_header import HEAD, HEADER_MOST, begins_one, header_without_addresses, is_text, proxy_header
from kcap.net.tcp import MASK

SIZE_AT: Final = HEAD.size - 2
"""Offset in version 2 of the size of what follows."""


@dataclass(slots=True)
class Beginning:
    """The beginning of one direction."""

    start: int
    """Sequence number of its first byte."""
    data: bytes = b""
    """Its first bytes, as far as they are contiguous."""
    header: bytes | None = None
    """The replacement of its header, b"" if it has none; None while that is not known."""


class HeaderEraser:
    """The directions of a file."""

    def __init__(self) -> None:
        self._flows: dict[bytes, Beginning] = {}

    def begins(self, flow: bytes, start: int) -> None:
        """A direction begins at this sequence number, even if its ports were used before."""
        before = self._flows.get(flow)
        if before is None or before.start != start:
            self._flows[flow] = Beginning(start)

    def forget(self, flow: bytes) -> None:
        """The next payload of this direction begins a new connection, unless its SYN shows that."""
        self._flows.pop(flow, None)

    def erased(self, flow: bytes, seq: int, payload: bytes, known: tuple[int, bool] | None = None) -> bytes:
        """The replacement of the payload's first bytes; empty if these are not a header. `known`: bytes of the header and
        whether it is text, if the whole stream was read before."""
        one = self._flows.setdefault(flow, Beginning(seq))
        if one.header is None and known is not None:
            one.header = header_without_addresses(*known)
        offset = seq - one.start & MASK
        if one.header is not None:
            return one.header[offset : offset + len(payload)]
        if offset <= len(one.data) < offset + len(payload):
            one.data += payload[len(one.data) - offset :]
        found = proxy_header(one.data)
        if found is not None:
            one.header = header_without_addresses(found.size, is_text(one.data))
        elif not begins_one(one.data) or len(one.data) > HEADER_MOST:
            one.header, one.data = b"", b""
        header = unfinished(one.data) if one.header is None else one.header
        return header[offset : offset + len(payload)]


def unfinished(data: bytes) -> bytes:
    """The replacement of the first bytes of an incomplete header; the bytes that show where it ends remain."""
    text = is_text(data)
    made = header_without_addresses(HEADER_MOST, text)[: len(data)]
    if text:
        return made[:-1] + b"\r" if data.endswith(b"\r") else made
    return made[:SIZE_AT] + data[SIZE_AT : HEAD.size] + made[HEAD.size :]
