"""Base class of the readers of both formats: counts batches, and reports oddities of the whole file at its end."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kcap.capture.sections import FileSections
from kcap.capture.window import FileWindow
from kcap.limits import COMPILE_AFTER_BYTES, JIT_AFTER_BYTES, MAPPED_PACKET_BYTES
from kcap.model import CaptureFile, PacketBatch
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from types import ModuleType


class CaptureFileReader(ABC):
    """The capture file that is being read."""

    def __init__(
        self, window: FileWindow, file: CaptureFile, index: int, report: Report, jit_after: int | None = JIT_AFTER_BYTES
    ) -> None:
        self.file = file
        self.index = index
        self.sections = FileSections()
        """What is needed to read the file from its middle."""
        self._window = window
        self._report = report
        self._jit_after = jit_after
        self._packets = 0
        self._last_ns: int | None = None
        self._kernels: ModuleType | None = None
        self._stopped = False

    def batches(self) -> Iterator[PacketBatch]:
        for batch in self._read():
            self._count(batch)
            yield batch
        if not self.file.packets:
            self._report(WeirdKind.FILE_EMPTY, "no packet", self.index, 0, 0)
        if self.file.kernel_drops:
            self._report(WeirdKind.KERNEL_DROPS, f"{self.file.kernel_drops} packets", self.index, 0, 0)

    @property
    def base(self) -> int:
        """Position in the file of the first byte of the last batch's buffer."""
        return self._window.base

    @abstractmethod
    def _read(self) -> Iterator[PacketBatch]: ...

    def _damage(self, kind: WeirdKind, detail: str, at: int) -> None:
        """Reports that the file cannot be followed beyond `at` of the window."""
        self.file.complete, self.file.fault = False, self.file.fault or detail
        self._stopped = True
        self._report(kind, detail, self.index, 0, self._window.base + at)

    def _compiled(self) -> "ModuleType | None":
        """The compiled loops, once enough was read for them to pay off; None before."""
        if self._kernels is None and self._jit_after is not None and self._window.base >= self._jit_after:
            from kcap import kernels

            if kernels.usable(make=self._window.base >= COMPILE_AFTER_BYTES):
                from kcap.capture import record_kernels

                self._kernels = record_kernels
        return self._kernels

    def _sparse(self) -> bool:
        """Whether packets have been so large that a map costs less than reading."""
        return self.file.packet_bytes > MAPPED_PACKET_BYTES * self.file.packets

    def _count(self, batch: PacketBatch) -> None:
        """Adds the batch to the file's figures, and checks whether time goes back."""
        file, times, captured, wire = self.file, batch.time_ns, batch.captured, batch.wire
        file.packets += len(batch)
        before = self._last_ns
        file.packet_bytes += total(captured)
        file.cut_packets += cut_packets(captured, wire)
        ordered = in_order(times)
        low, high = (int(times[0]), int(times[-1])) if ordered else (int(min(times)), int(max(times)))
        if not ordered or (before is not None and low < before):
            self._times_back(batch, before)
        self._last_ns = int(times[-1])
        file.first_ns = low if file.first_ns is None else min(low, file.first_ns)
        file.last_ns = high if file.last_ns is None else max(high, file.last_ns)

    def _times_back(self, batch: PacketBatch, before: int | None) -> None:
        times: Sequence[int] = [int(time) for time in batch.time_ns]
        for entry, time in enumerate(times):
            if before is not None and time < before:
                number = batch.first_packet + entry
                self._report(WeirdKind.TIME_WENT_BACK, f"{before - time} ns", self.index, number, int(batch.position[entry]))
            before = time


def in_order(times: Any) -> bool:
    """Whether no time is before the previous one. Sorting sorted data is the fastest way to find out."""
    return sorted(times) == times if isinstance(times, list) else not (times[1:] < times[:-1]).any()


def total(sizes: Any) -> int:
    return sum(sizes) if isinstance(sizes, list) else int(sizes.sum())


def cut_packets(captured: Any, wire: Any) -> int:
    """Number of packets that were longer on the wire."""
    if isinstance(captured, list):
        return 0 if captured == wire else sum(map(int.__lt__, captured, wire))
    return int((captured < wire).sum())
