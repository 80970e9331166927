"""Shows throttled clients and their compliance as sheets. Free of widgets.

In: results of the reports throttle and throttled. Out: sheets. Law: each count drills down to as many exchanges; compliance is
decided by the reports.
"""

from collections.abc import Sequence

from kcap.reports import drill_down
from kcap.reports.common_columns import bold, counted, lasting, named
from kcap.reports.definition import Key, Row
from kcap.reports.text import TextColumn, left_out, milliseconds, words
from kcap.reports.throttle import compliance_text, complied
from kcap.tui.views.grouping import keyed, over_time
from kcap.tui.views.sheet import Bars, Line, Sheet, paragraph

HAS_TIME = "throttle_time_ms"


def milli(name: str, head: str, rank: int = 0, tone: str = "") -> TextColumn:
    """Milliseconds of Kafka."""
    return TextColumn(head, lambda row: milliseconds(row.get(name)) if row.get(name) else "", rank=rank,
                 key=lambda row: row.get(name), tone=lambda _row: tone)  # fmt: skip


TONES = {"yes": "good", "mixed": "care", "no": "bad", None: "dim"}
"""Whether a group complied -> its tone."""


def verdict(row: Row) -> str:
    """How many throttles a group complied with, in words."""
    return complied(row) or "broker delayed"


def groups(result: Row, keys: Sequence[Key]) -> Sheet:
    """Throttles by group."""

    def group(row: Row) -> str:
        return drill_down.every(drill_down.group(keys, row), drill_down.THROTTLED)

    fields = [
        *keyed(keys),
        counted("throttled", counts=lambda row: row["throttled"]),
        counted("responses", "of", 6, down=lambda row: drill_down.every(drill_down.group(keys, row), HAS_TIME),
                counts=lambda row: row["responses"]),
        milli("throttle_ms_sum", "time", 2), milli("throttle_ms_max", "longest", 4),
        TextColumn("complied", verdict, right=False, whole=True, tone=lambda row: TONES[row["obeys"]],
              key=lambda row: row["complied"] / row["muting"] if row["muting"] else None),
        TextColumn("obeys", lambda row: words(row["obeys"]), rank=1, right=False, whole=True,
              tone=lambda row: TONES[row["obeys"]]),
        counted("violations", "sent while muted", 2, zero=False, tone=lambda row: TONES[row["obeys"]]),
        milli("earliest_ms", "early by", 3), counted("elsewhere", "other connections", 8, zero=False),
        lasting("muted_ns_sum", "muted", 5), lasting("throttle_ns_sum", "delayed", 7),
        named("phase", rank=8), named("quota", rank=9),
    ]  # fmt: skip
    rows = result["rows"]
    course = over_time(rows, keys, "throttle_ms_sum", "throttle over time", milliseconds, drill_down.THROTTLED)
    times = sum(row["throttled"] for row in rows)
    bad = sum(row["obeys"] == "no" for row in rows)
    note = f"{times:,} throttled response{'s' * (times != 1)} in {len(rows):,} group{'s' * (len(rows) != 1)}; " if rows else ""
    note += f"{bad:,} group{' does' if bad == 1 else 's do'} not comply" if rows else ""
    return Sheet(
        "groups", fields, rows, group, "no throttled responses", note=note, foot=left_out(result["left_out"]), detail=detail,
        charts=lambda row: [times_of(row, drill_down.every(drill_down.group(keys, row))), *course],
    )  # fmt: skip


def detail(row: Row, width: int) -> list[Line]:
    """One group in words."""
    text, tone = compliance_text(row), TONES[row["obeys"]]
    out: list[Line] = paragraph(text, width, tone)
    if row.get("software_name"):
        out.append([(f"{words(row['software_name'])} {words(row['software_version'])}"[:width], "dim")])
    if row.get("known"):
        out += paragraph(f"this library {row['known']}", width, "care")
    if row.get("quota"):
        out += paragraph(f"quota: {row['quota']}", width, "dim")
    return [*out, [("", "")]]


def times_of(row: Row, group: str) -> Bars:
    """Where the time of throttles was spent."""
    late, mute = row["throttle_ns_sum"] / 1e6, row["muted_ns_sum"] / 1e6
    leads = drill_down.every(group, drill_down.THROTTLED)
    times = {
        "throttle time": (row["throttle_ms_sum"], leads),
        "delayed": (late, drill_down.every(group, "throttle_ns > 0")),
        "muted": (mute, drill_down.every(group, "muted_ns > 0")),
    }
    return Bars(
        "where the time was spent", list(times), [value for value, _ in times.values()],
        [milliseconds(value) for value, _ in times.values()], [leads for _, leads in times.values()],
    )  # fmt: skip


def each(result: Row) -> Sheet:
    """Every throttled response."""

    def outcome(row: Row) -> str:
        return "broker delayed" if row["complied"] is None else "yes" if row["complied"] else "no"

    fields = [
        TextColumn("time", lambda row: (row["time"] or "")[11:23], right=False, whole=True, key=lambda row: row["at_ns"]),
        named("client_id", "client", tone=bold), named("client_ip", "address", 4),
        TextColumn("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False),
        named("server_ip", "broker", 5), milli("throttle_time_ms", "throttle"),
        TextColumn("complied", outcome, right=False, whole=True,
              tone=lambda row: {None: "dim", True: "good", False: "bad"}[row["complied"]]),
        counted("violations", "sent while muted", 2, zero=False, tone=lambda _row: "bad"),
        milli("earliest_ms", "early by", 1, "bad"), counted("elsewhere", "other connections", 6, zero=False),
        named("exchange", rank=3),
    ]  # fmt: skip
    return Sheet(
        "throttled responses", fields, result["rows"], lambda row: drill_down.exchange(row["exchange"]),
        "no throttled responses",
        connection=lambda row: row["exchange"].rpartition(".")[0],
    )  # fmt: skip
