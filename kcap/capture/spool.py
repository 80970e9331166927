"""Spills the bytes of input that can be read only once (a pipe, or the contents of a compressed file) to disk, for re-reading.

In: reads of the input. Out: the same reads, and the bytes again by offset. Law: nothing is spilled unless re-reading was
requested before the first packet, and never more than the limit.
"""

import os
import tempfile
from io import FileIO
from weakref import finalize

from kcap.capture.window import Read
from kcap.limits import SPOOL_BYTES_MAX


class Spool:
    """An unnamed file for the bytes of one source."""

    def __init__(self, limit: int = SPOOL_BYTES_MAX) -> None:
        self._limit = limit
        self._early: list[bytes] | None = []
        """Bytes read before `decide`, from the beginning of the file."""
        self._file: FileIO | None = None
        self.kept = 0
        """Number of bytes that were spilled, from the first byte on."""

    def reading(self, read: Read) -> Read:
        """A `read` that also spills what it reads."""

        def tee(size: int) -> bytes:
            data = read(size)
            if self._early is not None:
                self._early.append(data)
            elif self._file is not None:
                self._keep(data)
            return data

        return tee

    def decide(self, keep: bool) -> None:
        """Sets whether bytes are spilled; only the first call counts."""
        early, self._early = self._early, None
        if early is None or not keep:
            return
        # Unbuffered, because another process reads the spilled bytes through the file's descriptor.
        self._file = tempfile.TemporaryFile(prefix="kcap-", buffering=0)  # noqa: SIM115 - it lives for as long as the spool
        finalize(self, self._file.close)
        for data in early:
            self._keep(data)

    @property
    def number(self) -> int | None:
        """File descriptor of the spilled bytes, for another process; None if there are none."""
        return None if self._file is None else self._file.fileno()

    def _keep(self, data: bytes) -> None:
        """Spills bytes, up to the limit."""
        assert self._file is not None
        room = memoryview(data)[: self._limit - self.kept]
        while room:
            try:
                written = os.pwrite(self._file.fileno(), room, self.kept)
            except OSError:  # a full disk is a limit too; a request for bytes that are not stored reports that
                self._limit = self.kept
                return
            self.kept += written
            room = room[written:]

    def read(self, size: int, at: int) -> bytes:
        """Returns the bytes at an offset, as far as they were spilled."""
        if self._file is None or at >= self.kept:
            return b""
        return os.pread(self._file.fileno(), min(size, self.kept - at), at)
