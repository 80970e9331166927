"""One exchange of a capture: its row, its two messages, its packets.

In: a batch of decided exchanges, and a reader of frames. Out: a row as Python values, the messages and the packets, each made
when it is first read. Law: a message that is read again is the one from which the row was made.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from kcap.analyzer import RowBatch
from kcap.capture.frame_location import FrameLocation, location
from kcap.capture.frame_reader import FrameReader
from kcap.capture.packet_source import Packet
from kcap.kafka.headers import PREFIX
from kcap.model import PART, CaptureFile

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.facts.tracker import MetadataTracker
    from kcap.table.exchanges import Exchanges


class Exchange:
    """One exchange of a capture: its row, its two messages, its packets."""

    __slots__ = ("__dict__", "_at", "_frames", "_raw", "_rows")

    def __init__(self, rows: "ExchangeRows", at: int, frames: FrameReader) -> None:
        self._rows = rows
        self._at = at
        self._frames = frames
        self._raw = rows.batch.rows[at]

    @cached_property
    def row(self) -> dict[str, Any]:
        """Every column of the table `exchanges`."""
        return {name: column[self._at] for name, column in self._rows.columns.items()}

    def frame(self, side: str) -> bytes:
        """The bytes of the request or the response with their length prefix, up to the first gap in the capture."""
        return self._frames.frame(self._location(side))

    def _body(self, side: str) -> bytes:
        """The same without the length prefix."""
        return self._frames.frame(self._location(side), behind=PREFIX.size)

    def _location(self, side: str) -> FrameLocation:
        return location(self._rows.batch, self._at, side)

    @cached_property
    def request(self) -> "Message | None":
        """The request, read again from the file; None if there is none, if it is a raw SASL token, or if it was not
        retained.
        """
        from kcap.decode.message import decode_request

        frame = self._body("request") if self._raw[PART["api_key"]] is not None else b""
        return decode_request(frame) if len(frame) >= 4 else None

    @cached_property
    def response(self) -> "Message | None":
        """The response, read again from the file; None if there is none, if it responds to a raw SASL token, or if it was not
        retained.
        """
        from kcap.decode.message import decode_response

        frame = self._body("response") if self._raw[PART["correlation_id"]] is not None else b""
        key, version = self._rows.batch.rows[self._at][PART["api_key"]], self._raw[PART["api_version"]]
        if len(frame) < 4 or not isinstance(key, int | None) or not isinstance(version, int | None):
            return None
        return decode_response(frame, key, version)

    def packets(self) -> list[Packet]:
        """The packets that carried the bytes of both frames, in time order."""
        sides = [self._frames.packets(self._location(side))[0] for side in ("request", "response")]
        return sorted(chain.from_iterable(sides), key=lambda packet: packet.time_ns)

    def __repr__(self) -> str:
        row = self.row
        return f"<exchange {row['connection']}.{row['exchange']} {row['api']} v{row['api_version']} {row['outcome']}>"


class ExchangeRows:
    """A batch of exchanges whose columns are made when one of them is first read."""

    def __init__(self, batch: RowBatch, files: Sequence[CaptureFile], tracker: "MetadataTracker | None" = None) -> None:
        """`tracker` has observed the earlier batches. Without one, only the facts of this batch are known."""
        self.batch = batch
        self._files = files
        self.exchanges = None if tracker is None or not len(batch) else observed(batch, files, tracker)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Every column as Python values."""
        from kcap.facts.tracker import MetadataTracker
        from kcap.table.exchanges import ExchangeColumns
        from kcap.table.schema import choose

        exchanges = self.exchanges or observed(self.batch, self._files, MetadataTracker())
        return ExchangeColumns(choose("exchanges", None)).make(exchanges).to_pydict()


def observed(batch: RowBatch, files: Sequence[CaptureFile], tracker: "MetadataTracker") -> "Exchanges":
    """Makes the rows of a batch with the facts that hold for them."""
    from kcap.batch.columns import BatchColumns
    from kcap.table.exchanges import Exchanges, NameColumn

    columns = BatchColumns(batch)
    return Exchanges(columns, tracker.observe(columns, files=files), NameColumn([file.name for file in files]))
