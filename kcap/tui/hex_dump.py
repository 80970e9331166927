"""Formats bytes as lines of hex and text with highlighted spans. Free of widgets.

In: a buffer, spans that are selected or hidden, the packets of the bytes. Out: lines with tones. Law: a line has sixteen
bytes, or eight in a narrow pane; hidden bytes are shown and copied as `**`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from kcap.capture.frame_bytes import PacketSpan

OFFSET: Final = 6
CHOSEN: Final = "cell"
WIDE: Final = OFFSET + 2 + 16 * 3 + 1 + 1 + 16


@dataclass(slots=True)
class Dump:
    """A buffer to show."""

    data: bytes = b""
    side: str = ""
    buffer: int = 0
    """Number among the buffers of its message; 0 is the frame, including its length prefix."""
    how: str = "frame"
    shift: int = 0
    """Number of bytes before the one from which nodes count."""
    start: int = 0
    end: int = 0
    """End of the selected span, in bytes of `data`."""
    cursor: int = 0
    hidden: Sequence[tuple[int, int]] = ()
    spans: "Sequence[PacketSpan]" = field(default_factory=tuple)
    found: Sequence[tuple[int, int]] = ()
    """Matches of a search."""

    def choose(self, start: int, end: int) -> None:
        self.start, self.end = start + self.shift, end + self.shift
        self.cursor = min(self.start, max(0, len(self.data) - 1))

    def per_line(self, width: int) -> int:
        """Bytes per line."""
        return 16 if width >= WIDE else 8

    def height(self, width: int) -> int:
        per = self.per_line(width)
        return (len(self.data) + per - 1) // per

    def veiled(self, at: int) -> bool:
        """Whether a byte is hidden."""
        return any(start <= at < end for start, end in self.hidden)

    def packet(self, at: int) -> int | None:
        """The packet that carried a byte."""
        return next((span.packet for span in self.spans if span.start <= at < span.end), None)

    def line(self, number: int, width: int, *, focused: bool) -> Line:
        per = self.per_line(width)
        first = number * per
        row = self.data[first : first + per]
        out: Line = [(f"{first:06x}", "dim"), ("  ", "")]
        texts: Line = []
        for place in range(per):
            at = first + place
            gap = " " if place and place % 8 == 0 else ""
            if at >= len(self.data):
                out.append((gap + "   ", ""))
                continue
            tone = self._tone(at, focused)
            veiled = bool(self.hidden) and self.veiled(at)
            joined = place + 1 < per and at + 1 < len(self.data) and tone and self._tone(at + 1, focused) == tone
            if gap:
                out.append((gap, tone if tone and self._tone(at - 1, focused) == tone else ""))
            out.append(("**" if veiled else f"{row[place]:02x}", tone or self._base(at, row[place])))
            out.append((" ", tone if joined and (place + 1) % 8 else ""))
            sign = "*" if veiled else chr(row[place]) if 32 <= row[place] < 127 else "·"
            texts.append((sign, tone or self._base(at, row[place])))
        out.append((" ", ""))
        out += texts
        packet = self.packet(first)
        if packet is not None and width >= WIDE + 10:
            begun = next((span.packet for span in self.spans if first <= span.start < first + per), None)
            if begun is not None or not number:
                out.append((" " * (per - len(row)) + f"  #{packet if begun is None else begun}", "dim"))
        return out

    def _tone(self, at: int, focused: bool) -> str:
        if focused and at == self.cursor:
            return CHOSEN
        if self.start <= at < self.end:
            return "pick"
        if any(start <= at < end for start, end in self.found):
            return "key"
        return ""

    def _base(self, at: int, byte: int) -> str:
        """The base style of a byte: bytes of every other packet differ a little, and zeros are dim."""
        if at < self.shift:
            return "dim"
        if len(self.spans) > 1:
            number = next((n for n, span in enumerate(self.spans) if span.start <= at < span.end), 0)
            if number % 2:
                return "two"
        return "dim" if byte == 0 else ""

    def hex(self, start: int, end: int) -> str:
        """Bytes for the clipboard; hidden ones as shown."""
        return " ".join("**" if self.veiled(at) else f"{self.data[at]:02x}" for at in range(start, min(end, len(self.data))))

    def where(self) -> str:
        """The byte under the cursor in words."""
        if not self.data:
            return ""
        at = self.cursor
        text = f"byte {at:,} of {len(self.data):,}"
        if self.buffer:
            text += f", {self.how}"
        packet = self.packet(at)
        return text + (f", packet {packet}" if packet is not None else "")

    def search(self, needle: bytes, step: int) -> bool:
        """Moves the cursor to the next occurrence of some bytes; returns whether there is one."""
        if not needle:
            return False
        if step > 0:
            at = self.data.find(needle, self.cursor + 1)
            at = at if at >= 0 else self.data.find(needle)
        else:
            at = self.data.rfind(needle, 0, self.cursor + len(needle) - 1)
            at = at if at >= 0 else self.data.rfind(needle)
        if at < 0:
            return False
        self.cursor = at
        self.found = [(at, at + len(needle))]
        return True
