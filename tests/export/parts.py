"""Parts of captures and what their rows say, for the tests of this folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kcap.capture.fileset import FileSet, ignore
from kcap.columns import EXCHANGES
from kcap.session import Capture

PCAPS = Path(__file__).resolve().parents[2] / "pcaps"
PLACES = frozenset(c.name for c in EXCHANGES if "capture" in c.name or c.name.endswith(("_pos", "_packet")))
Packet = tuple[int, bytes, int, int]


def packets(*paths: str | Path) -> list[Packet]:
    """Time, bytes, length on the wire and link type of every packet, in the capture's order."""
    found = []
    for batch in FileSet([str(path) for path in paths], ignore).batches():
        for at in range(len(batch)):
            start, link = batch.start[at], batch.link
            data = batch.buffer[start : start + batch.captured[at]]
            found.append((batch.time_ns[at], data, batch.wire[at], link if isinstance(link, int) else link[at]))
    return found


def rows(paths: Sequence[str | Path] | str | Path, only: str = "", without: frozenset[str] = PLACES) -> list[dict[str, Any]]:
    """Rows without what says where in its file they stand, in an order of their own."""
    given = [paths] if isinstance(paths, str | Path) else paths
    names = [column.name for column in EXCHANGES if column.name not in without]
    found = Capture([str(path) for path in given]).filter(only).exchanges(names).to_arrow().to_pylist()
    return sorted(found, key=lambda row: json.dumps(row, default=str))
