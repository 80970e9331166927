"""Messages between processes: equal at the other end, kept for as long as they are held, memory used again."""

import gc
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

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
