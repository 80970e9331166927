"""The user's notes about one capture: marks, comments, ignored exchanges, a time reference, filters, the profile.

In: files of a capture. Out: a JSON file beside the configuration, which only this user can read. Law: a capture is recognized
by its content (sizes and both ends of its files), not by its name; a file of notes that cannot be read is reported and left
unchanged; a capture without notes has no file.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from kcap.capture.paths import expand
from kcap.errors import UsageError, said
from kcap.folders import config_folder, write_whole
from kcap.inputs import STANDARD as STANDARD_INPUT
from kcap.limits import FILE_END_BYTES

Entry = TypeVar("Entry")
VERSION: Final = 1
LONGEST: Final = 10_000
"""Maximum number of characters of a comment or a filter."""


@dataclass(slots=True)
class CaptureNotes:
    """The notes; exchanges are identified by their names, UID.N."""

    captures: list[str] = field(default_factory=list)
    """Names of the files, for a reader of the notes."""
    marks: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    reference: str = ""
    """The exchange from which relative times count; empty for the first one."""
    filters: dict[str, str] = field(default_factory=dict)
    """Name -> display filter."""
    profile: str = ""
    """Name of the profile; empty for the settings of `tui.toml`."""
    readable: bool = True
    """Whether the file could be read; otherwise it is not overwritten."""

    @property
    def empty(self) -> bool:
        """Whether there are no notes."""
        return not (self.marks or self.ignored or self.comments or self.reference or self.filters or self.profile)


def identity(paths: Sequence[str]) -> str | None:
    """The identity of a capture: SHA-256 of sizes and ends of its files. None for a pipe or an unreadable file."""
    found = hashlib.sha256()
    try:
        for path in expand(list(paths)):
            if path == STANDARD_INPUT or not os.path.isfile(path):
                return None
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                found.update(size.to_bytes(8))
                found.update(file.read(FILE_END_BYTES))
                file.seek(max(0, size - FILE_END_BYTES))
                found.update(file.read(FILE_END_BYTES))
    except OSError:
        return None
    return found.hexdigest()


def notes_path(name: str) -> Path:
    """The file for a capture with an identity."""
    return config_folder() / "captures" / f"{name[:32]}.json"


def read_notes(path: Path) -> tuple[CaptureNotes, list[str]]:
    """Notes from a file, and the errors in it; empty notes if there is no file."""
    try:
        return parsed(path.read_bytes()), []
    except FileNotFoundError:
        return CaptureNotes(), []
    except (OSError, UsageError) as error:
        return CaptureNotes(readable=False), [f"{path}: {said(error)}"]


def entries(given: Mapping[str, Any], name: str, kind: type[Entry]) -> list[Entry]:
    """Entries with a type of a list in a file; none if there is no list of that name."""
    some = given.get(name)
    return [one for one in some if isinstance(one, kind)] if isinstance(some, list) else []


def parsed(data: bytes) -> CaptureNotes:
    """Notes from their JSON; entries of another type are omitted. Raises UsageError for anything but a JSON object of notes."""
    try:
        given = json.loads(data)
    except ValueError as error:
        raise UsageError(f"this is no file of notes: {error}") from error
    if not isinstance(given, dict) or given.get("kcap_notes") != VERSION:
        raise UsageError("this is no file of notes of this version of kcap")

    def texts(name: str) -> list[str]:
        return [one[:LONGEST] for one in entries(given, name, str)]

    def pairs(name: str) -> dict[str, str]:
        some = given.get(name)
        entries: list[tuple[Any, Any]] = list(some.items()) if isinstance(some, dict) else []
        return {key: value[:LONGEST] for key, value in entries if isinstance(value, str)}

    def text(name: str) -> str:
        return str(given[name])[:LONGEST] if isinstance(given.get(name), str) else ""

    return CaptureNotes(
        texts("captures"), texts("marks"), texts("ignored"), pairs("comments"), text("time_reference"), pairs("filters"),
        text("profile"),
    )  # fmt: skip


def as_json(notes: CaptureNotes) -> bytes:
    """Notes as JSON, indented, which `parsed` reads."""
    made = {
        "kcap_notes": VERSION, "captures": notes.captures, "marks": notes.marks, "ignored": notes.ignored,
        "comments": notes.comments, "time_reference": notes.reference, "filters": notes.filters, "profile": notes.profile,
    }  # fmt: skip
    return (json.dumps(made, ensure_ascii=False, indent=1) + "\n").encode(errors="backslashreplace")


def write_notes(path: Path, notes: CaptureNotes) -> None:
    """Writes the file, or removes it if there are no notes. Raises OSError."""
    if not notes.readable:
        return
    if notes.empty:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, as_json(notes))
