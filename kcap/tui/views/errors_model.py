"""Shows the errors report as sheets. Free of widgets.

In: the result of the report errors. Out: sheets: errors by group, requests without a response, retries, leader changes. Law:
each count drills down to as many exchanges; counts of partitions drill down to the exchanges that contain them.
"""

from collections.abc import Sequence

from kcap.reports import drill_down
from kcap.reports.common_columns import bold, clocked, counted, lasting, named, when
from kcap.reports.definition import PARTITIONED, Key, Row
from kcap.reports.text import TextColumn, left_out, number, story, words
from kcap.schema.errors import CODES
from kcap.tui.list_columns import NEEDED_MOST
from kcap.tui.views.grouping import keyed, over_time
from kcap.tui.views.sheet import Line, Sheet, paragraph


def errors(result: Row, keys: Sequence[Key]) -> Sheet:
    deep = any(key.name in PARTITIONED for key in keys)

    def group(row: Row) -> str:
        if not deep:
            return drill_down.every(drill_down.FAILED, drill_down.group(keys, row))
        own = [key for key in keys if key.name not in ("error", "partition")]
        # A partition's error may differ from the first error of the exchange.
        return drill_down.every(drill_down.ANY_ERROR, drill_down.group(own, row))

    course = over_time(
        result["rows"], keys, "count", "errors over time", number, drill_down.ANY_ERROR if deep else drill_down.FAILED
    )
    count = counted("count") if deep else counted("count", counts=lambda row: row["count"])
    fields = [
        count, *keyed(keys),
        clocked("first_ns", "first", 3),
        clocked("last_ns", "last", 4),
        TextColumn("peak/s", lambda row: number(row["peak_per_s"]) + (" storm" if row["storm"] else ""), rank=5,
              key=lambda row: row["peak_per_s"], tone=lambda row: "bad" if row["storm"] else ""),
        named("example", rank=2, down=lambda row: drill_down.exchange(row["example"])),
    ]  # fmt: skip
    return Sheet(
        "errors", fields, result["rows"], group, "no errors", foot=left_out(result["left_out"]), detail=detail,
        charts=(lambda _row: course) if course else None,
        connection=lambda row: (row["example"] or "").rpartition(".")[0] or None,
    )  # fmt: skip


def detail(row: Row, width: int) -> list[Line]:
    """One class of errors in words."""
    name = row.get("error")
    out: list[Line] = []
    if name is not None:
        code = CODES.get(name)
        out.append([(words(name), "bad"), (f"  code {code}" if code is not None else "", "dim")])
    out.append([(f"{row['count']:,} {when(row)}"[:width], "")])
    if row["storm"]:
        text = f"a storm: {row['peak_per_s']:,} in one second, as from retries without backoff or from many clients at once"
        out += paragraph(text, width, "care")
    return out


def unanswered(result: Row) -> Sheet:
    """Requests without a response."""

    def group(row: Row) -> str:
        names = ("api", "client_id", "reason")
        return drill_down.every(drill_down.UNANSWERED, *(drill_down.equals(name, row[name]) for name in names))

    fields = [
        counted("count", counts=lambda row: row["count"]),
        named("reason", tone=lambda row: "" if row["reason"] == "capture_end" else "care"), named("api", tone=bold),
        named("client_id", "client"), lasting("age_ns_max", "max wait"),
        named("example", rank=2, down=lambda row: drill_down.exchange(row["example"])),
    ]  # fmt: skip
    some = result["rows"] or result["left_out"]
    return Sheet(
        "unanswered", fields, result["unanswered"], group,
        "every request has a response, or expects none" if some else "no requests",
        connection=lambda row: (row["example"] or "").rpartition(".")[0] or None,
    )  # fmt: skip


def retries(result: Row) -> Sheet:
    """Batches or fetches that were sent again."""

    def group(row: Row) -> str:
        names = ("api", "client_ip", "client_id")
        return drill_down.every(*(drill_down.equals(name, row[name]) for name in names), drill_down.topic(row["topic"]))

    fields = [
        counted("retries"), named("api", tone=bold), named("client_ip", "address", 2), named("client_id", "client"),
        named("topic"), named("partition", right=True),
    ]  # fmt: skip
    return Sheet(
        "retries", fields, result["retries"], group, "no retries",
        note="the same batch of the same producer, or the same fetch after an error of its partition",
    )  # fmt: skip


def stories(result: Row) -> Sheet:
    """How leadership errors ended."""
    fields = [
        clocked("at_ns", "at"),
        named("error", tone=lambda _row: "bad", least=NEEDED_MOST), named("client_id", "client"), named("api", rank=3),
        TextColumn("partition", lambda row: f"{words(row['topic'])}-{row['partition']}", right=False, rank=2),
        lasting("metadata_after_ns", "Metadata after", 4), lasting("good_after_ns", "recovered after"),
        counted("tries", rank=5),
    ]  # fmt: skip
    return Sheet(
        "leader changes", fields, result["stories"], lambda row: drill_down.exchange(row["example"]),
        "no leadership errors", detail=lambda row, width: paragraph(story(row), width),
        connection=lambda row: row["example"].rpartition(".")[0],
    )  # fmt: skip
