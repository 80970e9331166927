"""Messages from one process to another, with large arrays in memory that both share.

In: objects that can be pickled, one end of a socket pair. Out: the same objects at the other end, in order. Law: an array that
was received keeps its values for as long as anything refers to it. Memory is bounded: the sender is no more than AHEAD large
messages ahead, and shared memory is used again once nothing refers to it.

A slot is a piece of anonymous shared memory (memfd_create(2)), so that nothing stays when both processes are killed. Its file
descriptor travels over the socket (SCM_RIGHTS of unix(7)).
"""

import mmap
import os
import pickle
import socket
import tempfile
from collections import deque
from struct import Struct
from typing import Any, Final
from weakref import finalize

import numpy as np

from kcap.limits import INLINE_BYTES, JOBS_SLOTS_HELD

HEAD: Final = Struct("<QQqQ")
"""Bytes of the pickle, number of buffers, slot (NO_SLOT: the buffers follow), size of a slot that is new (0: it is not)."""
WORD: Final = Struct("<q")
"""What the receiver sends back: the number of a slot that is free again, or TAKEN."""
SIZE: Final = Struct("<Q")
NO_SLOT: Final = -1
TAKEN: Final = -1
"""A message with a slot was received, and the next one is wanted."""
AHEAD: Final = 2
"""Messages with a slot that were sent and not taken."""
ALIGNMENT: Final = 64
SLOT_STEP: Final = 1 << 22


class Slot:
    """A piece of shared memory."""

    def __init__(self, number: int, descriptor: int, size: int) -> None:
        self.number, self.descriptor, self.size = number, descriptor, size
        self.memory = mmap.mmap(descriptor, size)

    def grow(self, size: int) -> None:
        """Makes it larger; the other process has to map it again. Raises OSError where that cannot be done."""
        os.ftruncate(self.descriptor, size)
        larger = mmap.mmap(self.descriptor, size)
        self.memory.close()
        self.size, self.memory = size, larger


def anonymous(size: int) -> int:
    """File descriptor of memory that has no name. Raises OSError where a limit does not allow as much."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kcap", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile(prefix="kcap-") as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def exactly(line: socket.socket, size: int) -> bytearray:
    """The next bytes of a stream. Raises EOFError where it ends before."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = line.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


class Sender:
    """The end that sends."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._slots: list[Slot] = []
        self._free: list[Slot] = []
        self._ahead = 0

    @property
    def far_ahead(self) -> bool:
        """Whether the next large message would wait."""
        return self._ahead >= AHEAD

    def order(self) -> Any:
        """The receiver's first message. Raises EOFError where the receiver is gone."""
        return pickle.loads(exactly(self._line, SIZE.unpack(exactly(self._line, SIZE.size))[0]))  # noqa: S301 - our own process

    def listen(self, *, wait: bool = False) -> None:
        """Takes what the receiver sent back. Raises EOFError or OSError where the receiver is gone."""
        while True:
            try:
                data = self._line.recv(1 << 12, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not data:
                raise EOFError
            data += exactly(self._line, -len(data) % WORD.size)
            for (word,) in WORD.iter_unpack(data):
                if word == TAKEN:
                    self._ahead -= 1
                else:
                    self._free.append(self._slots[word])
            wait = False

    def send(self, message: Any) -> None:
        """Sends an object, once the receiver is near enough. Raises EOFError or OSError where the receiver is gone."""
        found: list[pickle.PickleBuffer] = []
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=found.append)
        buffers = [buffer.raw() for buffer in found]
        sizes = b"".join(SIZE.pack(buffer.nbytes) for buffer in buffers)
        total = sum(-(-buffer.nbytes // ALIGNMENT) * ALIGNMENT for buffer in buffers)
        slot, new = self._slot(total) if total > INLINE_BYTES else (None, False)
        if slot is None:
            self._line.sendall(HEAD.pack(len(data), len(buffers), NO_SLOT, 0) + sizes + data + b"".join(buffers))
            return
        at = 0
        with memoryview(slot.memory) as room:
            for buffer in buffers:
                room[at : at + buffer.nbytes] = buffer
                at += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        head = HEAD.pack(len(data), len(buffers), slot.number, slot.size if new else 0)
        socket.send_fds(self._line, [head], [slot.descriptor] if new else [])
        self._line.sendall(sizes + data)
        self._ahead += 1

    def close(self) -> None:
        """Closes the socket and the descriptors of shared memory."""
        self._line.close()
        while self._slots:
            os.close(self._slots.pop().descriptor)

    def _slot(self, size: int) -> tuple[Slot | None, bool]:
        """Waits for a free slot with room; whether the receiver has to map it.

        None where a limit of this process (RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE) allows no more shared memory.
        """
        self.listen()
        while self.far_ahead:
            self.listen(wait=True)
        size = -(-size // SLOT_STEP) * SLOT_STEP
        try:
            if not self._free:
                self._slots.append(Slot(len(self._slots), anonymous(size), size))
                return self._slots[-1], True
            if self._free[-1].size >= size:
                return self._free.pop(), False
            self._free[-1].grow(size)
        except OSError:
            return None, False
        return self._free.pop(), True


class Receiver:
    """The end that receives."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._slots: dict[int, Any] = {}
        """Number of a slot -> its memory as an array."""
        self._freed: deque[int] = deque()
        """Slots to which nothing refers any more; a finalizer appends to it, at any time."""
        self._held = 0
        self._taken = False

    def order(self, message: Any) -> None:
        """Sends the first message. Raises OSError where the sender is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._line.sendall(SIZE.pack(len(data)) + data)

    def receive(self) -> Any:
        """The next object. Raises EOFError or OSError where the sender is gone."""
        words = []
        while self._freed:
            words.append(self._freed.popleft())
            self._held -= 1
        if self._taken:
            words.append(TAKEN)
        self._taken = False
        if words:
            self._line.sendall(b"".join(map(WORD.pack, words)))
        head, descriptors, _, _ = socket.recv_fds(self._line, HEAD.size, 1)
        if not head:
            raise EOFError
        size, count, number, new = HEAD.unpack(head + exactly(self._line, HEAD.size - len(head)))
        sizes = [one for (one,) in SIZE.iter_unpack(exactly(self._line, SIZE.size * count))]
        data = exactly(self._line, size)
        if number == NO_SLOT:
            return pickle.loads(data, buffers=[exactly(self._line, one) for one in sizes])  # noqa: S301 - our own process
        self._taken = True
        if new:
            with open(descriptors[0], "r+b", buffering=0) as file:
                try:
                    self._slots[number] = mmap.mmap(file.fileno(), new)
                except OSError:
                    raise MemoryError from None
        return pickle.loads(data, buffers=self._views(number, sizes))  # noqa: S301 - our own process

    def _views(self, number: int, sizes: list[int]) -> list[Any]:
        """The buffers in a slot; copies of them where the caller holds so many slots that shared memory would grow."""
        owner: Any = np.frombuffer(self._slots[number], np.uint8)
        room, found, at = memoryview(owner), list[Any](), 0
        copied = self._held >= JOBS_SLOTS_HELD
        for size in sizes:
            view = room[at : at + size]
            found.append(bytearray(view) if copied else view)
            at += -(-size // ALIGNMENT) * ALIGNMENT
        self._held += 1
        if copied:
            self._freed.append(number)
        else:
            finalize(owner, self._freed.append, number).atexit = False
        return found
