"""Sends messages from one process to another, with large arrays in memory that both share.

In: objects that can be pickled, and one end of a socket pair. Out: the same objects at the other end, in order. Law: an array
that was received keeps its values as long as anything refers to it. Memory is bounded: the sender is at most AHEAD large
messages ahead, and shared memory is reused once nothing refers to it.

A slot is a piece of anonymous shared memory (memfd_create(2)), so that nothing remains when both processes are killed. Its file
descriptor is sent over the socket (SCM_RIGHTS of unix(7)). What the sender writes to an `arena` is in a slot from the beginning
and is not copied; the other arrays of a message are copied to another slot.
"""

import mmap
import os
import pickle
import socket
import tempfile
from collections import deque
from collections.abc import Callable
from itertools import count
from struct import Struct
from time import monotonic_ns
from typing import Any, Final
from weakref import finalize

import numpy as np

from kcap.limits import INLINE_BYTES, JOBS_SLOTS_HELD

HEAD: Final = Struct("<QQ")
"""Number of buffers, of which the last one is the pickle; number of slots that are new or were enlarged."""
PLACE: Final = Struct("<qQQ")
"""For a buffer: its slot (NO_SLOT: it follows), where it begins there, and its size in bytes."""
MAPPED: Final = Struct("<QQ")
"""Number and size of a slot that is new or was enlarged; its descriptor came with the head."""
WORD: Final = Struct("<q")
"""Word that the receiver sends back: the number of a slot that is free again; or, after it received a message with slots and
needs the next one, -1 minus the nanoseconds for which it had waited for that message.
"""
SIZE: Final = Struct("<Q")
NO_SLOT: Final = -1
DESCRIPTORS: Final = 8
"""Largest number of new slots in a message; the receiver has to state how many descriptors it accepts."""
AHEAD: Final = 3
"""Number of messages with a slot that may be sent before they are received."""
LATELY: Final = 0.9
"""Factor by which the weight of a waiting time decreases per message."""
ALIGNMENT: Final = 64
SLOT_STEP: Final = 1 << 22


class Slot:
    def __init__(self, number: int, size: int, free: "list[Slot]") -> None:
        """`free` is the list that it is added to when it is free. Raises OSError if a limit does not allow its size."""
        self.number, self.free, self.descriptor, self.mapped = number, free, anonymous(), 0
        """`mapped`: number of bytes that the receiver can see."""
        try:
            self.grow(size)
        except OSError:
            os.close(self.descriptor)
            raise

    def grow(self, size: int) -> None:
        """Enlarges it. Raises OSError if that is not possible."""
        os.ftruncate(self.descriptor, size)
        self.memory, self.size = mmap.mmap(self.descriptor, size), size


