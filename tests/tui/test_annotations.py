"""Notes by row number are the notes by name."""

from kcap.tui.annotations import Annotations, name_of
from kcap.tui.capture_model import CaptureModel
from kcap.tui.notes import CaptureNotes
from kcap.tui.row_index import RowIndex


def test_rows_and_names_say_the_same(book: CaptureModel) -> None:
    rows, noted = book.snapshot(), Annotations()
    noted.mark(rows, 5)
    noted.mark(rows, 7)
    noted.mark(rows, 5)
    noted.ignore(rows, 7)
    noted.comment(rows, 9, "odd")
    noted.refer(rows, 3)
    assert (noted.marks, noted.ignored, noted.comments, noted.reference) == ({7}, {7}, {9: "odd"}, 3)
    assert noted.notes.marks == noted.notes.ignored == [name_of(rows, 7)]
    assert noted.noted == [3, 7, 9]
    assert [noted.sign(number) for number in (3, 7, 9, 5)] == ["◷", "×", "¶", ""]
    assert noted.words(7) == "marked, ignored"
    again = Annotations()
    again.load(noted.notes)
    assert again.look(rows)
    assert (again.marks, again.ignored, again.comments, again.reference) == ({7}, {7}, {9: "odd"}, 3)
    noted.comment(rows, 9, "")
    noted.refer(rows, 3)
    assert not noted.notes.comments
    assert not noted.notes.reference


def test_notes_wait_for_their_rows(book: CaptureModel) -> None:
    rows = book.snapshot()
    late = name_of(rows, len(rows) - 1)
    noted = Annotations()
    noted.load(CaptureNotes(marks=[late, "Cnone.1", "no name"], comments={name_of(rows, 0): "first"}))
    part = RowIndex([batch.slice(0, 10) for batch in rows.batches[:1]], rows.schema)
    assert noted.look(part)
    assert noted.comments == {0: "first"}
    assert not noted.marks
    noted.look(rows)
    assert noted.marks == {len(rows) - 1}
    assert "Cnone.1" in noted.notes.marks, "a note without its exchange is not lost"
