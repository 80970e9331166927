"""The footer: the keys of the focused pane, the most important first.

In: the bindings that work with the current focus. Out: one line with their keys and descriptions. Law: an entry is shown
completely or not at all; a click has the effect of the key.
"""

from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

DIM: Final = Style(dim=True)
ALWAYS: Final = frozenset({"help", "app.quit", "app.pop_screen"})
"""Actions whose keys are shown first if there is no room for all: the way out, and the way to all other keys."""


class KeyEntry(NamedTuple):
    """A key and its description."""

    key: str
    """Textual's name of the key."""
    shown: str
    words: str
    action: str
    enabled: bool


class Keys(Widget):
    """The footer line. Textual's footer has a widget per key, which take a quarter of the time to the first screen."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--word", "keys--hover"}
    DEFAULT_CSS = """
    Keys {
        dock: bottom; height: 1; color: $footer-foreground; background: $footer-background;
        & > .keys--key { color: $footer-key-foreground; background: $footer-key-background; text-style: bold; }
        & > .keys--word { color: $footer-description-foreground; background: $footer-description-background; }
        & > .keys--hover { color: $footer-key-foreground; background: $block-hover-background; }
    }
    """

    entries: tuple[KeyEntry, ...] = ()
    pointed: KeyEntry | None = None
    """The entry under the mouse."""

    def on_mount(self) -> None:
        """Subscribes to the bindings of the screen, which may be known already."""
        self.screen.bindings_updated_signal.subscribe(self, self.bindings_changed)
        self.call_after_refresh(self.look)

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Updates the line after a change of the bindings."""
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self.look)

    def look(self) -> None:
        """Takes the keys that work; the first one of several for an action."""
        if not self.is_attached:
            return  # its screen was closed meanwhile
        found: dict[str, KeyEntry] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and binding.action not in found:
                shown = self.app.get_key_display(binding)
                found[binding.action] = KeyEntry(binding.key, shown, binding.description, binding.action, enabled)
        if (entries := tuple(found.values())) != self.entries:
            self.entries = entries
            self.refresh()

    def parts(self) -> list[tuple[KeyEntry, str, str]]:
        """The entries that fit, with the texts of their keys and descriptions."""
        left, shown = self.size.width, set()
        parts = [(entry, f" {entry.shown} ", f"{entry.words} ") for entry in self.entries]
        for at, (_, key, words) in sorted(enumerate(parts), key=lambda part: part[1][0].action not in ALWAYS):
            if (room := cell_len(key) + cell_len(words)) <= left:
                left -= room
                shown.add(at)
        return [part for at, part in enumerate(parts) if at in shown]

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key, word, hover = (self.get_component_rich_style(f"keys--{name}") for name in ("key", "word", "hover"))
        segments: list[Segment] = []
        for entry, shown, words in self.parts():
            mood = (hover if entry == self.pointed else Style()) + (Style() if entry.enabled else DIM)
            segments += [Segment(shown, base + key + mood), Segment(words, base + word + mood)]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def entry_at(self, x: int) -> KeyEntry | None:
        """The entry at a column of the line."""
        for entry, shown, words in self.parts():
            x -= cell_len(shown) + cell_len(words)
            if x < 0:
                return entry
        return None

    def point(self, entry: KeyEntry | None) -> None:
        """Highlights another entry under the mouse."""
        if entry != self.pointed:
            self.pointed = entry
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlights the entry under the mouse."""
        self.point(self.entry_at(event.x))

    def on_leave(self, _event: events.Leave) -> None:
        """Removes the highlight."""
        self.point(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Has the effect of the key."""
        entry = self.entry_at(event.x)
        if entry is None:
            return
        if entry.enabled:
            self.app.simulate_key(entry.key)
        else:
            self.app.bell()
