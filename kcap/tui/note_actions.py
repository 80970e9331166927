"""Actions for the user's notes: marks, comments, ignored exchanges, time reference, saved filters, profiles, coloring rules.

In: the main screen. Out: notes of the capture, settings of the profile, both written at once. Law: notes stay with their
exchange; for a pipe nothing is written.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kcap.errors import UsageError, said
from kcap.output.grid import call, clean
from kcap.reports.text import count
from kcap.tui.annotations import name_of
from kcap.tui.color_rules import rules_of
from kcap.tui.config import PROFILE, profile_names, read_config, write_config
from kcap.tui.finder import Finder, FinderEntry, Typed
from kcap.tui.list_columns import DEFAULTS
from kcap.tui.menu import Choice, Menu, Prompt
from kcap.tui.notes import CaptureNotes, as_json, identity, notes_path, parsed, read_notes, write_notes

if TYPE_CHECKING:
    from kcap.tui.main_screen import MainScreen

NO_NOTES: Final = "nothing is noted; m marks, ; comments, i ignores, r makes an exchange the time reference"
NO_PROFILE: Final = ""


class NoteActions:
    """Notes of the capture on the screen."""

    def __init__(self, screen: "MainScreen") -> None:
        self.screen = screen
        self.identity: str | None = None
        """The identity by which the capture is recognized; None if it is not a file."""

    @property
    def notes(self) -> CaptureNotes:
        return self.screen.view.annotations.notes

    # -- kept between sessions ----------------------------------------------------------------------------------------
    def open(self) -> list[str]:
        """Reads the notes of the capture, and the settings of its profile; returns the errors in them."""
        self.identity = identity(self.screen.view.book.paths)
        self.screen.view.book.ignore(())
        if self.identity is None:
            return []
        notes, wrong = read_notes(notes_path(self.identity))
        self.screen.view.annotations.load(notes)
        if notes.profile in profile_names():
            wrong += self._take_profile(notes.profile)
        return wrong

    def look(self) -> None:
        """Finds the exchanges of notes among new rows."""
        view = self.screen.view
        if view.annotations.look(view.book.snapshot()):
            view.book.ignore(view.annotations.ignored)
            self.screen.listed.renew()

    def save(self) -> None:
        book, notes = self.screen.view.book, self.notes
        if book.status.following:  # it has another size now
            self.identity = identity(book.paths)
        if self.identity is None:
            return
        notes.captures = [file.name for file in book.status.files]
        try:
            write_notes(notes_path(self.identity), notes)
        except OSError as error:
            self._say(f"the notes were not written: {said(error)}", "error")

    def _say(self, text: str, severity: Any = "information") -> None:
        self.screen.notify(clean(text), timeout=4, severity=severity, markup=False)

    def changed(self) -> None:
        self.save()
        self.screen.listed.renew()
        self.screen.show_status()

    # -- notes of the selected exchange -------------------------------------------------------------------------------
    def _here(self) -> int | None:
        number = self.screen.view.current
        if number is None:
            self._say("no exchange is selected")
        return number

    def run(self, what: str) -> None:
        """Runs the action of a key or of the menu of options, by its name."""
        {
            "comment": self.comment, "ignore": self.ignore, "reference": self.refer, "list": self.listed,
            "options": self.options, "filters": self.save_filter, "everywhere": lambda: self.save_filter(everywhere=True),
            "profiles": self.profiles, "rules": self.rules, "columns": self.screen.action_columns, "save": self.export,
        }[what]()  # fmt: skip

    def comment(self) -> None:
        """Prompts for the comment of the exchange; an empty one removes it."""
        if (number := self._here()) is None:
            return
        noted, rows = self.screen.view.annotations, self.screen.view.book.snapshot()
        old = noted.comments.get(number, "")

        def done(text: str | None) -> None:
            if text is None:
                return
            noted.comment(rows, number, text)
            self.changed()
            self.screen.reopen()

        self.screen.app.push_screen(Prompt("Comment on this exchange", old, "an empty line removes it", empties=True), done)

    def ignore(self) -> None:
        """Ignores the exchange, or includes it again."""
        if (number := self._here()) is None:
            return
        view = self.screen.view
        view.annotations.ignore(view.book.snapshot(), number)
        view.book.ignore(view.annotations.ignored)
        self.changed()
        self.screen.listed.action_move(1)

    def refer(self) -> None:
        """Makes the exchange the time reference, or removes it."""
        if (number := self._here()) is None:
            return
        view = self.screen.view
        view.annotations.refer(view.book.snapshot(), number)
        if view.annotations.reference is not None:
            view.form = "relative"
        self.changed()

    def listed(self) -> None:
        """Lists the exchanges with a note; Enter goes to one."""
        view, rows = self.screen.view, self.screen.view.book.snapshot()
        entries = []
        for number in view.annotations.noted:
            row = rows.row(number)
            name = f"{row['connection']}.{row['exchange']}"
            what = f"{row['time']:%H:%M:%S}  {call(row['api'], row['api_version'])}  {view.annotations.words(number)}"
            entries.append(FinderEntry(name, clean(what), clean(row["client_id"] or "")))
        if not entries:
            self._say(NO_NOTES)
            return

        def done(chosen: str | Typed | None) -> None:
            if isinstance(chosen, str):
                uid, _, number = chosen.rpartition(".")
                self.screen.home.show_exchange(uid, int(number))

        self.screen.app.push_screen(Finder("Noted exchanges", entries), done)

    # -- saved filters ------------------------------------------------------------------------------------------------
    def filters(self) -> dict[str, str]:
        """Saved filters by name: those of the capture, then those of the profile."""
        profile = {one["name"]: one["filter"] for one in self.screen.home.look.filters}
        return self.notes.filters | {name: text for name, text in profile.items() if name not in self.notes.filters}

    def save_filter(self, *, everywhere: bool = False) -> None:
        """Prompts for a name and saves the display filter: for this capture, or for all captures of the profile."""
        text = self.screen.view.book.filter_text
        if not text:
            self._say("no display filter is set")
            return

        def done(name: str | None) -> None:
            if name is None:
                return
            if everywhere:
                look = self.screen.home.look
                look.filters = [*(one for one in look.filters if one["name"] != name), {"name": name, "filter": text}]
                self.screen.home.save_settings()
            else:
                self.notes.filters[name] = text
                self.save()
            self._say(f"saved; f shows it: {name}")

        where = "for all captures" if everywhere else "for this capture"
        self.screen.app.push_screen(Prompt(f"Name of this filter, {where}", "", text), done)

    def forget_filter(self, name: str) -> None:
        look = self.screen.home.look
        if self.notes.filters.pop(name, None) is None:
            look.filters = [one for one in look.filters if one["name"] != name]
            self.screen.home.save_settings()
        self.save()

    @staticmethod
    def names() -> list[str]:
        """Profiles, the default first."""
        return [NO_PROFILE, *profile_names()]

    # -- profiles and rules -------------------------------------------------------------------------------------------
    def options(self) -> None:
        text = self.screen.view.book.filter_text
        name = self.screen.home.look.profile or "default"
        choices = [
            Choice("profiles", "p", "Profiles", f"columns, rules, filters; now {name}"),
            Choice("rules", "r", "Coloring rules", f"{len(self.screen.home.look.rules)} of your own"),
            Choice("columns", "c", "Columns of the list"),
            Choice(
                "filters", "f", "Save the display filter for this capture", text[:30], bool(text), "no display filter is set"
            ),
            Choice("everywhere", "F", "Save the display filter for all captures", "", bool(text), "no display filter is set"),
            Choice("list", "m", "Noted exchanges", f"{len(self.screen.view.annotations.noted):,}"),
            Choice("save", "e", "Save the notes as a file", "JSON", not self.notes.empty, "nothing is noted"),
        ]
        self.screen.app.push_screen(Menu("Options", choices), lambda chosen: self.run(chosen) if chosen is not None else None)

    def profiles(self) -> None:
        """Prompts for a profile; a new name makes one from the current settings."""
        now = self.screen.home.look.profile
        entries = [FinderEntry(f"={name}", name or "default", "in use" if name == now else "") for name in self.names()]

        def done(chosen: str | Typed | None) -> None:
            if isinstance(chosen, Typed):
                self.new_profile(chosen.text)
            elif chosen is not None:
                self.switch(chosen[1:])

        note = "a new name saves the current columns, rules and filters"
        known = [entry.title for entry in entries]
        accepts = lambda text: bool(PROFILE.fullmatch(text)) and text not in known  # noqa: E731
        self.screen.app.push_screen(Finder("Profiles", entries, note, accepts=accepts), done)

    def new_profile(self, name: str) -> None:
        """Makes a profile from the current settings, and uses it."""
        home = self.screen.home
        home.save_settings()
        home.look.profile = self.notes.profile = name
        home.look.readable = True
        home.save_settings()
        self.save()
        self._say(f"profile {name} now has its own columns, rules and filters")

    def switch(self, name: str) -> None:
        """Uses another profile, here and when this capture is opened again."""
        home = self.screen.home
        home.save_settings()
        for line in self._take_profile(name):
            self._say(line, "warning")
        self.notes.profile = name
        self.screen.again()
        self.changed()
        self._say(f"profile {name or 'default'}")

    def _take_profile(self, name: str) -> list[str]:
        home, view = self.screen.home, self.screen.view
        home.look, wrong = read_config(name)
        view.names, view.chosen = list(DEFAULTS), False
        home.look.give(view)
        view.rules, more = rules_of(home.look.rules)
        if home.look.theme in self.screen.app.available_themes:
            self.screen.app.theme = home.look.theme
        return wrong + more

    def rules(self) -> None:
        from kcap.tui.rule_editor import RuleEditor

        home = self.screen.home

        def done(rules: list[dict[str, Any]] | None) -> None:
            if rules is not None:
                home.look.rules = rules
                self.screen.view.rules = rules_of(rules)[0]
                self.screen.listed.renew()
                write_config(home.look)

        suggested = self.screen.target() or ""
        self.screen.app.push_screen(RuleEditor(home.look.rules, "" if suggested.startswith("time ") else suggested), done)

    # -- files --------------------------------------------------------------------------------------------------------
    def export(self) -> None:
        """Saves the notes as a file, which the command `notes FILE` reads."""
        text = as_json(self.notes).decode()
        self.screen.home.save_text("kcap-notes.json", text)

    def load(self, path: str) -> None:
        """Replaces the notes by those of a file."""
        try:
            with open(os.path.expanduser(path), "rb") as file:
                notes = parsed(file.read())
        except (OSError, UsageError) as error:
            self._say(f"{path}: {said(error)}", "error")
            return
        notes.profile = self.notes.profile
        view = self.screen.view
        view.annotations.load(notes)
        view.annotations.look(view.book.snapshot())
        view.book.ignore(view.annotations.ignored)
        self.changed()
        self._say(f"{count(len(view.annotations.noted), 'noted exchange')}, {count(len(notes.filters), 'filter')}")

    def lines(self) -> Iterator[str]:
        """Comments of exchanges, one per line, for the comment of a saved capture."""
        noted, rows = self.screen.view.annotations, self.screen.view.book.snapshot()
        for number in sorted(noted.comments):
            yield f"{name_of(rows, number)}: {noted.comments[number]}"
