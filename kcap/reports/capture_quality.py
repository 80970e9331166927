"""Counts how complete a capture is, during a pass over it.

In: a `CapturePass`, read to its end. Out: `CaptureQuality`. Law: connections and rows are counted as they pass; none is
retained.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from kcap.analyzer import ClosedConnection, RowBatch
from kcap.capture_pass import CapturePass
from kcap.facts.tracker import NO_FACT, Fact
from kcap.model import ROW, CaptureFile
from kcap.table.exchanges import Exchanges

LEDGER: Final = ("captured", "framed", "skipped", "opaque", "pending", "missing")
SIDES: Final = ("client", "server")
COUNTED: Final = ("packets", "retransmitted", "duplicated", "out_of_order", "zero_window_stalls")
_OUTCOME, _REASON = itemgetter(ROW.index("outcome")), itemgetter(ROW.index("reason"))


@dataclass(slots=True)
class CaptureQuality:
    """The counts. `connections` counts Kafka connections only; `others` counts the remaining ones by protocol."""

    files: list[CaptureFile]
    failed: list[tuple[str, str]]
    phases: Counter[str] = field(default_factory=Counter)
    details: Counter[str] = field(default_factory=Counter)
    connections: Counter[str] = field(default_factory=Counter)
    ledger: dict[str, Counter[str]] = field(default_factory=lambda: {side: Counter() for side in SIDES})
    """Stream bytes of Kafka connections: captured = framed + skipped + opaque + pending; and missing bytes."""
    unbalanced: int = 0
    """Sides of connections whose ledger does not add up. A number above zero is a bug of kcap."""
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    weirds: Counter[str] = field(default_factory=Counter)
    sightings: dict[str, str] = field(default_factory=dict)
    """Kind of oddity -> detail and place of its first occurrence."""

    @property
    def packets(self) -> int:
        """Number of packets in all files."""
        return sum(file.packets for file in self.files)

    def total(self, entry: str) -> int:
        """The value of a ledger entry, summed over both sides."""
        return sum(self.ledger[side][entry] for side in SIDES)

    def count(self, values: Mapping[str, object]) -> None:
        """Counts a connection that has ended."""
        for side in SIDES:
            entries = {name: _number(values, f"{side}_{name}") for name in LEDGER}
            self.unbalanced += entries["captured"] != sum(entries[name] for name in LEDGER[1:5])
            if values["phase"] == "kafka":
                self.ledger[side].update(entries)
        if values["phase"] == "kafka":
            self.connections.update({name: _number(values, name) for name in COUNTED})
            self.connections["all"] += 1
            self.connections["midstream"] += values["began"] == "midstream"
            self.connections["one_sided"] += not (values["client_packets"] and values["server_packets"])


def _number(values: Mapping[str, object], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def gather(reading: CapturePass) -> CaptureQuality:
    """Reads the pass to its end."""
    evidence = CaptureQuality(reading.capture_files, [])
    for batch in reading.batches():
        count_batch(evidence, batch)
        closed, reading.connections = reading.connections, []
        for connection in closed:
            evidence.count(connection.values)
    settle(evidence, reading)
    return evidence


class QualityObserver:
    """Counts while another reader of the same pass makes the tables."""

    needs: Fact = NO_FACT

    def __init__(self) -> None:
        self.evidence = CaptureQuality([], [])

    def take(self, rows: Exchanges) -> None:
        """Counts the exchanges of a batch."""
        count_batch(self.evidence, rows.columns.batch)

    def close(self, closed: ClosedConnection) -> None:
        """Counts a connection that has ended."""
        self.evidence.count(closed.values)


def count_batch(evidence: CaptureQuality, batch: RowBatch) -> None:
    """Counts the exchanges of a batch."""
    evidence.outcomes.update(map(_OUTCOME, batch.tuples))
    evidence.reasons.update(str(reason) for reason in map(_REASON, batch.tuples) if reason is not None)
    if batch.fast_rows is not None:
        evidence.outcomes.update(batch.fast_rows.counts("outcome"))
        evidence.reasons.update(batch.fast_rows.counts("reason"))


def settle(evidence: CaptureQuality, reading: CapturePass) -> None:
    """Copies what is known only once the capture has been read."""
    evidence.files = reading.capture_files
    evidence.failed = [(path, str(error)) for path, error in reading.files.failed]
    evidence.phases, evidence.details = reading.phases, reading.details
    for weird, count in reading.weirds:
        kind = str(weird.kind)
        evidence.weirds[kind] += count
        place = f" (packet {weird.packet} of {reading.capture_files[weird.file].name})" if weird.packet else ""
        evidence.sightings.setdefault(kind, weird.detail + place)
