"""Messages between processes: equal at the other end, kept for as long as they are held, memory used again."""

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from pickle import PickleBuffer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.jobs.transport import AHEAD, INLINE_BYTES, Receiver, Sender
from kcap.limits import JOBS_SLOTS_HELD

LARGE = INLINE_BYTES


@pytest.fixture
def ends() -> Iterator[tuple[Sender, Receiver]]:
    """A sender and its receiver, in one process."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        sender = Sender(theirs)
        yield sender, Receiver(mine)
        sender.close()


def gathered(sender: Sender, size: int, word: int, room: int = LARGE) -> memoryview:
    """Bytes that were written to an arena."""
    arena = sender.arena(room)
    arena[:size] = word
    return memoryview(arena[:size])


def in_thread(sender: Sender, messages: list[Any]) -> threading.Thread:
    """Sends in the background, as another process would."""
    thread = threading.Thread(target=lambda: [sender.send(message) for message in messages], daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("sizes", [[], [0], [3, 0, 5], [LARGE], [1, LARGE + 1, 0, 7]])
def test_what_is_received_is_what_was_sent(ends: tuple[Sender, Receiver], sizes: list[int]) -> None:
    sender, receiver = ends
    sent = [np.arange(size, dtype=np.int64) for size in sizes]
    thread = in_thread(sender, [{"word": sent}])
    found = receiver.receive()["word"]
    thread.join()
    assert [part.tolist() for part in found] == [part.tolist() for part in sent]


def test_arrays_that_are_held_keep_their_values_and_memory_is_used_again(ends: tuple[Sender, Receiver]) -> None:
    sender, receiver = ends
    count = 3 * JOBS_SLOTS_HELD
    thread = in_thread(sender, [np.full(LARGE, number) for number in range(2 * count)])
    held = [receiver.receive() for _ in range(count)]
    assert [int(part[0]) for part in held] == [int(part[-1]) for part in held] == list(range(count))
    assert len(sender._slots) <= JOBS_SLOTS_HELD + AHEAD + 1, "beyond these they are copies"
    held.clear()
    gc.collect()
    for number in range(count, 2 * count):
        assert int(receiver.receive()[7]) == number
    thread.join()
    assert len(sender._slots) <= JOBS_SLOTS_HELD + AHEAD + 1


def test_a_slot_grows_with_its_messages(ends: tuple[Sender, Receiver]) -> None:
    sender, receiver = ends
    sizes = [LARGE, 1 << 20, LARGE, 3 << 20]
    thread = in_thread(sender, [np.full(size, size) for size in sizes])
    for size in sizes:
        found = receiver.receive()
        assert found.shape == (size,)
        assert int(found[-1]) == size
        del found
    thread.join()


def test_the_sender_is_never_far_ahead(ends: tuple[Sender, Receiver]) -> None:
    sender, receiver = ends
    thread = in_thread(sender, [np.zeros(LARGE)] * (AHEAD + 3))
    thread.join(0.2)
    assert thread.is_alive(), "it waits for the receiver"
    assert sender._ahead == AHEAD
    for _ in range(AHEAD + 3):
        receiver.receive()
    thread.join(5)
    assert not thread.is_alive()


def test_either_end_notices_that_the_other_is_gone() -> None:
    mine, theirs = socket.socketpair()
    sender, receiver = Sender(theirs), Receiver(mine)
    theirs.close()
    with pytest.raises(EOFError):
        receiver.receive()
    mine.close()
    mine, theirs = socket.socketpair()
    sender = Sender(theirs)
    mine.close()
    with pytest.raises(EOFError):
        sender.listen()
    with pytest.raises(OSError, match="Broken pipe"):
        sender.send(b"x")
    sender.close()


@pytest.mark.parametrize("when", [0, 2])
def test_where_no_more_memory_can_be_shared_all_goes_over_the_socket(
    ends: tuple[Sender, Receiver], monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """A limit of the sender, such as RLIMIT_FSIZE, changes speed alone."""
    sender, receiver = ends
    sizes = [LARGE, LARGE, 1 << 20, LARGE, 2 << 20]
    left = iter([True] * when)

    def limited(descriptor: int, size: int) -> None:
        if not next(left, False):
            raise OSError(27, "File too large")
        truncate(descriptor, size)

    truncate = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", limited)
    thread = in_thread(sender, [np.full(size, size) for size in sizes])
    held = [receiver.receive() for _ in sizes]
    thread.join()
    assert [(len(part), int(part[-1])) for part in held] == [(size, size) for size in sizes]
    assert len(sender._slots) == when


def test_an_arena_is_where_the_receiver_reads_it(ends: tuple[Sender, Receiver]) -> None:
    sender, receiver = ends
    arena = sender.arena(LARGE)
    arena[:3] = 7, 8, 9
    sender.send([PickleBuffer(memoryview(arena[:3])), np.arange(5), np.arange(2 * LARGE), PickleBuffer(bytearray(b"x"))])
    bodies, *others, word = receiver.receive()
    arena[0] = 6
    assert bytes(bodies) == bytes([6, 8, 9]), "it was not copied"
    assert [other.tolist() for other in others] == [[*range(5)], [*range(2 * LARGE)]]
    assert bytes(word) == b"x"
    del bodies, others, word
    gc.collect()
    sender.send(PickleBuffer(gathered(sender, 1, 1)))
    receiver.receive()
    gc.collect()
    thread = in_thread(sender, [b"x"])
    receiver.receive()
    thread.join()
    for word in range(5):
        sender.send(PickleBuffer(gathered(sender, 9, word)))
        assert bytes(receiver.receive()) == bytes([word] * 9)
    assert len(sender._slots) <= 4, "slots are used again"


def test_an_arena_that_is_not_sent_is_used_again(ends: tuple[Sender, Receiver]) -> None:
    sender, _ = ends
    for _ in range(3):
        arena = sender.arena(LARGE)
        view = memoryview(arena[:5])
        del arena
        assert not sender._free_arenas, "something refers to it"
        del view
    assert len(sender._slots) == len(sender._free_arenas) == 1
    assert len(sender.arena(5 * LARGE)) == 5 * LARGE
    assert len(sender._slots) == 1, "it grew"


LENGTHS = st.lists(st.integers(0, 3) | st.integers(LARGE // 8, LARGE // 4), max_size=3)
MESSAGES = st.tuples(st.none() | st.integers(0, LARGE), LENGTHS, st.booleans())
"""Bytes in an arena, lengths of other arrays, and whether the receiver holds the message to the end."""


@given(st.lists(MESSAGES, max_size=3 * JOBS_SLOTS_HELD))
def test_what_is_held_keeps_its_values_wherever_it_lies(messages: list[tuple[int | None, list[int], bool]]) -> None:
    """Law, for messages with and without an arena, of which some are held."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        sender, receiver = Sender(theirs), Receiver(mine)

        def run() -> None:
            for number, (size, lengths, _) in enumerate(messages):
                bodies = None if size is None else PickleBuffer(gathered(sender, size, number))
                sender.send((bodies, [np.full(length, number) for length in lengths]))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        held = []
        for number, (size, lengths, hold) in enumerate(messages):
            found = receiver.receive()
            held += [(number, size, lengths, found)] if hold else []
            assert (found[0] is None) is (size is None)
        thread.join(10)
        for number, size, lengths, (bodies, others) in held:
            assert size is None or bytes(bodies) == bytes([number] * size)
            assert [other.tolist() for other in others] == [[number] * length for length in lengths]
        sender.close()


def test_the_one_that_had_to_wait_is_known(ends: tuple[Sender, Receiver]) -> None:
    sender, receiver = ends
    thread = in_thread(sender, [np.zeros(LARGE)] * (AHEAD + 1))
    time.sleep(0.05)
    receiver.receive()
    time.sleep(0.05)
    receiver.receive()
    thread.join()
    assert sender.waits_more
    for _ in range(AHEAD - 1):
        receiver.receive()
    late = threading.Timer(0.3, sender.send, [np.zeros(LARGE)])
    late.start()
    receiver.receive()
    late.join()
    thread = in_thread(sender, [b"x"])
    receiver.receive()
    thread.join()
    sender.listen()
    assert not sender.waits_more
