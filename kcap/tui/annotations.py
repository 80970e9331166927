"""Marks, comments, ignored exchanges and the time reference by row number, stored by the names of exchanges.

In: notes of a capture, rows as they are read. Out: row numbers. Law: a note whose exchange has not been read yet waits for it
and is never lost; row numbers and names agree.
"""

from dataclasses import dataclass, field

from kcap.tui.notes import CaptureNotes
from kcap.tui.row_index import RowIndex


def name_of(rows: RowIndex, number: int) -> str:
    """UID.N of a row."""
    uid, exchange = rows.key(number)
    return f"{uid}.{exchange}"


@dataclass(slots=True)
class Annotations:
    """The notes of the rows that were read."""

    notes: CaptureNotes = field(default_factory=CaptureNotes)
    marks: set[int] = field(default_factory=set)
    ignored: set[int] = field(default_factory=set)
    comments: dict[int, str] = field(default_factory=dict)
    reference: int | None = None
    """Row of the time reference, whose relative time is 0."""
    _names: dict[int, str] = field(default_factory=dict)
    """Row -> name, for rows with a note."""
    _looked: int = 0
    """Number of rows that were searched for names."""

    def load(self, notes: CaptureNotes) -> None:
        """Replaces the notes; `look` finds their rows."""
        self.notes = notes
        self.marks, self.ignored, self.comments, self.reference, self._names, self._looked = set(), set(), {}, None, {}, 0

    def look(self, rows: RowIndex) -> bool:
        """Finds the exchanges of notes among new rows; returns whether there were any."""
        notes, known = self.notes, set(self._names.values())
        wanted = {*notes.marks, *notes.ignored, *notes.comments, *filter(None, [notes.reference])} - known
        first, self._looked = self._looked, len(rows)
        if not wanted or first >= len(rows):
            return False
        pairs = [name.rpartition(".") for name in wanted]
        numbers = rows.named([(uid, int(number)) for uid, _, number in pairs if number.isdecimal()], first).tolist()
        for number in numbers:
            name = self._names[number] = name_of(rows, number)
            if name in notes.marks:
                self.marks.add(number)
            if name in notes.ignored:
                self.ignored.add(number)
            if name in notes.comments:
                self.comments[number] = notes.comments[name]
            if name == notes.reference:
                self.reference = number
        return bool(numbers)

    def forget(self, first: int) -> None:
        """Drops the notes of rows below `first`, which are no longer held."""
        for numbers in (self.marks, self.ignored):
            numbers -= {number for number in numbers if number < first}
        for notes in (self.comments, self._names):
            for number in [number for number in notes if number < first]:
                del notes[number]
        if self.reference is not None and self.reference < first:
            self.reference = None

    def mark(self, rows: RowIndex, number: int) -> None:
        """Marks an exchange, or removes its mark."""
        self._flip(self.marks, self.notes.marks, rows, number)

    def ignore(self, rows: RowIndex, number: int) -> None:
        """Ignores an exchange in views and files, or includes it again."""
        self._flip(self.ignored, self.notes.ignored, rows, number)

    def _flip(self, numbers: set[int], names: list[str], rows: RowIndex, number: int) -> None:
        name = self._named(rows, number)
        numbers ^= {number}
        if number in numbers:
            names.append(name)
        elif name in names:
            names.remove(name)

    def comment(self, rows: RowIndex, number: int, text: str) -> None:
        """Sets the comment of an exchange; an empty text removes it."""
        name = self._named(rows, number)
        self.comments.pop(number, None)
        self.notes.comments.pop(name, None)
        if text:
            self.comments[number] = self.notes.comments[name] = text

    def refer(self, rows: RowIndex, number: int) -> None:
        """Makes this exchange the time reference, or the first exchange again."""
        self.reference = None if self.reference == number else number
        self.notes.reference = self._named(rows, number) if self.reference is not None else ""

    def _named(self, rows: RowIndex, number: int) -> str:
        if number not in self._names:
            self._names[number] = name_of(rows, number)
        return self._names[number]

    @property
    def noted(self) -> list[int]:
        """Rows with a note, in the order of the table."""
        some = {*self.marks, *self.ignored, *self.comments, *(() if self.reference is None else (self.reference,))}
        return sorted(some)

    def words(self, number: int) -> str:
        """The notes of a row, in words."""
        kinds = (
            ("marked", number in self.marks), ("ignored", number in self.ignored), ("time reference", number == self.reference),
        )  # fmt: skip
        said = ", ".join(word for word, holds in kinds if holds)
        comment = self.comments.get(number, "")
        return f"{said}: {comment}" if said and comment else said or comment

    def sign(self, number: int) -> str:
        """The sign of a row's notes at its left."""
        if number in self.ignored:
            return "×"
        if number in self.marks:
            return "●"
        return "¶" if number in self.comments else "◷" if number == self.reference else ""
