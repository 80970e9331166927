"""Aggregates exchanges by connection, client, host or broker. Free of widgets.

In: columns of `exchanges` under the filter, the table `connections` once it is complete. Out: a sheet. Law: the counts of the
groups add up to the given exchanges and, without a filter, the connections to all of the capture. Connections without an
exchange come last, with the bytes that both sides sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kcap import limits
from kcap.arrays.arrow import Array
from kcap.limits import EXCHANGES_AT_ONCE
from kcap.output.grid import duration, endpoint
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, clocked, counted, lasting, named, sized
from kcap.reports.definition import Row, group_of
from kcap.reports.text import TextColumn, count, number, words
from kcap.tui.views.sheet import Bars, Line, Sheet, paragraph

COLUMNS: Final = (
    "connection", "client_ip", "client_port", "client_id", "server_ip", "server_port", "api", "outcome", "error_code",
    "throttle_time_ms", "request_bytes", "response_bytes", "latency_ns", "request_first_ns", "response_first_ns",
)  # fmt: skip
"""Columns of `exchanges` that are needed."""
BY: Final[tuple[tuple[str, ...], ...]] = (
    ("connection",), ("client_ip", "client_id", "server_ip", "server_port"), ("client_ip", "client_id"), ("client_ip",),
    ("server_ip", "server_port"),
)  # fmt: skip
"""Groupings of connections."""
APIS: Final = 8
"""Maximum number of APIs of a group that are drawn."""
TCP_FLAGS: Final = {"syn": "SYN", "fin": "FIN", "rst": "RST"}
"""How a connection began or ended -> TCP flag."""
REASON_LEAST: Final = 28
"""Cells of a protocol and the alert that ended it, which are cut after other names."""
FLAG: Final = pa.uint8()
"""A narrow type, since there is one value per exchange."""
SUMMED: Final = (
    "count", "errors", "unanswered", "throttled", "timed", "request_bytes", "response_bytes", "latency_ns", "max_ns",
    "first_ns", "last_ns",
)  # fmt: skip
LIFE: Final = ("packet_first_ns", "packet_last_ns")
"""Times of the first and the last packet."""
ENDS: Final = ("client_ip", "client_port", "client_id", "server_ip", "server_port")
HOWS: Final = dict.fromkeys(SUMMED, "sum") | dict.fromkeys(("max_ns", "last_ns", *ENDS), "max") | {
    "first_ns": "min", "connections": "sum", **dict(zip(LIFE, ("min", "max"))),
}  # fmt: skip
"""Column -> its aggregate function."""
FACTS: Final = (
    "connection", "ended", "rtt_min_ns", "retransmitted", "spurious", "client_missing", "server_missing", "phase",
    "detail", "tls", "tls_version", "tls_alerts",
)  # fmt: skip
"""Columns of `connections` in the table; the details of a row use all."""
TLS: Final = (
    ("tls_version", "TLS version"), ("tls_cipher", "cipher suite"), ("tls_sni", "server name (SNI)"), ("tls_alpn", "ALPN"),
    ("tls_alerts", "alerts"), ("tls_handshake_ns", "handshake"), ("tls_resumed", "resumed"),
    ("tls_server_subject", "broker's certificate"), ("tls_client_subject", "client's certificate"), ("tls_ja4", "JA4"),
)  # fmt: skip
"""Facts of a TLS handshake, with their labels."""
calc: Any = pc


def of_server(table: pa.Table, address: str, port: int) -> pa.Table:
    return table.filter(calc.and_(calc.equal(table["server_ip"], address), calc.equal(table["server_port"], port)))


def flagged(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Rows with the columns to aggregate."""

    def one(condition: Any) -> Any:
        return calc.cast(calc.fill_null(condition, False), FLAG)

    first = calc.coalesce(table["request_first_ns"], table["response_first_ns"])
    columns = {
        "count": ones(table.num_rows), "errors": one(calc.not_equal(table["error_code"], 0)),
        "unanswered": one(calc.equal(table["outcome"], "unanswered")),
        "throttled": one(calc.greater(table["throttle_time_ms"], 0)), "timed": one(calc.is_valid(table["latency_ns"])),
        "max_ns": table["latency_ns"], "first_ns": first, "last_ns": first,
    }  # fmt: skip
    for name, column in columns.items():
        table = table.append_column(name, column) if name in names else table
    return table


