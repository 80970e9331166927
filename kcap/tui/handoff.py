"""Hands a value from a thread to the screen without the thread's worker keeping it.

In: a value. Out: the same value, once. Law: after `take` nothing here refers to the value. Textual's workers form reference
cycles with their messages, so that what one returned, or what its function refers to, stays in memory until the collector of
cycles looks at old objects: with each refresh of a list of 6 million rows 24 MB would wait for that.
"""

from typing import Generic, TypeVar

from textual.worker import Worker, WorkerState

ENDS = frozenset({WorkerState.SUCCESS, WorkerState.ERROR, WorkerState.CANCELLED})

T = TypeVar("T")


class Handoff(Generic[T]):
    """A value that is taken once."""

    __slots__ = ("_held",)

    def __init__(self, value: T) -> None:
        self._held = [value]

    def take(self) -> T:
        """The value. Raises IndexError where it was taken before."""
        return self._held.pop()


def has_ended(event: Worker.StateChanged) -> bool:
    """Whether a message tells of its worker's end.

    The worker's own state does not say that: it is ahead of the messages, so that the message that a worker has begun, handled
    late, finds it finished.
    """
    return event.state in ENDS
