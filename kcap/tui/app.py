"""The application: a capture model, the main screen, the views, and the services that they share.

In: a capture model. Out: an application. Law: if a part of the screen fails, the list still responds to keys, and a
notification names the failure and its traceback file.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, ClassVar, Final
from weakref import WeakSet

from rich.text import Text
from textual import events
from textual._context import active_message_pump
from textual.actions import ActionParseResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import Monochrome
from textual.keys import format_key
from textual.message import Message
from textual.notifications import Notification, Notify, SeverityLevel
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from kcap.errors import KcapError, UsageError
from kcap.output.grid import clean
from kcap.runtime import taken_signals, trim_heap
from kcap.tui.browser import Browser
from kcap.tui.capture_model import CaptureModel
from kcap.tui.color_rules import rules_of
from kcap.tui.config import read_config, write_config
from kcap.tui.contrast import PALETTES, ContrastFilter, Greys
from kcap.tui.faults import one_line, origin, place, screen_of, write_fault
from kcap.tui.history import History
from kcap.tui.key_queue import KeyQueue
from kcap.tui.list_model import ListModel
from kcap.tui.menu import Prompt
from kcap.tui.status import Pulse
from kcap.tui.views import VIEWS, load
from kcap.tui.views.home import ViewPlace

SAMPLE_BATCHES: Final = 4
SAMPLE_VALUES: Final = 200
FAILURES: Final = 100
WARM_SECONDS: Final = 1.0
"""Time after the start at which modules are loaded that the first screen does not need."""
RELEASE_SECONDS: Final = 0.5
"""Interval between two releases of mapped rows, and the time without a new page before a release."""
HELD_SECONDS: Final = 5.0
"""Maximum time for which a release is delayed by new pages."""
UNUSED_SECONDS: Final = 1.0
"""Time without a key after which closed screens are freed: this takes as long as some keys, and no user waits for it then."""
TOAST_SECONDS: Final = 0.1
"""Minimum time for which a notification is shown."""
KEY_NAMES: Final = {"pgup": "PgUp", "pgdn": "PgDn"}
SWITCH_SECONDS: Final = 0.0005
"""Time for which a computing thread holds the interpreter's lock before the painting one gets it; Python's default is ten times
as long."""


def collect() -> None:
    """Frees closed screens: their parts refer to each other, and the collector seldom examines old objects."""
    gc.collect()
    trim_heap()


class ShownNotification(Notification):
    """A notification that has time left whenever its toast is made. Textual sets the toast's timer to the remaining time, and a
    timer with a negative time never waits (`Timer._run`): with many toasts on a busy machine the app hung."""

    @property
    def time_left(self) -> float:
        return max(super().time_left, TOAST_SECONDS)

    @property
    def has_expired(self) -> bool:
        return super().time_left <= 0


class KcapApp(KeyQueue):
    TITLE = "kcap"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "browser.tcss"
    """Style sheet of the main screen. If it belonged to that screen, all styles would be parsed again when the
    screen is shown."""
    BINDING_GROUP_TITLE = "The program"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "Help", key_display="F1"),
        Binding("colon,ctrl+p,ctrl+g", "command", "Command", show=False, key_display=":"),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True),
    ]

    def __init__(
        self,
        book: CaptureModel,
        *,
        only: str = "",
        show_secrets: bool = False,
        judges: bool = True,
    ) -> None:
        """The caller closes `book`. `judges`: problems of the capture are searched when it has been read, and shown above the
        list."""
        super().__init__()
        self.contrast = ContrastFilter()
        self._filters = [Greys() if isinstance(one, Monochrome) else one for one in self._filters]
        self.contrast.colorless = self.no_color
        self._filters.append(self.contrast)
        self.look, self.wrong = read_config()
        self.show_secrets, self.judges = show_secrets, judges
        self.book = book
        self.book.narrow(only)
        rules, wrong = rules_of(self.look.rules)
        self.wrong += wrong
        self.view = ListModel(self.book, rules=rules)
        self.look.give(self.view)
        self.view.follow = bool(self.book.order.source)
        self.other = ""
        """Path of the capture to compare with."""
        self.places: dict[str, ViewPlace] = {}
        self.history = History()
        self.pulse = Pulse()
        self.failures: deque[Exception] = deque(maxlen=FAILURES)
        """The last exceptions in a part of the screen."""
        self._left: WeakSet[Any] = WeakSet()
        """Screens that failed."""
        self._known: set[tuple[object, ...]] = set()
        """Faults that were reported, by their location."""
        self.browser = Browser(self.view)
        self._freeing: Timer | None = None
        self._released = 0.0
        self._loop_of: asyncio.AbstractEventLoop | None = None
        """The event loop, once the first screen is shown: Textual cannot exit before that."""
        self._ended_by: int | None = None
        """A signal that arrived before that."""
        self._interval = sys.getswitchinterval()

    def on_load(self) -> None:
        """Prepares what the first paint needs."""
        sys.setswitchinterval(SWITCH_SECONDS)
        if self.look.theme in self.available_themes:
            self.theme = self.look.theme
        self.wrong += self.browser.notes.open()

    def get_default_screen(self) -> Browser:
        """The list, which is never closed: no empty screen is made and painted below it."""
        return self.browser

    def on_mount(self) -> None:
        """Requests the terminal's colors, now that the driver is running; loads modules that will be needed."""
        if not self.is_headless:
            self.contrast.shown_by(self.console.color_system)
        self.call_after_refresh(lambda: self.browser.bar.force(self.book.filter_text))
        self.call_after_refresh(self._stands)
        self.set_timer(WARM_SECONDS, partial(self.run_worker, _warm, thread=True, group="warm", exit_on_error=False))
        self.set_interval(RELEASE_SECONDS, self._release)
        for line in self.wrong:
            self.notify(clean(line), title="settings", severity="warning", timeout=10, markup=False)

    def _stands(self) -> None:
        """The first screen is shown: handles a signal that arrived before."""
        self._loop_of = asyncio.get_running_loop()
        if self._ended_by is not None:
            self.exit(return_code=128 + self._ended_by)

    def _release(self) -> None:
        """Releases mapped rows, unless pages are being made one after another: each page after a release takes twice as long,
        since each column of each batch is mapped again."""
        now = time.monotonic()
        if now - self.view.paged >= RELEASE_SECONDS or now - self._released >= HELD_SECONDS:
            self._released = now
            self.book.release()

    def free_screens(self) -> None:
        """Frees closed screens, once no key has arrived for a while."""
        if self._freeing is None:
            self._freeing = self.set_interval(UNUSED_SECONDS, self._free_screens)

    def _free_screens(self) -> None:
        if self._freeing is not None and self.unused_seconds >= UNUSED_SECONDS:
            self._freeing.stop()
            self._freeing = None
            collect()

    def on_unmount(self) -> None:
        """Restores the interpreter's settings."""
        sys.setswitchinterval(self._interval)

    def get_driver_class(self) -> type[Driver]:
        """On a terminal, kcap's own driver."""
        found = super().get_driver_class()
        if found.__name__ != "LinuxDriver":
            return found
        from kcap.tui.terminal_driver import TerminalDriver  # it needs a Unix terminal

        return TerminalDriver

    @contextmanager
    def leaving_on_signals(self) -> Iterator[None]:
        """Makes signals exit the app as a key does: an exception from a handler would leave the reading process, or the thread
        that reads keys, running, and Python waits for both."""

        def leave(number: int, _frame: FrameType | None) -> None:
            self._ended_by = number
            if self._loop_of is None:
                return
            with suppress(RuntimeError):  # the loop is closed: the app is exiting anyway
                self._loop_of.call_soon_threadsafe(partial(self.exit, return_code=128 + number))

        before = {number: signal.signal(number, leave) for number in taken_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            # Textual's thread that reads keys ends with its driver, which fails earlier if the terminal is gone.
            finished = getattr(self._driver, "exit_event", None)
            if finished is not None:
                finished.set()

    # -- faults -------------------------------------------------------------------------------------------------------
    def _register_child(self, parent: DOMNode, child: Widget, before: int | None, after: int | None) -> None:
        """Registers a widget so that an exception in one of its messages does not end its message loop.

        A screen ignores a size that the terminal no longer has: it would post it to the screens below it, which respond with
        theirs, and two sizes would alternate forever.
        """
        dispatch = child._dispatch_message

        async def careful(message: Message) -> None:
            if isinstance(message, events.Resize) and isinstance(child, Screen) and message.size != self.size:
                return
            try:
                await dispatch(message)
            except Exception as error:
                if not self.stumbled(error, child):
                    raise

        setattr(child, "_dispatch_message", careful)  # noqa: B010 - a method of this one object
        super()._register_child(parent, child, before, after)

    async def _dispatch_message(self, message: Message) -> None:
        """Handles messages of the app itself: keys, callbacks, the end of screens."""
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self.stumbled(error):
                raise

    async def run_action(
        self, action: "str | ActionParseResult", default_namespace: DOMNode | None = None, namespaces: Any = None
    ) -> bool:
        """Runs the action of a key."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            if not self.stumbled(error, default_namespace):
                raise
            return True

    def _handle_exception(self, error: Exception) -> None:
        """Handles exceptions outside of messages and actions: timers, callbacks, layout, painting."""
        if not self.stumbled(error, active_message_pump.get(None)):
            super()._handle_exception(error)

    def stumbled(self, error: Exception, part: object = None) -> bool:
        """Reports a failed part of the screen: a view or window is closed, the list continues. Returns False before there is a
        list."""
        if not self.browser.begun:
            return False
        screen = screen_of(part) or origin(error)
        if screen is None and self.screen_stack and self.screen is not self.browser:
            screen = self.screen
        elsewhere = screen is not None and screen is not self.browser
        if elsewhere and screen not in self.screen_stack and isinstance(error, NoMatches):
            return True  # a callback of a screen that was closed meanwhile: its widgets are gone, and nothing is lost
        known = screen in self._left if elsewhere else place(error) in self._known
        self.failures.append(error)
        if known or self._exit:
            return True
        what = self._named(screen) if elsewhere else "the list"
        self._known.add(place(error))
        if elsewhere:
            self._left.add(screen)
            self.call_later(self.to_list)
        self.call_later(self._notify_fault, error, what, "failed and was closed" if elsewhere else "failed and continues")
        return True

    def _notify_fault(self, error: Exception, what: str, happened: str) -> None:
        """Notifies the user of a failure and its traceback file."""
        log = write_fault(error, what)
        words = f"{one_line(error)}\ntraceback: {log}" if log else one_line(error)
        self.notify(words, title=f"{what} {happened}", severity="error", markup=False, timeout=10)

    @staticmethod
    def _named(screen: object) -> str:
        """The title of a view or a window."""
        name = getattr(screen, "NAME", "")
        return (
            VIEWS[name][1]
            if name in VIEWS
            else str(getattr(screen, "heading", "") or getattr(screen, "BINDING_GROUP_TITLE", "") or "this window")
        )

    # -- services for views -------------------------------------------------------------------------------------------
    @property
    def selected(self) -> tuple[str, int] | None:
        """The exchange under the cursor."""
        return self.view.name_of(self.view.current)

    @property
    def pair(self) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
        """The exchanges to compare: two marked ones, or the marked and the selected one."""
        first, second = self.view.pair
        return self.view.name_of(first), self.view.name_of(second)

    def narrow(self, text: str, *, stay: bool = False) -> None:
        """Sets the display filter, or adds to it if the text begins with `&& `, and shows the list unless a view stays open."""
        old = self.book.filter_text
        if text.startswith("&& "):
            text = text[3:]
            if old and old != text:
                text = f"{_inside(old)} && {_inside(text)}"
        try:
            self.book.narrow(text)
        except UsageError as error:
            self.notify(clean(str(error).splitlines()[0]), severity="error", markup=False)
            return
        if not stay:
            self.to_list()
        self.history.add("filters", self.book.filter_text)
        self.browser.bar.force(self.book.filter_text)
        self.browser.rearrange()

    def mark(self, uid: str, number: int) -> str:
        """Marks an exchange, or removes its mark; returns what was done, in words."""
        found, view = self.book.find(uid, number), self.view
        if found < 0 or view.arranged is None or not view.arranged.rows.holds(found):
            return f"{uid}.{number} is no longer in the list"
        view.annotations.mark(view.arranged.rows, found)
        self.browser.notes.changed()
        return f"{uid}.{number} is {'marked' if found in view.marks else 'no longer marked'}"

    def show_exchange(self, uid: str, number: int) -> None:
        self.to_list()
        self.browser.show_exchange(uid, number)

    def seek_records(self) -> None:
        """Moves on to an exchange with records if the selected one has none."""
        place = self.view.place_with_records()
        if place is not None and place != self.view.cursor:
            self.browser.listed.go(place)

    def pop_screen(self) -> AwaitComplete:
        """Closes a view or a window; the list is never closed."""
        return super().pop_screen() if self.screen is not self.browser else AwaitComplete()

    def to_list(self) -> None:
        """Closes all views and windows."""
        while self.screen is not self.browser and len(self.screen_stack) > 1:
            self.pop_screen()

    def open_view(self, name: str) -> None:
        """Opens a view; a failure is notified."""
        try:
            screen = load(name)()
        except Exception as error:  # noqa: BLE001 - the module of a view is a part of it
            self._notify_fault(error, VIEWS[name][1], "cannot be opened")
        else:
            self.push_screen(screen)

    def compare_with(self, path: str) -> None:
        """Shows what changed from another capture to this one."""
        self.other = os.path.expanduser(path)
        self.to_list()
        self.open_view("differences")

    def save_packets(self, only: str) -> None:
        """Prompts for a file name and writes the packets of the exchanges that a filter selects."""
        self.browser.actions.save_packets(only, "kcap.pcapng")

    def save_text(self, name: str, text: str) -> None:
        """Prompts for a file name and writes the file."""

        def done(path: str | None) -> None:
            if path is not None:
                self.write(path, text.encode())

        self.push_screen(Prompt("Save as", name), done)

    def write(self, path: str, data: bytes) -> None:
        """Writes a file, and reports it."""
        from kcap.output.sink import new_file
        from kcap.tui.export import protected

        try:
            with protected(self.book.order), new_file(os.path.expanduser(path)) as file:
                file.write(data)
        except KcapError as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"{path} was written", timeout=4, markup=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(ShownNotification(message, title, severity, seconds, markup=markup)))

    # -- services for panes -------------------------------------------------------------------------------------------
    def values(self, column: str) -> Sequence[str]:
        """Values of a column in the capture, the most frequent first, for completion."""
        from collections import Counter

        rows = self.book.snapshot()
        found: Counter[str] = Counter()
        for batch in list(rows.batches)[:SAMPLE_BATCHES]:
            array: Any = batch.column(column)
            for entry in array.to_pylist()[:20_000]:
                found.update(
                    map(str, filter(None, entry)) if isinstance(entry, list) else () if entry is None else [str(entry)]
                )
        return [value for value, _ in found.most_common(SAMPLE_VALUES)]

    def connection(self, uid: str) -> dict[str, Any] | None:
        """The row of a connection, once there is one."""
        import pyarrow.compute as pc

        compute: Any = pc
        table: Any = self.book.table("connections")
        if table is None:
            return None
        found = table.filter(compute.equal(table.column("connection"), uid)).to_pylist()
        return found[0] if found else None

    def save_settings(self) -> None:
        self.look.take(self.view)
        self.look.theme = self.theme
        write_config(self.look)

    def watch_theme(self, theme: str) -> None:
        """Saves a new theme in the settings."""
        self.contrast.palettes = PALETTES[self.current_theme.dark]
        if self.is_running and theme != self.look.theme and self.screen_stack:
            self.save_settings()

    def action_command(self) -> None:
        if self.screen is self.browser or getattr(self.screen, "NAME", "") in VIEWS:
            self.browser.palette.open()

    def action_help(self) -> None:
        """Shows the keys that work here, and the columns of a view."""
        from kcap.tui.help import columns_of, help_of
        from kcap.tui.menu import TextWindow

        screen: Any = self.screen
        title, columns = "Keys", Text()
        if getattr(screen, "NAME", "") in VIEWS and (columns := columns_of(screen)):
            title = f"{VIEWS[screen.NAME][1]}: columns and keys"
        self.push_screen(TextWindow(title, columns + help_of(screen, self.focused)))

    def get_key_display(self, binding: Binding) -> str:
        """The name of a key as printed on it: `Ctrl+F`, `PgUp`."""
        if binding.key_display:
            return binding.key_display
        modifiers, key = binding.parse_key()
        name = format_key(key)
        name = KEY_NAMES.get(name) or (name.capitalize() if len(name) > 1 and name.isalnum() else name)
        return "+".join([*map(str.capitalize, modifiers), name.upper() if "ctrl" in modifiers else name])


def _inside(text: str) -> str:
    """A filter for use within another one: in parentheses if it has alternatives."""
    return f"({text})" if "||" in text or " or " in text or "^^" in text else text


def _warm() -> None:
    """Preloads the modules that decode large messages."""
    from kcap.decode.projection import load_compiled

    load_compiled()
