"""Verifies that a part of a capture gives the rows of the whole: compares its rows with the selected ones.

In: the part, the selection. Out: connections with different rows. Law: two rows are equal if every counted column is; further
rows of the part are no fault, since packets have more than one frame.
"""

from dataclasses import dataclass, field

from kcap.analyzer import Options
from kcap.export.selection import NAMED, Selection, said
from kcap.session import Capture
from kcap.table.builder import Table


@dataclass(slots=True)
class CutCheck:
    """Connections with rows that are missing or differ, and those of which only names of topics differ."""

    broken: set[str] = field(default_factory=set)
    nameless: set[str] = field(default_factory=set)
    rows: int = 0
    """Number of rows that differ."""
    beside: int = 0
    """Number of rows that were not selected."""

    @property
    def holds(self) -> bool:
        """Whether all rows are equal."""
        return not self.broken and not self.nameless


def check(path: str, picked: Selection, options: Options | None, again: CutCheck | None = None) -> CutCheck:
    """Reads the part like any other capture and compares its rows. `again`: the check of a smaller part; connections whose rows
    were equal in it are not compared again."""
    wanted = {uid: (set(chosen.said.whole), set(chosen.said.nameless)) for uid, chosen in picked.chosen.items()}
    if again is not None:
        wanted = {uid: wanted[uid] for uid in again.broken | again.nameless}
    found: dict[str, tuple[set[int], set[int]]] = {}
    rows = 0
    capture = Capture([path], options)
    names = [*dict.fromkeys(("connection", *picked.columns, NAMED))]
    for batch in Table(capture.read, "exchanges", names).record_batches():
        rows += batch.num_rows
        uids = batch.column("connection").to_pylist()
        looked_at = [at for at, uid in enumerate(uids) if uid in wanted]
        if not looked_at:
            continue
        some = batch if len(looked_at) == len(uids) else batch.take(looked_at)
        for uid, whole, nameless in said(some.to_pydict(), picked.columns):
            both = found.setdefault(uid, (set(), set()))
            both[0].add(whole)
            both[1].add(nameless)
    verdict = CutCheck(beside=rows - picked.rows)
    for uid, (whole_wanted, nameless_wanted) in wanted.items():
        whole_found, nameless_found = found.get(uid, (set(), set()))
        if nameless_wanted - nameless_found:
            verdict.broken.add(uid)
        elif whole_wanted - whole_found:
            verdict.nameless.add(uid)
        verdict.rows += len(whole_wanted - whole_found)
    return verdict
