"""Expands paths as users give them (files, globs and folders) into capture files, each once and with a unique name.

In: the paths as typed. Out: paths in that order. Law: the files of a folder are recognised by their first bytes, not by their
names. Hidden files and files of other kinds in it are skipped silently; a file that is named explicitly never is.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from contextlib import closing

from kcap.errors import CaptureError, said
from kcap.inputs import STANDARD as STANDARD_INPUT


def expand(paths: Iterable[str]) -> list[str]:
    """The files that paths stand for, each once."""
    found: dict[str, str] = {}
    for given in paths:
        matches = [given]
        if given != STANDARD_INPUT and not os.path.lexists(given) and glob.has_magic(given):
            matches = sorted(glob.glob(given, recursive=True)) or [given]
        for path in matches:
            for member in members(path) if path != STANDARD_INPUT and os.path.isdir(path) else [path]:
                found.setdefault(path if path == STANDARD_INPUT else os.path.realpath(member), member)
    return list(found.values())


def members(folder: str) -> list[str]:
    """The captures in a folder, sorted by name."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise CaptureError(f"{folder}: {said(error)}") from None
    paths = [os.path.join(folder, name) for name in names if not name.startswith(".")]
    return [path for path in paths if os.path.isfile(path) and fault_of(path) is None]


def fault_of(path: str) -> str | None:
    """Why a file cannot be read as a capture, with its name; None if it begins like one, also inside its compression."""
    from kcap.capture.source import Source, why_no_capture  # the terminal UI names files before it reads any

    try:
        with closing(Source(path)) as source:
            why = why_no_capture(source.read)
    except CaptureError as error:
        return str(error)
    return why and f"{path}: {why}"


def require_capture(paths: Sequence[str]) -> None:
    """Raises CaptureError if a file is missing, if folders have no capture, or if no file is one. An input that can be read
    only once may be a capture, and an empty file may become one. `paths` are as users give them."""
    files = expand(paths)
    if paths and not files:
        raise CaptureError(f"{', '.join(paths)}: no capture file there")
    missing = next((path for path in files if path != STANDARD_INPUT and not os.path.exists(path)), None)
    if missing is not None:
        raise CaptureError(f"{missing}: no such file or directory")
    faults: list[str] = []
    for path in files:
        fault = fault_of(path) if path != STANDARD_INPUT and os.path.isfile(path) and os.path.getsize(path) else None
        if fault is None:
            return
        faults.append(fault)
    if faults:
        raise CaptureError(faults[0])


def unique_names(paths: Sequence[str]) -> list[str]:
    """Base names, extended by as many parent folders as make them unique."""
    parts = [[path] if path == STANDARD_INPUT else os.path.abspath(path).split(os.sep) for path in paths]
    depth = [1] * len(paths)
    while True:
        names = ["/".join(part[-count:]) for part, count in zip(parts, depth)]
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            groups.setdefault(name, []).append(index)
        again_needed = False
        for group in groups.values():
            for index in group if len(group) > 1 else ():
                if depth[index] < len(parts[index]):
                    depth[index] += 1
                    again_needed = True
        if not again_needed:
            return list(map(readable, names))


def readable(path: str) -> str:
    """A path as text. Bytes that are not UTF-8 become escapes, since tables hold only valid text."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")
