"""Shows capture health as sheets: the points of the verdict, oddities, files, bytes. Free of widgets.

In: the tables connections, captures, weirds, and the number of exchanges by outcome. Out: sheets. Law: the numbers are those
of `kcap.reports.capture_quality`, taken from the tables of the same pass; the verdicts are those of `kcap health`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kcap import limits
from kcap.limits import LEDGERS_AT_ONCE
from kcap.model import CaptureFile
from kcap.output.grid import duration, endpoint
from kcap.reports import drill_down
from kcap.reports.capture_quality import SIDES, CaptureQuality
from kcap.reports.common_columns import bold, clocked, counted, named, sized
from kcap.reports.definition import Row
from kcap.reports.health import judge
from kcap.reports.text import TextColumn, count, number, words
from kcap.tui.views.sheet import Line, Sheet, paragraph

MARKS: Final = {"good": "✓ ok", "care": "! care", "bad": "✗ BAD"}
COLUMNS: Final = ("outcome", "reason")
"""Columns of `exchanges` that are needed."""
calc: Any = pc
LEDGER: Final = ("captured", "framed", "skipped", "opaque", "pending", "missing")

LEDGER_COLUMNS: Final = (
    "connection", "client_ip", "client_port", "server_ip", "server_port", "phase", "exchanges", "retransmitted", "duplicated",
    "began", "ended",
)  # fmt: skip


def file_of(row: Row) -> CaptureFile:
    """A row of `captures` as the record that it was made from."""
    return CaptureFile(
        row["path"], row["capture"], row["size"], row["format"], set(row["link_types"] or ()), row["snaplen"], row["first_ns"],
        row["last_ns"], row["packets"] or 0, row["packet_bytes"] or 0, row["kernel_drops"], row["cut_packets"] or 0,
        complete=bool(row["complete"]),
    )  # fmt: skip


def tally(table: pa.Table, name: str) -> Counter[str]:
    """How often a column has each value."""
    counted_up: Any = table[name].value_counts()
    return Counter({row["values"]: row["counts"] for row in counted_up.to_pylist() if row["values"] is not None})


def evidence_of(captures: pa.Table, connections: pa.Table, weirds: pa.Table, exchanges: pa.Table) -> CaptureQuality:
    """The evidence from the tables."""
    found = CaptureQuality([file_of(row) for row in captures.to_pylist()], [])
    for batch in connections.to_batches(max_chunksize=LEDGERS_AT_ONCE):
        for row in batch.to_pylist():
            found.count(row)
    found.phases, found.details = tally(connections, "phase"), tally(connections, "detail")
    found.outcomes, found.reasons = tally(exchanges, "outcome"), tally(exchanges, "reason")
    for row in weirds.to_pylist():
        found.weirds[row["kind"]] += row["count"]
        found.sightings.setdefault(row["kind"], sighting(row))
    return found


def sighting(row: Mapping[str, Any]) -> str:
    """Where an oddity first occurred."""
    place = f" (packet {row['packet']} of {row['capture']})" if row["packet"] else ""
    return f"{row['detail']}{place}"


def points(evidence: CaptureQuality) -> Sheet:
    """One line per point."""
    _, sentence, found = judge(evidence)
    fields = [
        TextColumn("", lambda row: MARKS[row["verdict"]], right=False, whole=True,
            key=lambda row: list(MARKS).index(row["verdict"]),
              tone=lambda row: str(row["verdict"])),
        named("name", "point", tone=bold), named("sentence", "finding"),
    ]  # fmt: skip
    rows = [asdict(point) for point in found]
    return Sheet("verdict", fields, rows, leads, "no verdict", note=sentence, detail=point_detail)


LEADS: Final = {
    "snapshot length": "flags == snaplen", "missing bytes": "flags == gap", "clock": "flags == clock",
    "beginnings": "flags == midstream", "directions": "flags == one_sided", "copies": "flags == duplicated",
    "exchanges": "outcome != answered && outcome != one_way",
}  # fmt: skip
"""Point -> exchanges that it concerns."""


def leads(row: Row) -> str | None:
    """Exchanges that a point concerns, unless it is good."""
    return LEADS.get(row["name"]) if row["verdict"] != "good" or row["name"] == "exchanges" else None


def point_detail(row: Row, width: int) -> list[Line]:
    """A point with its numbers."""
    out: list[Line] = [[(MARKS[row["verdict"]], row["verdict"]), (f"  {row['name']}", "bold")]]
    out += paragraph(row["sentence"], width)
    for name, value in row["numbers"].items():
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {number(count)}" for key, count in value.items() if count)
        else:
            shown = number(value) if isinstance(value, int) and not name.endswith("_ns") else words(value)
        out += paragraph(f"{name.replace('_', ' ')}: {shown}", width, "dim", "  ") if shown else []
    return out


def oddities(weirds: pa.Table, connections: pa.Table) -> Sheet:
    """Oddities, with their connections and first occurrences."""
    spoke = {row["connection"] for row in connections.select(["connection", "exchanges"]).to_pylist() if row["exchanges"]}

    def connection(row: Row) -> str | None:
        return row["connection"] if row["connection"] in spoke else None

    rows = sorted(weirds.to_pylist(), key=lambda row: (-row["count"], row["kind"], row["connection"] or ""))
    fields = [
        counted("count", "times"), named("kind", tone=bold), named("detail", "what"),
        named("connection", rank=1), named("capture", "file", 4), counted("packet", rank=2), counted("position", "offset", 5),
    ]  # fmt: skip
    return Sheet(
        "oddities", fields, rows, lambda row: drill_down.equals("connection", uid) if (uid := connection(row)) else None,
        "no oddities", connection=connection, detail=odd_detail,
    )  # fmt: skip


def odd_detail(row: Row, width: int) -> list[Line]:
    """One oddity in words."""
    head: Line = [(words(row["kind"]), "bold"), (f"  {count(row['count'], 'time')}", "dim")]
    return [head, *paragraph(words(sighting(row)), width)]


def files(captures: pa.Table) -> Sheet:
    fields = [
        named("capture", "file", tone=bold), named("format"), sized("size", "size", 3), counted("packets"),
        clocked("first_ns", "from", 1),
        TextColumn("time", lambda row: duration((row["last_ns"] or 0) - (row["first_ns"] or 0)) if row["packets"] else "",
            rank=2,
              key=lambda row: (row["last_ns"] or 0) - (row["first_ns"] or 0)),
        counted("snaplen", "snaplen", 6), counted("cut_packets", "cut", 4, zero=False, tone=lambda _row: "care"),
        counted("kernel_drops", "dropped", 5, tone=lambda row: "bad" if row["kernel_drops"] else ""),
        TextColumn("complete", lambda row: "yes" if row["complete"] else "truncated" if row["format"] else "not read",
              right=False, tone=lambda row: "good" if row["complete"] else "care"),
    ]  # fmt: skip
    return Sheet(
        "files", fields, captures.to_pylist(), lambda row: drill_down.equals("capture", row["capture"]), "no files were read"
    )


def ledger(connections: pa.Table) -> Sheet:
    """Where the bytes of each connection went."""
    summed = connections
    for name in LEDGER:
        sides = [calc.fill_null(connections[f"{side}_{name}"], 0) for side in SIDES]
        summed = summed.append_column(name, calc.add(*sides))
    doubt = calc.add(calc.add(summed["missing"], summed["skipped"]), summed["pending"])
    summed = summed.append_column("doubt", doubt).select([*LEDGER_COLUMNS, *LEDGER, "doubt"])
    keys = [("doubt", "descending"), ("captured", "descending"), ("connection", "ascending")]
    rows = summed.take(calc.sort_indices(summed, sort_keys=keys).slice(0, limits.VIEW_ROWS)).to_pylist()
    fields = [
        TextColumn("client", lambda row: endpoint(row["client_ip"], row["client_port"]), right=False, tone=bold),
        TextColumn("server", lambda row: endpoint(row["server_ip"], row["server_port"]), right=False, rank=1),
        named("phase", "protocol"), counted("exchanges", zero=False), counted("captured"), counted("framed", rank=2),
        *(counted(name, rank=3, zero=False, tone=lambda _row: "care") for name in ("skipped", "pending", "missing")),
        counted("opaque", rank=4, zero=False), counted("retransmitted", "retransmissions", 6, zero=False),
        counted("duplicated", "duplicates", 7, zero=False), named("began", rank=8), named("ended", rank=9),
    ]  # fmt: skip
    foot = f"{len(rows):,} of {connections.num_rows:,} connections" if len(rows) < connections.num_rows else ""
    return Sheet(
        "bytes", fields, rows, lambda row: drill_down.equals("connection", row["connection"]) if row["exchanges"] else None,
        "no connections", note="captured = framed + skipped + opaque + pending; missing = not captured", foot=foot,
        connection=lambda row: row["connection"] if row["exchanges"] else None,
    )  # fmt: skip
