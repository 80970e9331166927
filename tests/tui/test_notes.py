"""Notes of a capture: recognized by its bytes, kept whole, for this user alone."""

from pathlib import Path

import pytest

from kcap.errors import UsageError
from kcap.tui.notes import CaptureNotes, as_json, identity, notes_path, parsed, read_notes, write_notes

NOTES = CaptureNotes(
    ["a.pcap"], ["C1.2"], ["C1.3"], {"C1.2": "slow: \"why\"\n日本 \udcff"}, "C1.1", {"slow ones": "latency > 1s"}, "latency"
)  # fmt: skip


def test_notes_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "captures" / "x.json"
    notes = CaptureNotes(comments={"C1.1": "a"}, filters={"n": "api == Fetch"}, marks=["C1.1"])
    write_notes(path, notes)
    assert read_notes(path) == (notes, [])
    assert path.stat().st_mode & 0o077 == 0, "for this user alone"
    assert parsed(as_json(NOTES)).filters == NOTES.filters


def test_a_capture_without_notes_has_no_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_notes(path, CaptureNotes(captures=["a.pcap"]))
    assert not path.exists()
    write_notes(path, NOTES)
    write_notes(path, CaptureNotes())
    assert not path.exists()


def test_a_file_that_is_no_notes_is_reported_and_left(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("{", "[]", "{}", '{"kcap_notes": 2}'):
        path.write_text(text)
        notes, wrong = read_notes(path)
        assert str(path) in wrong[0]
        notes.marks.append("C1.1")
        write_notes(path, notes)
        assert path.read_text() == text
    with pytest.raises(UsageError):
        parsed(b"\xff")
    assert parsed(b'{"kcap_notes": 1, "marks": [1, "C1.1"], "comments": {"C1.1": 3}, "filters": 5}').marks == ["C1.1"]


def test_a_capture_is_recognized_by_what_is_in_it(tmp_path: Path) -> None:
    one, other = tmp_path / "a.pcap", tmp_path / "b.pcap"
    one.write_bytes(b"x" * 300_000)
    other.write_bytes(b"x" * 300_000)
    assert identity([str(one)]) == identity([str(other)]), "another name"
    other.write_bytes(b"x" * 299_999 + b"y")
    assert identity([str(one)]) != identity([str(other)])
    other.write_bytes(b"x" * 300_001)
    assert identity([str(one)]) != identity([str(other)])
    assert identity(["-"]) is None
    assert identity([str(tmp_path / "none")]) is None
    assert notes_path(str(identity([str(one)]))).suffix == ".json"
