"""Delivers keys one after another, each to the screen that the keys before it have opened.

In: keys and pasted texts, as fast as a terminal sends them. Out: the same, in order. Law: a key is delivered when all effects
of the key before it have happened: screens are pushed, popped and filled, the focus has moved. No key is dropped, except those
meant for a view that Escape closes while it is still being computed.
"""

import time
from collections import deque
from typing import Any, Final

from textual import events
from textual.app import App
from textual.message import Message

STEADY_LAPS: Final = 2
"""Number of laps without a change of screen or focus after which a key has had its effect: messages that its action posted take
one."""
LOOK_SECONDS: Final = 0.02
"""Interval in which a screen is checked for readiness."""
LOST_SECONDS: Final = 0.3
"""Time after which a lap that has not come back is lost: it went to a widget that was removed."""
CANCEL_SECONDS: Final = 0.5
"""Time after which Escape closes a screen that is not ready; before it, Escape waits like other keys."""
AT_ONCE: Final = frozenset({"ctrl+q"})
"""Keys that never wait."""
LEAVING: Final = frozenset({"escape", "q"})
"""Keys that close a screen which is still being computed."""


class Followed(Message):
    """A message that follows a key from the focused widget up to the app. It arrives when the key has been handled."""

    def __init__(self, lap: int) -> None:
        super().__init__()
        self.lap = lap


class KeyQueue(App[None]):
    """An app whose keys wait for each other.

    A screen may have `ready`, whether keys can reach what it shows, `PATIENCE_SECONDS`, how long keys wait for that, and
    `passes`, whether a key need not wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key | events.Paste] = deque()
        self._busy = False
        self._lap = self._steady = 0
        self._key_began = 0.0
        self._where: tuple[Any, Any] = (None, None)

    @property
    def keys_wait(self) -> bool:
        """Whether a key waits, or is being handled."""
        return self._busy or self.more_keys

    @property
    def more_keys(self) -> bool:
        """Whether keys wait after the one that is being handled."""
        return bool(self._typed)

    @property
    def unused_seconds(self) -> float:
        """Time since the last key was delivered; 0 while a key waits or is being handled."""
        return 0.0 if self.keys_wait else time.monotonic() - self._key_began

    async def on_event(self, event: events.Event) -> None:
        """Queues keys and pasted texts; passes other events on."""
        waits = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        if waits and not (isinstance(event, events.Key) and event.key in AT_ONCE):
            assert isinstance(event, events.Key | events.Paste)
            self._typed.append(event)
            if not self._busy:
                await self._deliver()
        else:
            await super().on_event(event)

    async def _deliver(self) -> None:
        if not self._typed:
            return
        event = self._typed.popleft()
        self._busy, self._steady, self._key_began = True, 0, time.monotonic()
        try:
            await super().on_event(event)
        finally:
            self._follow()

    def _follow(self) -> None:
        """Sends a message after the key."""
        self._lap += 1
        if self._exit or not self.screen_stack:
            self._busy = False
            return
        self._where = self.screen, self.focused
        if not (self.focused or self.screen).post_message(Followed(self._lap)):
            self.call_later(self._came, self._lap)
        lap = self._lap
        self.set_timer(LOST_SECONDS, lambda: self._came(lap))

    async def on_followed(self, message: Followed) -> None:
        """Handles the end of a lap."""
        message.stop()
        await self._came(message.lap)

    async def _came(self, lap: int) -> None:
        """Begins another lap, waits for the screen, or delivers the next key."""
        if lap != self._lap or not self._busy:
            return
        self._steady = self._steady + 1 if (self.screen, self.focused) == self._where else 0
        if self._steady < STEADY_LAPS:
            self._follow()
            return
        screen, waited = self.screen, time.monotonic() - self._key_began
        if waited >= CANCEL_SECONDS:
            self._cancel(screen)
        patient = waited < float(getattr(screen, "PATIENCE_SECONDS", 0.0))
        if patient and not getattr(screen, "ready", True) and not self._may_leave(screen, waited):
            self.set_timer(LOOK_SECONDS, lambda: self._came(lap))
            return
        self._busy = False
        await self._deliver()

    def _may_leave(self, screen: Any, waited: float) -> bool:
        """Whether the next key closes a screen that need not become ready for it."""
        if not self._typed:
            return False
        event = self._typed[0]
        passes = getattr(screen, "passes", None)
        if passes is not None and isinstance(event, events.Key) and passes(event.key):
            return True
        return waited >= CANCEL_SECONDS and self._leaves(event)

    def _cancel(self, screen: Any) -> None:
        """Drops the keys that were meant for a screen that the user closes before it is ready."""
        if getattr(screen, "ready", True):
            return
        at = next((at for at, event in enumerate(self._typed) if self._leaves(event)), None)
        for _ in range(at or 0):
            self._typed.popleft()

    @staticmethod
    def _leaves(event: events.Key | events.Paste) -> bool:
        return isinstance(event, events.Key) and event.key in LEAVING
