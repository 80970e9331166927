"""Caches reports over a whole capture, which take long for large ones, for views that are opened again.

In: the folder of a spill or an index, a report with its parameters, its result. Out: the result, a copy each time. Law: only
reports over every row of a completely read capture are stored, so that a cached one never differs from a new one. The number of
files is limited by the views and groupings, and their size by the bounds of reports.
"""

import hashlib
import os
import pickle
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kcap.tui.spill import unpickled

if TYPE_CHECKING:
    from kcap.reports.definition import Report, ReportRequest

FOLDER: Final = "reports"


def name_of(report: "Report", request: "ReportRequest", *, partitions: bool) -> str:
    """The name of a report's file. `partitions`: whether they are known and the report uses them."""
    made_by = report.build.__module__, report.build.__qualname__
    return hashlib.sha256(repr((report.name, made_by, request, partitions)).encode()).hexdigest()[:32]


def find(folders: Sequence[str], name: str) -> dict[str, Any] | None:
    """The result in the first folder that has it."""
    for folder in folders:
        try:
            found: dict[str, Any] = unpickled(os.path.join(folder, FOLDER, name))
        except FileNotFoundError:
            continue
        return found
    return None


def store(folder: str, name: str, made: dict[str, Any]) -> None:
    """Stores a result if there is room for it."""
    try:
        os.makedirs(os.path.join(folder, FOLDER), exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            pickle.dump(made, file, pickle.HIGHEST_PROTOCOL)
        os.replace(file.name, os.path.join(folder, FOLDER, name))
    except OSError:
        return


def add(index: str, folder: str) -> None:
    """Moves the results of a folder to an index."""
    try:
        os.makedirs(os.path.join(index, FOLDER), exist_ok=True)
        for entry in os.scandir(os.path.join(folder, FOLDER)):
            os.replace(entry.path, os.path.join(index, FOLDER, entry.name))
    except OSError:
        return
