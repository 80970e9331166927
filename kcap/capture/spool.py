"""The bytes of what can be read only once, kept for a second look: a pipe's, or those inside a compressed file.

In: a read function. Out: the same reads, and the bytes again by position. Law: what is given again is what was read; nothing is
kept unless somebody asked for it before the first packet was handed out, and never more than the bound.
"""

import os
import tempfile
from io import FileIO
from weakref import finalize

from kcap.capture.window import Read
from kcap.limits import SPOOL_BYTES_MAX


class Spool:
    """An unnamed file beside one source."""

    def __init__(self, limit: int = SPOOL_BYTES_MAX) -> None:
        self._limit = limit
        self._early: list[bytes] | None = []
        """What was read before it was said whether to keep it: the beginning of a file."""
        self._file: FileIO | None = None
        self.kept = 0
        """Bytes from the first on."""

    def reading(self, read: Read) -> Read:
        """Reads as before, and keeps what comes."""

        def tee(size: int) -> bytes:
            data = read(size)
            if self._early is not None:
                self._early.append(data)
            elif self._file is not None:
                self._keep(data)
            return data

        return tee

    def decide(self, keep: bool) -> None:
        """Says whether to keep what comes and came; only the first word counts."""
        early, self._early = self._early, None
        if early is None or not keep:
            return
        # Without a buffer: another process reads what was kept by the file's descriptor.
        self._file = tempfile.TemporaryFile(prefix="kcap-", buffering=0)  # noqa: SIM115 - it lives for as long as the spool
        finalize(self, self._file.close)
        for data in early:
            self._keep(data)

    @property
    def number(self) -> int | None:
        """File descriptor of what is kept, for another process; None where nothing is."""
        return None if self._file is None else self._file.fileno()

    def _keep(self, data: bytes) -> None:
        """Bytes behind the bound are not kept, nor any after them."""
        assert self._file is not None
        room = memoryview(data)[: self._limit - self.kept]
        while room:
            try:
                written = os.pwrite(self._file.fileno(), room, self.kept)
            except OSError:  # a full disk is a bound too: what is not kept is said where it is asked for
                self._limit = self.kept
                return
            self.kept += written
            room = room[written:]

    def read(self, size: int, at: int) -> bytes:
        """Bytes again, as far as they were kept."""
        if self._file is None or at >= self.kept:
            return b""
        return os.pread(self._file.fileno(), min(size, self.kept - at), at)
