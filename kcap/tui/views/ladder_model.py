"""Builds the ladder: requests and responses of a connection or a client as arrows, in time order. Free of widgets.

In: rows of `exchanges`. Out: events, and a sheet of them. Law: each captured request, each response and each missing response
is an event; events are in time order; a lane holds one exchange at a time, from its request to its end.
A broker serves one request of a connection at a time. The oldest exchange in flight is therefore drawn as being served and the
others as queued behind it, which is head-of-line blocking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kcap.output.grid import ELLIPSIS, call, clean, duration, endpoint, result
from kcap.output.grid import topics as topic_names
from kcap.reports import drill_down
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, count, instant, number, size, words
from kcap.tui.views.sheet import Bars, Line, Sheet, paragraph
from kcap.tui.views.statistics_model import spent

COLUMNS: Final = (
    "connection", "exchange", "client_ip", "client_port", "client_id", "server_ip", "server_port", "broker_id", "api",
    "api_version", "correlation_id", "outcome", "reason", "error", "error_count", "age_ns", "latency_ns", "rtt_ns", "queue_ns",
    "service_ns", "long_poll_ns", "throttle_ns", "muted_ns", "throttle_time_ms", "request_transfer_ns", "transfer_ns",
    "request_bytes", "response_bytes", "topics", "topic_ids", "record_count", "acks", "flags", "request_first_ns",
    "request_last_ns", "response_first_ns", "response_last_ns", "request_first_packet", "response_first_packet",
)  # fmt: skip
"""Columns of `exchanges` that are needed."""
WINDOW: Final = 5000
"""Maximum number of exchanges that are drawn at once."""
REQUEST, RESPONSE, LOST = "request", "response", "no response"
SERVED, WAITING, BEGIN, END = "│", "┊", "┌", "└"
LIGHT, HEAVY = "─", "━"
TIME_WIDTH: Final = 15
DELTA_WIDTH: Final = 7
HOST_LEAST: Final = 14
"""Minimal width of a broker, in terminal columns."""
ARROW_LEAST: Final = 24
LONG_NS: Final = 100_000_000
"""Length of a pause between events from which it is highlighted."""
calc: Any = pc


@dataclass(slots=True)
class LadderModel:
    """The events of a ladder and how they are drawn."""

    events: list[Row] = field(default_factory=list)
    hosts: list[tuple[str, int]] = field(default_factory=list)
    """Brokers, from left to right."""
    names: list[str] = field(default_factory=list)
    """Names of the brokers."""
    client: str = ""
    chosen: str | None = None
    """Name (UID.N) of the exchange whose arrows are highlighted."""
    lanes: int = 1
    """Maximum number of exchanges in flight at once."""


# -- which exchanges --------------------------------------------------------------------------------------------------
def connections(table: pa.Table) -> list[str]:
    """Connections in the order of their first exchanges."""
    return [str(uid) for uid in calc.unique(table["connection"]).to_pylist()]


def busiest(table: pa.Table) -> str | None:
    """The connection with the most exchanges."""
    counts = calc.value_counts(table["connection"]).to_pylist()
    return max(counts, key=lambda row: row["counts"])["values"] if counts else None


def of_connection(table: pa.Table, uid: str) -> pa.Table:
    return table.filter(calc.equal(table["connection"], uid))


def of_client(table: pa.Table, uid: str) -> pa.Table:
    """The client of a connection, with all of its connections."""
    one = of_connection(table, uid)
    ids = [name for name in calc.unique(one["client_id"]).to_pylist() if name is not None]
    if not one.num_rows or not ids:
        return one
    ip = one["client_ip"][0]
    named = calc.is_in(table["client_id"], value_set=pa.array(ids, pa.string()))
    return table.filter(calc.and_(calc.equal(table["client_ip"], ip), named))


def window(table: pa.Table, around: tuple[str, int] | None, shift: int) -> tuple[pa.Table, int]:
    """`WINDOW` exchanges in order of time: those around one, or the first ones; moved by whole windows. With the number of the
    first."""
    times = calc.coalesce(table["request_first_ns"], table["response_first_ns"])
    keys: Any = {"at": times, "exchange": table["exchange"]}
    order = calc.sort_indices(pa.table(keys), sort_keys=[("at", "ascending"), ("exchange", "ascending")])
    start = 0
    if around is not None and table.num_rows > WINDOW:
        uid, exchange = around
        here = calc.and_(calc.equal(table["connection"], uid), calc.equal(table["exchange"], exchange))
        place = calc.index(here.take(order), True).as_py()
        start = max(0, place - WINDOW // 2)
    start = max(0, min(start + shift * WINDOW, max(0, table.num_rows - 1)))
    start = min(start, max(0, table.num_rows - WINDOW)) if shift <= 0 else start
    return table.take(order.slice(start, WINDOW)), start


# -- events -----------------------------------------------------------------------------------------------------------
def events_of(rows: Sequence[Row]) -> list[Row]:
    """Requests, responses and missing responses, in time order."""
    found: list[tuple[int, int, Row]] = []
    for row in rows:
        request_ns, response_ns = row["request_first_ns"], row["response_first_ns"]
        name = {"exchange_name": f"{row['connection']}.{row['exchange']}"}
        if request_ns is not None:
            found.append((request_ns, 0, row | name | {"kind": REQUEST, "at_ns": request_ns}))
        if response_ns is not None:
            found.append((response_ns, 1, row | name | {"kind": RESPONSE, "at_ns": response_ns}))
        elif row["outcome"] == "unanswered":
            last = row["request_last_ns"] if row["request_last_ns"] is not None else request_ns
            end = (last or 0) + (row["age_ns"] or 0)
            found.append((end, 2, row | name | {"kind": LOST, "at_ns": end}))
    found.sort(key=lambda one: (one[0], one[1], one[2]["exchange"]))
    events = [event for _, _, event in found]
    before = None
    for event in events:
        event["delta_ns"] = None if before is None else event["at_ns"] - before
        before = event["at_ns"]
    return events


def draw_lanes(events: Sequence[Row]) -> int:
    """Sets the lanes of each event, as (lane, mark) pairs; returns the maximum number in flight."""
    open_: dict[str, int] = {}  # exchange -> lane, in the order of their requests
    lines: dict[str, list[str]] = {}  # connection -> its exchanges in flight
    free: list[int] = []
    most, used = 0, 0
    for event in events:
        name, uid = event["exchange_name"], event["connection"]
        begins = event["kind"] == REQUEST and event["outcome"] in ("answered", "unanswered")
        if begins and name not in open_:
            lane = min(free) if free else used
            if free:
                free.remove(lane)
            else:
                used += 1
            open_[name] = lane
            lines.setdefault(uid, []).append(name)
        served = {line[0] for line in lines.values() if line}
        marks = {lane: SERVED if one in served else WAITING for one, lane in open_.items()}
        own = open_.get(name)
        if own is not None:
            marks[own] = BEGIN if event["kind"] == REQUEST else END
        event["lanes"], event["in_flight"] = marks, len(open_)
        most = max(most, used)
        if event["kind"] != REQUEST and own is not None:
            del open_[name]
            lines[uid].remove(name)
            if not lines[uid]:
                del lines[uid]
            free.append(own)
    return most


def made(rows: Sequence[Row]) -> LadderModel:
    events = events_of(rows)
    lanes = draw_lanes(events)
    ids = {(row["server_ip"], row["server_port"]): row["broker_id"] for row in rows}
    ends = {(row["client_ip"], row["client_port"]): row["client_id"] for row in rows}
    client = ""
    if ends:
        (ip, port), name = next(iter(ends.items()))
        client = endpoint(ip, port) if len(ends) == 1 else clean(name or ip)
    return LadderModel(events, list(ids), names_of(ids), client, lanes=max(1, lanes))


def names_of(brokers: Mapping[tuple[str, int], int | None]) -> list[str]:
    """Names of brokers: their address; if there are several, their ids if these are distinct, else without a common port."""
    ports, known = {port for _, port in brokers}, set(brokers.values())
    if len(brokers) > 1 and None not in known and len(known) == len(brokers):
        return [f"broker {node}" for node in brokers.values()]
    return [ip if len(brokers) > 1 and len(ports) == 1 else endpoint(ip, port) for ip, port in brokers]


# -- drawing ----------------------------------------------------------------------------------------------------------
def lanes_text(event: Row, width: int) -> str:
    """The exchanges in flight, one column each; a number if there is no room for all."""
    marks: dict[int, str] = event["lanes"]
    text = "".join(marks.get(lane, " ") for lane in range(width))
    beyond = sum(lane >= width for lane in marks)
    if not beyond:
        return text
    suffix = f"+{beyond}"
    return text[: max(0, width - len(suffix))] + suffix


def arrow_text(event: Row) -> str:
    if event["kind"] == REQUEST:
        names = topic_names(event["topics"], event["topic_ids"])
        records = event["record_count"] if event["api"] == "Produce" else None
        parts = [call(event["api"], event["api_version"]) or "?", names, count(records, "record") if records else ""]
        parts.append("no response expected" if event["outcome"] == "one_way" else "")
        return " ".join(part for part in parts if part)
    if event["kind"] == LOST:
        return f"no response: {event['reason']}" + (f", {duration(event['age_ns'])}" if event["age_ns"] is not None else "")
    parts = [result(event["outcome"], event["reason"], event["error"]) or "ok", duration(event["latency_ns"])]
    parts.append("long poll" if event["long_poll_ns"] else "")
    parts.append(f"queued {duration(event['queue_ns'])}" if is_blocked(event) else "")
    parts.append(f"throttle {event['throttle_time_ms']}ms" if event["throttle_time_ms"] else "")
    parts.append(size(event["response_bytes"]))
    return " ".join(part for part in parts if part)


def is_blocked(event: Row) -> bool:
    """Whether more than half of the latency was spent queued behind earlier requests."""
    return bool(event["queue_ns"]) and 2 * event["queue_ns"] > (event["latency_ns"] or 0)


def tone_of(event: Row) -> str:
    if event["kind"] == LOST:
        return "dim" if event["reason"] == "capture_end" else "bad"
    if event["kind"] == REQUEST:
        return "care" if event["outcome"] == "unanswered" else "one"
    if event["error"] not in (None, "NONE") or event["error_count"]:
        return "bad"
    if event["throttle_time_ms"] or is_blocked(event):
        return "care"
    return "dim" if event["long_poll_ns"] else "good"


def places(hosts: int, width: int) -> list[int]:
    """Columns of the lifelines: the client's first, then the brokers'; brokers without room share the last."""
    columns = max(1, min(hosts, (width - 1) // HOST_LEAST))
    return [at * (width - 1) // columns for at in range(columns + 1)]


def arrow(event: Row, host: int, lines: Sequence[int], *, heavy: bool) -> str:
    """One arrow between the client's lifeline and a broker's."""
    cells = [" "] * (lines[-1] + 1)
    for at in lines:
        cells[at] = "│"
    first, last = 1, lines[min(host + 1, len(lines) - 1)]
    if event["kind"] == LOST:
        body = ["╌"] * (last - first)
        body[-1:] = ["✗"]
    else:
        body = [HEAVY if heavy else LIGHT] * (last - first)
        body[-1 if event["kind"] == REQUEST else 0] = "▶" if event["kind"] == REQUEST else "◀"
    cells[first:last] = body
    room, text = last - first - 4, arrow_text(event)
    text = f" {text if len(text) <= room else text[: max(0, room - 1)] + ELLIPSIS} "
    at = first + 1 + max(0, (last - first - 2 - len(text)) // 2)
    cells[at : at + len(text)] = text
    return "".join(cells)


def heads(ladder: LadderModel, lines: Sequence[int]) -> str:
    """The names above the lifelines: the client's begins at its line, the brokers' end at theirs."""
    names, shown = ladder.names, len(lines) - 1
    if len(names) > shown:
        names = [*names[: shown - 1], f"{len(names) - shown + 1} brokers"]
    text = ladder.client[: lines[1] // 2]
    for name, line in zip(names, lines[1:]):
        room = line + 1 - len(text) - 1
        text += " " + (name.rjust(room) if len(name) <= room else ELLIPSIS + name[len(name) - max(0, room - 1) :])
    return text


def sheet(ladder: LadderModel, room: int, *, relative: bool, note: str = "") -> Sheet:
    """The ladder as a table that fits the room."""
    lanes = max(5, min(ladder.lanes, 6 if room < 100 else 14))
    width = max(ARROW_LEAST, room - TIME_WIDTH - DELTA_WIDTH - lanes - 9)
    lines = places(len(ladder.hosts), width)
    order = {host: at for at, host in enumerate(ladder.hosts)}
    start = ladder.events[0]["at_ns"] if ladder.events else 0

    def at(event: Row) -> str:
        return f"{(event['at_ns'] - start) / 1e9:.6f}" if relative else instant(event["at_ns"], 1000)[11:-1]

    def drawn(event: Row) -> str:
        host = order[(event["server_ip"], event["server_port"])]
        return arrow(event, host, lines, heavy=event["exchange_name"] == ladder.chosen)

    fields = [
        TextColumn(f"{'seconds' if relative else 'time':>{TIME_WIDTH - 1}}", lambda event: f"{at(event):>{TIME_WIDTH}}",
            right=False,
              whole=True, tone=lambda _event: "dim"),
        TextColumn("since", lambda event: f"{duration(event['delta_ns']):>{DELTA_WIDTH}}", whole=True,
              tone=lambda event: "care" if (event["delta_ns"] or 0) >= LONG_NS else "dim"),
        TextColumn("open", lambda event: lanes_text(event, lanes), right=False, whole=True,
              tone=lambda _event: "two"),
        TextColumn(heads(ladder, lines), drawn, right=False, whole=True,
              tone=lambda event: "key" if event["exchange_name"] == ladder.chosen else tone_of(event)),
    ]  # fmt: skip
    return Sheet(
        "ladder", fields, ladder.events, lambda event: drill_down.exchange(event["exchange_name"]), "no exchanges", note=note,
        detail=detail, charts=charts,
    )  # fmt: skip


def detail(event: Row, width: int) -> list[Line]:
    """The exchange of an arrow."""
    out: list[Line] = [
        [(call(event["api"], event["api_version"]) or "?", "bold"), (f"  {event['exchange_name']}", "dim")],
        [(f"correlation id {words(event['correlation_id'])}, {words(event['client_id'])}"[:width], "")],
    ]
    ended = result(event["outcome"], event["reason"], event["error"])
    tone = "good" if ended == "ok" else "bad" if event["outcome"] in ("answered", "unanswered") else ""
    out.append([(ended, tone), (f" after {duration(event['latency_ns'])}" if event["latency_ns"] is not None else "", "")])
    if event["queue_ns"]:
        out += paragraph(f"queued {duration(event['queue_ns'])} behind earlier requests", width, "care")
    if event["throttle_time_ms"]:
        out.append([(f"throttled for {event['throttle_time_ms']:,} ms"[:width], "care")])
    names = topic_names(event["topics"], event["topic_ids"]).replace(",", ", ")
    out += paragraph(f"topics {names}", width, indent="  ") if names else []
    sizes = f"request bytes {size(event['request_bytes']) or '-'}, response bytes {size(event['response_bytes']) or '-'}"
    sizes += f", {count(event['record_count'], 'record')}" if event["record_count"] is not None else ""
    out += paragraph(sizes, width, "dim", "  ")
    packets = [number(event[name]) for name in ("request_first_packet", "response_first_packet") if event[name] is not None]
    out.append([(f"from packet {' to '.join(packets)}"[:width], "dim")])
    if event["flags"]:
        out.append([(f"flags {words(event['flags'])}"[:width], "care")])
    return [*out, [("", "")]]


def charts(event: Row) -> list[Bars]:
    """The latency breakdown of one exchange."""
    bars = spent(event | {"exchange": event["exchange_name"]})
    return [bars] if bars.values else []
