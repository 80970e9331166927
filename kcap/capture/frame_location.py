"""Where a frame is in its file, according to the row of its exchange.

In: a row as the analyzer decided it, or a row of the table `exchanges`. Out: its file, the positions of its packets, its
direction and its first bytes. Law: both rows of an exchange give the same. A frame that continues in the next file, or of which
a position is not known, is in no file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kcap.model import PART, REF_FILE_SHIFT
from kcap.net.connections import flow_of, reverse_flow

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch

FramePlace = tuple[int | None, bytes, int, int]
"""File, direction, and positions of the first and the last packet."""


@dataclass(frozen=True, slots=True)
class FrameLocation:
    """Where a frame is, and its first bytes."""

    file: int | None
    """Index of the file; None if the frame cannot be read again."""
    flow: bytes
    """Flow key of the packets that carry it."""
    low: int
    high: int
    """Positions of its first and its last packet."""
    size: int
    """Bytes, with the length prefix."""
    head: bytes
    """The first bytes, as far as the row determines them."""
    first_ns: int | None
    """Time of the first byte, ns."""
    tls: bool = False
    """Whether its bytes are plaintext of TLS."""

    @property
    def where(self) -> FramePlace:
        """Where the packets that carry it are."""
        return self.file, self.flow, self.low, self.high


def location(batch: "RowBatch", at: int, side: str) -> FrameLocation:
    """The location of the `request` or the `response` of a decided exchange."""
    row: Sequence[Any] = batch.rows[at]
    identity = batch.identities[int(str(row[0]))]
    flow = _flow(side, identity.client_ip, identity.client_port, identity.server_ip, identity.server_port)
    size, low, high, first, last, first_ns = (
        row[PART[f"{side}_{name}"]] for name in ("bytes", "pos", "end_pos", "first_ref", "last_ref", "first_ns")
    )
    whole = None not in (first, size, low, high)
    one_file = whole and (last is None or last >> REF_FILE_SHIFT == first >> REF_FILE_SHIFT)
    head = _head(side, size, *(row[PART[name]] for name in ("api_key", "api_version", "correlation_id")))
    file = first >> REF_FILE_SHIFT if one_file else None
    return FrameLocation(file, flow, low, high, size or 0, head, first_ns, identity.tls)


def location_of(row: Mapping[str, Any], side: str, files: Mapping[str, int]) -> FrameLocation:
    """The same for a row of `exchanges`. `files` maps the name of a file to its index."""
    size, low, high = row[f"{side}_bytes"], row[f"{side}_pos"], row[f"{side}_end_pos"]
    whole = None not in (size, low, high, row[f"{side}_first_packet"]) and row[f"{side}_last_capture"] is None
    file = files.get(row["capture" if side == "request" else "response_capture"]) if whole else None
    flow = _flow(side, row["client_ip"], row["client_port"], row["server_ip"], row["server_port"])
    head = _head(side, size, row["api_key"], row["api_version"], row["correlation_id"])
    return FrameLocation(file, flow, low, high, size or 0, head, row[f"{side}_first_ns"], bool(row["tls"]))


def _flow(side: str, *ends: Any) -> bytes:
    """The flow key of a side's packets. `ends`: address and port of the client, then of the server."""
    flow = flow_of(*ends)
    return flow if side == "request" else reverse_flow(flow)


def _head(side: str, size: int | None, api_key: int | None, api_version: int | None, correlation_id: int | None) -> bytes:
    """The first bytes of a frame: its length prefix; API and version of a request; the correlation id (RequestHeader.json)."""
    if size is None:
        return b""
    head = (size - 4 & 0xFFFFFFFF).to_bytes(4, "big")
    if side == "request" and api_key is not None and api_version is not None:
        head += api_key.to_bytes(2, "big", signed=True) + api_version.to_bytes(2, "big", signed=True)
    return head if correlation_id is None else head + correlation_id.to_bytes(4, "big", signed=True)