def anonymous() -> int:
    """File descriptor of empty anonymous memory."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("kcap", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(prefix="kcap-") as file:
        return os.dup(file.fileno())


def address_of(buffer: Any) -> int:
    """Address of the bytes of a buffer."""
    return int(np.asarray(buffer).__array_interface__["data"][0])


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """The next multiple of `to`."""
    return -(-size // to) * to


def exactly(line: socket.socket, size: int) -> bytearray:
    """Reads exactly `size` bytes of a stream. Raises EOFError if it ends before."""
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
        self._free_arenas: list[Slot] = []
        self._free: list[Slot] = []
        """Slots for other arrays, to which the receiver may refer for longer."""
        self._arenas: dict[int, tuple[int, int, Slot]] = {}
        """Address and size of each arena that was not sent, with its slot."""
        self._numbers = count()
        self._ahead = 0
        self._waited_ns = 0.0
        """By how much longer than the receiver this process has waited in recent messages, ns."""

    @property
    def waits_more(self) -> bool:
        """Whether, in recent messages, this process has waited longer for the other one than the reverse."""
        return self._waited_ns > 0

    @property
    def far_ahead(self) -> bool:
        """Whether the next large message would wait."""
        return self._ahead >= AHEAD

    def order(self) -> Any:
        """The receiver's first message. Raises EOFError if the receiver is gone."""
        return pickle.loads(exactly(self._line, SIZE.unpack(exactly(self._line, SIZE.size))[0]))  # noqa: S301 - our own process

    def listen(self, *, wait: bool = False) -> None:
        """Takes what the receiver sent back. Raises EOFError or OSError if the receiver is gone."""
        while True:
            try:
                data = self._line.recv(1 << 12, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not data:
                raise EOFError
            data += exactly(self._line, -len(data) % WORD.size)
            for (word,) in WORD.iter_unpack(data):
                if word < 0:
                    self._ahead -= 1
                    self._waited_ns = self._waited_ns * LATELY + word + 1
                else:
                    self._slots[word].free.append(self._slots[word])
            wait = False

    def arena(self, size: int) -> Any:
        """An array of bytes for a later message, with undefined contents; in shared memory if a limit allows that. It is
        returned once the receiver is near enough; otherwise there would be one more of them than messages in transit.
        """
        self._wait()
        slot = self._slot(size, self._free_arenas)
        if slot is None:
            return np.empty(size, np.uint8)
        found, number = np.frombuffer(slot.memory, np.uint8, size), next(self._numbers)
        self._arenas[number] = address_of(found), size, slot
        finalize(found, self._forget, number).atexit = False
        return found

    def _forget(self, number: int) -> None:
        """Nothing refers to an arena any more. If it was not sent, its slot is free."""
        if number in self._arenas:
            self._free_arenas.append(self._arenas.pop(number)[2])

    def send(self, message: Any) -> None:
        """Sends an object, once the receiver is near enough. Raises EOFError or OSError if the receiver is gone."""
        found: list[pickle.PickleBuffer] = []
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=found.append)
        buffers = [*(buffer.raw() for buffer in found), memoryview(data)]
        places = list(map(self._inside, buffers))
        others = [number for number, (slot, _) in enumerate(places) if slot is None]
        total = sum(aligned(buffers[number].nbytes) for number in others)
        if total > INLINE_BYTES or len(others) < len(buffers):
            self._wait()
        rest = self._slot(total, self._free) if total > INLINE_BYTES else None
        if rest is not None:
            self._lay(buffers, others, rest, places)
            others = []
        self._write(buffers, places, others)
        self._ahead += len(others) < len(buffers)
        self._arenas = {number: one for number, one in self._arenas.items() if all(one[2] is not slot for slot, _ in places)}

    def _wait(self) -> None:
        """Waits until the receiver is near enough."""
        self.listen()
        began = monotonic_ns()
        while self.far_ahead:
            self.listen(wait=True)
        self._waited_ns += monotonic_ns() - began

    def _inside(self, buffer: memoryview) -> tuple[Slot | None, int]:
        """The slot of the arena that contains a buffer, and the offset there; None for other buffers."""
        address = address_of(buffer)
        for first, size, slot in self._arenas.values():
            if 0 <= address - first < size:
                return slot, address - first
        return None, 0

    @staticmethod
    def _lay(buffers: list[memoryview], some: list[int], slot: Slot, places: list[tuple[Slot | None, int]]) -> None:
        """Copies some buffers to a slot."""
        top = 0
        with memoryview(slot.memory) as room:
            for number in some:
                size = buffers[number].nbytes
                room[top : top + size], places[number] = buffers[number], (slot, top)
                top += aligned(size)

    def _write(self, buffers: list[memoryview], places: list[tuple[Slot | None, int]], inline: list[int]) -> None:
        """Writes a message to the socket."""
        slots = {slot.number: slot for slot, _ in places if slot is not None}
        new = [slot for slot in slots.values() if slot.mapped != slot.size]
        socket.send_fds(self._line, [HEAD.pack(len(buffers), len(new))], [slot.descriptor for slot in new])
        parts = [MAPPED.pack(slot.number, slot.size) for slot in new]
        for (slot, at), buffer in zip(places, buffers):
            parts.append(PLACE.pack(NO_SLOT if slot is None else slot.number, at, buffer.nbytes))
        self._line.sendall(b"".join([*parts, *(buffers[number] for number in inline)]))
        for slot in new:
            slot.mapped = slot.size

    def close(self) -> None:
        """Closes the socket and the descriptors of shared memory."""
        self._line.close()
        while self._slots:
            os.close(self._slots.pop().descriptor)

    def _slot(self, size: int, free: list[Slot]) -> Slot | None:
        """A free or new slot with enough room; None if a limit of this process (RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE) allows
        none.
        """
        size = aligned(size, SLOT_STEP)
        try:
            if not free:
                self._slots.append(Slot(len(self._slots), size, free))
                return self._slots[-1]
            if free[-1].size < size:
                free[-1].grow(size)
        except OSError:
            return None
        return free.pop()


class Receiver:
    """The end that receives."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._slots: dict[int, Any] = {}
        """Number of a slot -> its memory as an array."""
        self._freed: deque[int] = deque()
        """Slots to which nothing refers any more. A finalizer appends to it at any time."""
        self._held = 0
        self._taken: int | None = None
        """How long the last message with slots was waited for, ns."""

    def order(self, message: Any) -> None:
        """Sends the first message. Raises OSError if the sender is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._line.sendall(SIZE.pack(len(data)) + data)

    def receive(self) -> Any:
        """Receives the next object. Raises EOFError or OSError if the sender is gone."""
        words = []
        while self._freed:
            words.append(self._freed.popleft())
            self._held -= 1
        if self._taken is not None:
            words.append(-1 - self._taken)
        began, self._taken = monotonic_ns(), None
        if words:
            self._line.sendall(b"".join(map(WORD.pack, words)))
        head, descriptors, _, _ = socket.recv_fds(self._line, HEAD.size, DESCRIPTORS)
        waited = monotonic_ns() - began
        if not head:
            raise EOFError
        count, new = HEAD.unpack(head + exactly(self._line, HEAD.size - len(head)))
        self._map(descriptors, list(MAPPED.iter_unpack(exactly(self._line, MAPPED.size * new))))
        places = list(PLACE.iter_unpack(exactly(self._line, PLACE.size * count)))
        slots = {number: self._views(number) for number in {number for number, _, _ in places} - {NO_SLOT}}
        self._taken = waited if slots else None
        *buffers, data = (
            slots[number](at, size) if number in slots else exactly(self._line, size) for number, at, size in places
        )
        return pickle.loads(data, buffers=buffers)  # noqa: S301 - our own process

    def _map(self, descriptors: list[int], slots: list[Any]) -> None:
        for descriptor, (number, size) in zip(descriptors, slots, strict=True):
            with open(descriptor, "r+b", buffering=0) as file:
                try:
                    self._slots[number] = mmap.mmap(file.fileno(), size)
                except OSError:
                    raise MemoryError from None

    def _views(self, number: int) -> Callable[[int, int], Any]:
        """Returns a function that gives buffers in a slot, by offset and size. It copies them if the caller holds so many slots
        that shared memory would grow.
        """
        owner: Any = np.frombuffer(self._slots[number], np.uint8)
        room = memoryview(owner)
        self._held += 1
        if self._held > JOBS_SLOTS_HELD:
            self._freed.append(number)
            return lambda at, size: bytearray(room[at : at + size])
        finalize(owner, self._freed.append, number).atexit = False
        return lambda at, size: room[at : at + size]
