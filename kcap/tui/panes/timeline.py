"""A strip of latency over time above the list, to select a time range.

In: a `Timeline`. Out: messages: a time range to filter by, a step to go to. Law: it has one line, and a second one with the
values while it has the focus.
"""

import time
from typing import ClassVar
from weakref import ReferenceType, ref

import numpy as np
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from kcap.runtime import trim_heap
from kcap.tui.beside import beside
from kcap.tui.faults import stumbled
from kcap.tui.list_model import Arranged, ListModel
from kcap.tui.timeline import Timeline, timeline
from kcap.tui.views.paint import PANE_CSS, Toned

LOOK_SECONDS = 0.5
PATIENCE = 20
"""Making the picture takes at most 1/PATIENCE of the time."""
LABEL = 9
"""Characters before the line."""


class TimeStrip(Toned, Widget, can_focus=True):
    DEFAULT_CSS = f"TimeStrip {{ height: 1; {PANE_CSS} }}\nTimeStrip:focus {{ height: 2; background: $boost; }}"
    BINDING_GROUP_TITLE = "The latency timeline"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Earlier", show=False),
        Binding("right,l", "move(1)", "Later", show=False),
        Binding("home,g", "edge(0)", "Begin", show=False),
        Binding("end,G", "edge(-1)", "End", show=False),
        Binding("space", "begin", "Start selection"),
        Binding("enter", "choose", "Filter by this time"),
    ]

    class Chosen(Message):
        """Posted to filter by a time range."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Pointed(Message):
        """Posted to go to a time, in microseconds since the epoch."""

        def __init__(self, time_us: int) -> None:
            super().__init__()
            self.time_us = time_us

    def __init__(self, view: ListModel, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.view = view
        self._of: tuple[int, ReferenceType[Arranged] | None] = (0, None)
        """Steps and rows of the picture; the rows may be freed before it."""
        self._began = self._cost = 0.0
        self.made: Timeline | None = None
        self.shown: tuple[int, int] | None = None
        self._window = -1, -1, 0, 0
        """The visible rows, and the first and last of their times."""
        self.at, self.begun = 0, -1

    @property
    def steps(self) -> int:
        """Number of steps that fit."""
        return max(1, self.size.width - LABEL - 2)

    @property
    def due(self) -> bool:
        """Whether the picture has other rows or another width than the screen."""
        made = self.view.arranged
        return made is not None and bool(self.region.area) and (self.steps, ref(made)) != self._of

    def look(self) -> None:
        """Computes a new picture when it is due, in at most 1/PATIENCE of the time."""
        made = self.view.arranged
        if made is None or not self.due or time.monotonic() - self._began < self._cost * PATIENCE:
            return
        self._of, self._began = (self.steps, ref(made)), time.monotonic()
        steps, requested = self.steps, [(made.rows, made.order if self.view.book.only is not None else None)]

        def work() -> tuple[Timeline | None, float]:
            began = time.thread_time()  # the time of other threads is no cost of this picture
            rows, order = requested.pop()
            made = timeline(rows, order, steps)
            trim_heap()
            return made, time.thread_time() - began

        beside(self, work, self._computed, group="timeline", exclusive=True)

    def _computed(self, found: tuple[Timeline | None, float]) -> None:
        picture, self._cost = found
        self.show(picture)

    def on_mount(self) -> None:
        """Starts looking for changes periodically."""
        self.set_interval(LOOK_SECONDS, self.look)

    def on_resize(self, _event: events.Resize) -> None:
        """Lays out and paints for the new size."""
        self.look()

    def show(self, made: Timeline | None) -> None:
        self.made = made
        self.at = min(self.at, len(made.counts) - 1) if made is not None else 0
        self.refresh()

    def window(self, rows: tuple[int, int] | None) -> None:
        """Sets the visible rows, from one to another."""
        shown, made = None, self.made
        if rows is not None and made is not None and self.view.arranged is not None:
            if rows != self._window[:2]:  # called several times a second
                first, last = sorted(self.view.arranged.rows.values("time", np.array(rows, np.int64)).tolist())
                self._window = (*rows, first, last)
            shown = (made.place(self._window[2]), made.place(self._window[3]))
        if shown != self.shown:
            self.shown = shown
            self.refresh()

    def render(self) -> Text:
        """The line; a failure affects only this line."""
        try:
            return self.line()
        except Exception as error:  # noqa: BLE001 - the list below is worth more than a picture of it
            stumbled(self, error)
            return Text(" latency cannot be shown")

    def line(self) -> Text:
        """The line, and the step in words."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(" latency ", self.tone_style("dim"))
        if self.made is None:
            return text
        chosen = (self.at if self.begun < 0 else self.begun, self.at) if self.has_focus else None
        for sign, tone in self.made.line(self.shown, chosen):
            text.append(sign, self.tone_style(tone))
        if self.has_focus:
            text.append(f"\n{'':>{LABEL}}{self.made.describe(self.at)}   space: from here   ⏎ filter by this time", "")
        return text

    def on_blur(self, _event: events.Blur) -> None:
        """Discards an unused selection."""
        self.begun = -1

    def action_move(self, by: int) -> None:
        self.action_edge(max(0, self.at + by))

    def action_edge(self, at: int) -> None:
        """Moves to a step; negative numbers count from the end."""
        if self.made is not None:
            count = len(self.made.counts)
            self.at = min(at, count - 1) if at >= 0 else count - 1
            self.refresh()
            self.post_message(self.Pointed(self.made.first_us + self.at * self.made.step_us))

    def action_begin(self) -> None:
        """Begins a selection."""
        self.begun = self.at
        self.refresh()

    def action_choose(self) -> None:
        """Filters by the selection."""
        if self.made is not None:
            self.post_message(self.Chosen(self.made.within(self.at if self.begun < 0 else self.begun, self.at)))
            self.begun = -1

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begins a selection."""
        if self.made is not None and event.x >= LABEL:
            self.action_edge(event.x - LABEL)
            self.begun = self.at
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Extends the selection."""
        if self.begun >= 0 and self.app.mouse_captured is self and self.made is not None:
            self.at = max(0, min(len(self.made.counts) - 1, event.x - LABEL))
            self.refresh()

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """Applies the selection if it is more than one step."""
        if self.app.mouse_captured is self:
            self.release_mouse()
            if self.begun != self.at:
                self.action_choose()
            self.begun = -1
