"""Who was throttled, and whether they kept quiet. Free of widgets.

In: results of the reports throttle and throttled. Out: sheets. Law: each count leads to as many exchanges; whether a client
obeyed is what the reports say.
"""

from collections.abc import Sequence

from kcap.reports.definition import Key, Row
from kcap.reports.text import left_out, milliseconds, words, wrapped
from kcap.tui.views import drill_down
from kcap.tui.views.grouping import bold, keyed, over_time
from kcap.tui.views.sheet import Bars, Line, Sheet, SheetField, counted, lasting, named

TOLD = "throttle_time_ms"


def milli(name: str, head: str, rank: int = 0, tone: str = "") -> SheetField:
    """Kafka's milliseconds."""
    return SheetField(head, lambda row: milliseconds(row.get(name)) if row.get(name) else "", rank=rank,
                 key=lambda row: row.get(name), tone=lambda _row: tone)  # fmt: skip


def verdict(row: Row) -> str:
    """Whether a group kept quiet, in a word."""
    if row["violations"]:
        return "did not obey"
    return "kept quiet" if row["muting"] else "broker waited"


def who(result: Row, keys: Sequence[Key]) -> Sheet:
    """Throttles by group."""

    def group(row: Row) -> str:
        return drill_down.every(drill_down.group(keys, row), drill_down.THROTTLED)

    fields = [
        *keyed(keys),
        counted("throttled", counts=lambda row: row["throttled"]),
        counted("responses", "of", 6, down=lambda row: drill_down.every(drill_down.group(keys, row), TOLD),
                counts=lambda row: row["responses"]),
        milli("throttle_ms_sum", "time"), milli("throttle_ms_max", "longest", 4),
        SheetField("kept quiet?", verdict, right=False, whole=True,
              tone=lambda row: "bad" if row["violations"] else "good" if row["muting"] else "dim"),
        counted("violations", "too early", 2, zero=False, tone=lambda _row: "bad"),
        milli("earliest_ms", "by up to", 3, "bad"),
        lasting("muted_ns_sum", "mute suffered", 5), lasting("throttle_ns_sum", "late answers", 7),
        named("phase", rank=8), named("quota", rank=9),
    ]  # fmt: skip
    rows = result["rows"]
    course = over_time(rows, keys, "throttle_ms_sum", "throttle over time", milliseconds, drill_down.THROTTLED)
    times = sum(row["throttled"] for row in rows)
    bad = sum(bool(row["violations"]) for row in rows)
    note = f"{times:,} throttled answers in {len(rows):,} groups; {bad:,} of the groups did not keep quiet" if rows else ""
    return Sheet(
        "who", fields, rows, group, "nobody was throttled", note=note, foot=left_out(result["left_out"]), detail=detail,
        charts=lambda row: [times_of(row, drill_down.every(drill_down.group(keys, row))), *course],
    )  # fmt: skip


def detail(row: Row, width: int) -> list[Line]:
    """One group in words."""
    if row["violations"]:
        text = (
            f"{row['violations']:,} requests came before the time was over, by up to {milliseconds(row['earliest_ms'])}; "
            f"{row['disobeyed']:,} of {row['muting']:,} throttles were not kept; {row['same_connection']:,} of the requests "
            "came on the connection that was throttled, the others on another one of the same client to the same broker"
        )
        tone = "bad"
    elif row["muting"]:
        text, tone = f"all {row['muting']:,} throttles that ask for silence were kept (KIP-219)", "good"
    else:
        text, tone = "the broker waited before it answered, as brokers did before KIP-219: nothing is left to obey", "dim"
    out: list[Line] = [[(line, tone)] for line in wrapped(text, width)]
    if row.get("software_name"):
        out.append([(f"{words(row['software_name'])} {words(row['software_version'])}"[:width], "dim")])
    if row.get("known"):
        out += [[(line, "care")] for line in wrapped(f"this library {row['known']}", width)]
    if row.get("quota"):
        out += [[(line, "dim")] for line in wrapped(f"quota: {row['quota']}", width)]
    return [*out, [("", "")]]


def times_of(row: Row, group: str) -> Bars:
    """Where the time of throttles was spent."""
    late, mute = row["throttle_ns_sum"] / 1e6, row["muted_ns_sum"] / 1e6
    leads = drill_down.every(group, drill_down.THROTTLED)
    told = {
        "asked for": (row["throttle_ms_sum"], leads),
        "late answers": (late, drill_down.every(group, "throttle_ns > 0")),
        "mute suffered": (mute, drill_down.every(group, "muted_ns > 0")),
    }
    return Bars(
        "where the time was spent", list(told), [value for value, _ in told.values()],
        [milliseconds(value) for value, _ in told.values()], [leads for _, leads in told.values()],
    )  # fmt: skip


def each(result: Row) -> Sheet:
    """Every throttled answer."""

    def obeyed(row: Row) -> str:
        return "broker waited" if row["kept"] is None else "kept" if row["kept"] else "not kept"

    fields = [
        SheetField("time", lambda row: (row["time"] or "")[11:23], right=False, key=lambda row: row["at_ns"]),
        named("client_id", "client", tone=bold), named("client_ip", "address", 4),
        SheetField("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False),
        named("server_ip", "broker", 5), milli("throttle_time_ms", "throttle"),
        SheetField("kept quiet?", obeyed, right=False, whole=True,
              tone=lambda row: {None: "dim", True: "good", False: "bad"}[row["kept"]]),
        counted("violations", "too early", 2, zero=False, tone=lambda _row: "bad"),
        milli("earliest_ms", "by up to", 1, "bad"), named("exchange", rank=3),
    ]  # fmt: skip
    return Sheet(
        "each throttle", fields, result["rows"], lambda row: drill_down.exchange(row["exchange"]), "nobody was throttled",
        connection=lambda row: row["exchange"].rpartition(".")[0],
    )  # fmt: skip