def fold(table: pa.Table, keys: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Aggregates to one row per group; repeating this does not change the rows. Single-threaded, since each thread would hold
    groups of its own."""
    made: Any = [(name, HOWS[name]) for name in names]
    found = table.group_by(list(keys), use_threads=False).aggregate(made)
    return found.select([*keys, *(f"{name}_{how}" for name, how in made)]).rename_columns([*keys, *names])


def totals(tables: Iterable[pa.Table], keys: Sequence[str], names: Sequence[str]) -> pa.Table:
    """One row per group, aggregated table by table, so that memory grows with groups and not with exchanges."""
    parts: list[pa.Table] = []
    for table in tables:
        parts.append(fold(table, keys, names))
        if sum(part.num_rows for part in parts[1:]) > EXCHANGES_AT_ONCE:
            parts = [fold(pa.concat_tables(parts), keys, names)]
    return fold(pa.concat_tables(parts), keys, names)


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    """Rows in pieces of EXCHANGES_AT_ONCE; one piece if there is no row."""
    for start in range(0, max(table.num_rows, 1), EXCHANGES_AT_ONCE):
        yield table.slice(start, EXCHANGES_AT_ONCE)


def ones(rows: int) -> Array:
    """A column that counts rows when it is summed."""
    return pa.array(np.ones(rows, np.uint8))


def groups_of(
    table: pa.Table, by: Sequence[str], connections: pa.Table | None = None, *, every: bool = False
) -> tuple[list[Row], int]:
    """One row per group, most exchanges first and ties by the earlier connection, limited to the busiest; and the number of
    groups.

    `connections`: the table, if it is known. `every`: includes its connections without an exchange.
    """
    one = "connection" in by
    names = [*SUMMED, *ENDS] if one else list(SUMMED)
    found = totals((flagged(part, names) for part in pieces(table)), by if one else [*by, "connection"], names)
    if connections is not None:
        found = pa.concat_tables([found, silent(connections, found)]) if every else found
        places = calc.index_in(found["connection"], value_set=connections["connection"])
        for name, column in zip(LIFE, ("first_ns", "last_ns")):
            found = found.append_column(name, connections[column].take(places))
    if not one:
        names += LIFE if connections is not None else ()
        found = fold(found.append_column("connections", ones(found.num_rows)), by, [*names, "connections"])
    groups = found.num_rows
    if groups > limits.VIEW_ROWS:
        found = found.take(calc.sort_indices(found, sort_keys=[("count", "descending")]).slice(0, limits.VIEW_ROWS))
    out = [{"connections": 1} | row for row in found.to_pylist()]
    for row in out:
        row |= {name: row[name] or 0 for name in ("request_bytes", "response_bytes", "latency_ns")}
        row["mean_ns"] = row["latency_ns"] // row["timed"] if row["timed"] else None

    def order(row: Row) -> tuple[Any, ...]:
        if not row["count"]:
            return 0, row["first_ns"]
        return -row["count"], (row.get("first_ns") or 0) if one else 0, *(str(row[name]) for name in by)

    return sorted(out, key=order), groups


def silent(connections: pa.Table, spoke: pa.Table) -> pa.Table:
    """Connections without an exchange as groups of `spoke`, a table of groups, in order of time."""
    found = connections.filter(calc.invert(calc.is_in(connections["connection"], value_set=calc.unique(spoke["connection"]))))
    found = found.take(calc.sort_indices(found, sort_keys=[("first_ns", "ascending")]))
    zero, none = pa.array(np.zeros(found.num_rows, np.uint8)), pa.nulls(found.num_rows)
    columns: dict[str, Any] = dict.fromkeys(spoke.column_names, zero) | {"max_ns": none}
    columns |= {name: found[name] for name in spoke.column_names if name in found.column_names}
    columns |= {"request_bytes": found["client_captured"], "response_bytes": found["server_captured"]}
    return pa.table(columns).cast(spoke.schema)


def apis_of(table: pa.Table, by: Sequence[str], rows: Sequence[Row]) -> dict[tuple[Any, ...], list[tuple[str | None, int]]]:
    """Group -> its APIs with their counts, highest first."""
    keys, first = [*by, "api"], by[0]
    wanted = pa.array(list(dict.fromkeys(row[first] for row in rows)), table.schema.field(first).type)
    parts = (part.select(keys).filter(calc.is_in(part[first], value_set=wanted)) for part in pieces(table))
    found = totals((part.append_column("count", ones(part.num_rows)) for part in parts), keys, ["count"])
    out: dict[tuple[Any, ...], list[tuple[str | None, int]]] = {group_of(row, by): [] for row in rows}
    for row in found.sort_by([("count", "descending"), ("api", "ascending")]).to_pylist():
        some = out.get(group_of(row, by))
        if some is not None:
            some.append((row["api"], row["count"]))
    return out


def facts(connections: pa.Table, rows: Sequence[Row]) -> dict[str, Row]:
    """Connection -> the facts that the table shows, for the shown connections."""
    wanted = pa.array([row["connection"] for row in rows], pa.string())
    found = connections.select(FACTS).filter(calc.is_in(connections["connection"], value_set=wanted))
    return {row["connection"]: row for row in found.to_pylist()}


def whole(connections: pa.Table, row: Row) -> Row:
    """A row of the table with all facts of its connection."""
    found = connections.filter(calc.equal(connections["connection"], row["connection"])).to_pylist()
    return row | {name: value for name, value in found[0].items() if name not in row} if found else row


def conversations(table: pa.Table, by: Sequence[str], connections: pa.Table | None, *, every: bool) -> Sheet:
    """The sheet. `every`: there is no filter, so that connections without an exchange are included."""
    one = "connection" in by
    rows, groups = groups_of(table, by, connections, every=every)
    apis, known = apis_of(table, by, rows), connections is not None
    foot = count(connections.num_rows, "connection") if every and connections is not None else ""
    foot = f"the {len(rows):,} busiest of {groups:,}" if groups > len(rows) else foot
    if one and connections is not None:
        facts_of = facts(connections, rows)
        for row in rows:
            row |= facts_of.get(row["connection"], {})

    def group(row: Row) -> str:
        return drill_down.every(*(drill_down.equals(name, row[name]) for name in by)) if row["count"] else ""

    def some(name: str, head: str, rank: int, leads: str, tone: str) -> TextColumn:
        return counted(name, head, rank, zero=False, tone=lambda _row: tone, counts=lambda row: row[name],
                       down=lambda row: drill_down.every(group(row), leads) if row["count"] else None)  # fmt: skip

    def charts(row: Row) -> list[Bars]:
        found = apis.get(tuple(row.get(name) for name in by), [])[:APIS]
        leads = [drill_down.every(group(row), drill_down.equals("api", api)) for api, _ in found]
        names, counts = [words(api) for api, _ in found], [count for _, count in found]
        return [Bars("exchanges by API", names, counts, [number(count) for count in counts], leads)] if found else []

    if one:
        heads = [
            TextColumn("client", lambda row: endpoint(row["client_ip"], row["client_port"]), right=False, tone=bold),
            TextColumn("client id", lambda row: words(row["client_id"]) if row["count"] else "", right=False, rank=2,
                  key=lambda row: row["client_id"]),
            TextColumn("broker", lambda row: endpoint(row["server_ip"], row["server_port"]), right=False, rank=1),
        ]  # fmt: skip
    else:
        heads = [named(by[0], tone=bold), *(named(name, right=name == "server_port") for name in by[1:])]
        heads.append(counted("connections", "conns", 2))
    fields = [
        *heads, counted("count", "exchanges", counts=lambda row: row["count"]),
        some("errors", "errors", 3, drill_down.FAILED, "bad"), some("unanswered", "unansw.", 3, drill_down.UNANSWERED, "care"),
        some("throttled", "throttled", 4, drill_down.THROTTLED, "care"),
        sized("request_bytes", "request bytes", 7), sized("response_bytes", "response bytes", 6),
        lasting("mean_ns", "mean", 9), lasting("max_ns", "max", 2, down=lambda row: slowest(group(row), row)),
        clocked("first_ns", "first", 10),
        TextColumn("lasted", lambda row: duration(life(row)), rank=4, key=lambda row: life(row) or 0),
    ]  # fmt: skip
    if one and known:
        fields += [
            named("ended", rank=5, whole=True, tone=lambda row: "care" if row.get("ended") == "rst" else ""),
            lasting("rtt_min_ns", "rtt", 12), counted("retransmitted", "retransmissions", 13, zero=False),
            counted("spurious", "spurious", 14, zero=False),
            TextColumn("missing", lambda row: number(missing(row) or None), rank=3, key=missing, tone=lambda _row: "care"),
            TextColumn("protocol", protocol, right=False, rank=3, least=REASON_LEAST,
                  tone=lambda row: "dim" if row["count"] else "care"),
        ]  # fmt: skip
    return Sheet(
        "conversations", fields, rows, group, "no exchanges", foot=foot, charts=charts,
        detail=(lambda row, width: detail(whole(connections, row), width)) if one and connections is not None else None,
        connection=(lambda row: row["connection"] if row["count"] else None) if one else None,
    )  # fmt: skip


def slowest(group: str, row: Row) -> str:
    """A filter for the exchanges as slow as the slowest."""
    return drill_down.every(group, f"latency_ns >= {row['max_ns']}") if row["max_ns"] is not None else group


def life(row: Row) -> int | None:
    """Nanoseconds from the first packet of the connections to the last, or from the first request to the last if packets are
    not known."""
    first, last = (row.get(packet) or row[name] for packet, name in zip(LIFE, ("first_ns", "last_ns")))
    return last - first if first is not None and last is not None else None


def missing(row: Row) -> int:
    """Bytes that were not captured."""
    return (row.get("client_missing") or 0) + (row.get("server_missing") or 0)


def alerts(row: Row) -> str:
    """The names of a connection's TLS alerts, without their meanings."""
    return "; ".join(alert.partition(" (")[0] for alert in row.get("tls_alerts") or ())


def protocol(row: Row) -> str:
    """The protocol of a connection other than plain Kafka; for TLS its version and the names of its alerts."""
    phase, detail = row.get("phase"), row.get("detail")
    if row.get("tls") or phase == "tls":
        text = " ".join(filter(None, (row.get("tls_version") or "TLS", "Kafka" if phase == "kafka" else "")))
        return "; ".join(filter(None, (text, alerts(row))))
    said = "no data" if phase == "empty" else phase or ""
    return "" if phase == "kafka" else f"{said}: {detail}" if detail and detail != phase else said


def detail(row: Row, width: int) -> list[Line]:
    """One connection in words."""
    out: list[Line] = [[(str(row["connection"]), "bold")]]
    ends = f"{endpoint(row['client_ip'], row['client_port'])} to {endpoint(row['server_ip'], row['server_port'])}"
    out += paragraph(ends, width, indent="  ")
    if row.get("software_name"):
        out.append([(f"{words(row['software_name'])} {words(row.get('software_version'))}"[:width], "")])
    if row.get("principal") or row.get("sasl_mechanism"):
        user = f"user {words(row['principal'])}" if row.get("principal") else "user not known"
        out.append([(f"{user}, login by {words(row.get('sasl_mechanism'))}"[:width], "")])
    if row.get("tls"):
        for name, head in TLS:
            value = row.get(name)
            text = "" if value in (None, []) else duration(value) if name.endswith("_ns") else words(value)
            out += paragraph(f"{head}: {text}", width, "bad" if name == "tls_alerts" else "", "  ") if text else []
    if row.get("packets") is not None:
        began, ended = (TCP_FLAGS.get(str(row[name]), str(row[name])) for name in ("began", "ended"))
        tcp = f"began: {began}, ended: {ended}, lasted {duration(life(row))}; {count(row['packets'], 'packet')}, "
        tcp += count(row["retransmitted"], "retransmission") + (f" ({row['spurious']:,} spurious)" if row["spurious"] else "")
        tcp += f", {count(row['duplicated'], 'duplicate')}, "
        tcp += count(row["zero_window_stalls"], "zero window stall")
        tcp += f" of {duration(row['zero_window_ns'])}" if row["zero_window_ns"] else ""
        out += paragraph(tcp, width, "dim")
        for side, name in (("client", "client to broker"), ("server", "broker to client")):
            ledger = f"{name}: {count(row[f'{side}_captured'], 'byte')} = {row[f'{side}_framed']:,} framed"
            ledger += "".join(
                f" + {row[f'{side}_{part}']:,} {part}" for part in ("skipped", "opaque", "pending") if row[f"{side}_{part}"]
            )
            lost = row[f"{side}_missing"]
            ledger += f"; {lost:,} missing" if lost else ""
            out += paragraph(ledger, width, "care" if lost else "dim", "  ")
    return [*out, [("", "")]]
