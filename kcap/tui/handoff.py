"""Hands a value from a thread to the screen without the thread's worker retaining it.

In: a value. Out: the same value, once. Law: after `take` nothing here refers to the value. Textual's workers form reference
cycles with their messages, so that what one returned, or what its function refers to, remains in memory until the garbage
collector examines old objects: with each refresh of a list of 6 million rows that would be 24 MB.
"""

from typing import Generic, TypeVar

from textual.worker import Worker, WorkerState

ENDS = frozenset({WorkerState.SUCCESS, WorkerState.ERROR, WorkerState.CANCELLED})

T = TypeVar("T")


class Handoff(Generic[T]):
    """A value that can be taken once."""

    __slots__ = ("_held",)

    def __init__(self, value: T) -> None:
        self._held = [value]

    def take(self) -> T:
        """The value. Raises IndexError if it was taken before."""
        return self._held.pop()


def has_ended(event: Worker.StateChanged) -> bool:
    """Whether a message reports the end of its worker.

    The worker's own state does not show that: it is ahead of the messages, so that when the message of its start is handled
    late, the worker is already finished.
    """
    return event.state in ENDS
