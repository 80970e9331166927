"""One side of a comparison: a capture's exchanges as small summaries by class.

In: the exchanges of a capture as an Ibis table, and an engine. Out: `Side`, whose size depends on the number of classes, not of
exchanges. Law: each summary is one expression that any engine runs. A class is an API of a client, of a broker or of a topic,
or an API as a whole. A time is `latency_ns - long_poll_ns`, as in the report `latency`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final

from kcap.reports.definition import Grouping, ReportRequest, Row, Rows, group_of, key_of, time_of, total
from kcap.reports.latency import with_times

COLUMNS: Final = (
    "connection", "exchange", "client_id", "software_name", "software_version", "api", "api_version", "server_ip",
    "server_port", "outcome", "reason", "error", "latency_ns", "rtt_ns", "queue_ns", "service_ns", "long_poll_ns",
    "throttle_ns", "muted_ns", "request_first_ns", "response_first_ns", "request_bytes", "response_bytes", "topics",
    "topic_ids", "codecs", "acks", "records_bytes", "record_count", "batch_count", "max_wait_ms", "min_bytes", "max_bytes",
    "isolation_level",
)  # fmt: skip
"""Columns of exchanges that a comparison needs."""
SCOPES: Final = {
    "client": ("client_id", "api"), "broker": ("server_ip", "server_port", "api"), "topic": ("topic", "api"), "api": ("api",),
}  # fmt: skip
"""Kind of class -> the columns that its exchanges have in common."""
SLICES: Final = 10
"""Number of equal slices of a capture's time, between which values may drift."""
STEP: Final = math.log(1.02)
"""Width of classes of values: 2 %. Ranks hardly depend on it, and a class of exchanges has some hundred of them."""
PARTS: Final = ("rtt_ns", "queue_ns", "service_ns", "throttle_ns", "muted_ns")
"""Possible parts of a time; long polls are subtracted from the service time."""
SETTINGS: Final = {
    "acks": "Produce", "max_wait_ms": "Fetch", "min_bytes": "Fetch", "max_bytes": "Fetch", "isolation_level": "Fetch",
}  # fmt: skip
"""Column of a client's setting -> the API whose requests have it."""
SET: Final = ("client_id", "api", "api_version", "software_name", "software_version", "codecs", *SETTINGS)
"""Columns of clients' settings, their software and their versions."""
MEASURED: Final = (
    "client_id", "server_ip", "server_port", "api", "topics", "topic_ids", "outcome", "reason", "error", "timed_ns",
    "broker_ns", "rtt_ns", "queue_ns", "throttle_ns", "muted_ns", "request_bytes", "response_bytes", "slice_",
)  # fmt: skip
"""Columns that the figures of a class are computed from; engines plan narrow tables faster."""
KEPT: Final = tuple(dict.fromkeys((*MEASURED, *SET, "records_bytes", "batch_count")))
"""Columns that all summaries are computed from."""
BY_VALUE: Final = itemgetter("slice_", "step")
"""Sort key for the rows of a class: engines return groups in an order that differs between runs."""
Name = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """Summaries of a capture."""

    captures: list[str]
    span_ns: int
    classes: dict[tuple[str, Name], Row]
    """Scope and class -> count, answered, failed, unanswered, cut_short (unanswered on closed connections), bytes, percentiles,
    `slices` (exchanges in each)."""
    times: dict[tuple[str, Name], Rows]
    """Scope and class -> rows of slice, step (class of value) and n: times of answered exchanges."""
    sizes: dict[Name, Rows]
    """Client -> rows of the same form: bytes of the batches that it wrote."""
    errors: dict[tuple[Any, Any, str], Row]
    """Client, API, error -> n, and the topic if there is only one."""
    settings: dict[tuple[str, Any, Any], dict[str, int]]
    """Setting, client, API (null if the setting has only one) -> value -> number of exchanges."""
    topics: dict[str, str | None] = field(default_factory=dict)
    """Topic id (KIP-516) -> name; None if the capture has no name for the id."""


def steps_of(values: Any) -> Any:
    """The class of a value, null for null; values below 1 have a class of their own."""
    import ibis

    logarithm = ibis.ifelse(values >= 1, values, 1).cast("float64").ln() / STEP
    return ibis.cases((values >= 1, logarithm.floor().cast("int64")), (values.notnull(), -1))


def grouping_of(scope: str) -> Grouping:
    """The grouping into a scope's classes."""
    return Grouping([key_of(name) for name in SCOPES[scope]])


def scoped(rows: Any, scope: str) -> tuple[Any, list[str]]:
    """The rows with the columns of a scope's classes; a row is repeated for each of its topics."""
    grouping = grouping_of(scope)
    if scope == "topic":
        rows = rows.filter(rows.api.isin(["Produce", "Fetch"]))
    rows = grouping.rows(rows.select(*MEASURED))
    return rows.filter(rows.by_api.notnull()), grouping.by


def settings_of(rows: Rows) -> dict[tuple[str, Any, Any], dict[str, int]]:
    """Setting, client, API (null if the setting has only one) -> value -> number of exchanges, from counts by `SET`."""
    out: dict[tuple[str, Any, Any], dict[str, int]] = {}

    def counted(name: str, row: Row, value: object, api: str | None = None) -> None:
        values = out.setdefault((name, row["client_id"], api), {})
        values[str(value)] = values.get(str(value), 0) + row["n"]

    for row in rows:
        for name, api in SETTINGS.items():
            if row["api"] == api and row[name] is not None:
                counted(name, row, row[name])
        for codec in (row["codecs"] or ()) if row["api"] == "Produce" else ():
            counted("codec", row, codec)
        if row["software_name"] is not None:
            counted("client-software", row, f"{row['software_name']} {row['software_version'] or ''}".strip())
        if row["api"] is not None and row["api_version"] is not None:
            counted("versions", row, row["api_version"], row["api"])
    return {key: dict(sorted(values.items())) for key, values in out.items()}


def timed_of(exchanges: Any) -> Any:
    """The exchanges with their times: `at_ns` since the epoch, `broker_ns` without long polls."""
    timed = with_times(exchanges.select(*COLUMNS), ReportRequest())
    return timed.mutate(at_ns=time_of(timed), broker_ns=timed.service_ns - timed.long_poll_ns.fill_null(0))


def span_of(exchanges: Any) -> Any:
    """The expression of the first and last time of a capture."""
    timed = timed_of(exchanges)
    return timed.aggregate(first=timed.at_ns.min(), last=timed.at_ns.max())


def bounds(span: Row) -> tuple[int, int]:
    """First time and length of a capture in nanoseconds; the length is at least 1."""
    first = span["first"] or 0
    return first, (span["last"] or 0) - first + 1


def sliced(exchanges: Any, first: int, length: int) -> Any:
    """The input of `expressions` for a capture that begins at `first` and lasts `length` nanoseconds."""
    timed = timed_of(exchanges)
    part = ((timed.at_ns - first).cast("float64") * SLICES / length).floor().cast("int64")
    return timed.filter(timed.at_ns.notnull()).mutate(slice_=part.clip(0, SLICES - 1)).select(*KEPT)


def expressions(timed: Any) -> dict[str, Any]:
    """The expression of each summary, over exchanges that `sliced` prepared."""
    made: dict[str, Any] = {}
    for scope in SCOPES:
        rows, by = scoped(timed, scope)
        made[f"{scope} figures"] = rows.group_by(by).aggregate(**figures(rows))
        stepped = rows.mutate(step=steps_of(rows.timed_ns))
        made[f"{scope} times"] = stepped.group_by([*by, "slice_", "step"]).aggregate(n=stepped.count())
    written = timed.filter(timed.api == "Produce", timed.batch_count > 0, timed.records_bytes.notnull())
    written = written.mutate(step=steps_of(written.records_bytes / written.batch_count))
    made["sizes"] = written.group_by(["client_id", "slice_", "step"]).aggregate(n=written.count())
    made["settings"] = timed.group_by(*SET).aggregate(n=timed.count())
    return made | {"errors": errors_of(timed), "topics": topics_of(timed)}


def summarized(run: Callable[[Any], Rows], exchanges: Any, captures: list[str]) -> Side:
    """The summaries of a table of exchanges; `run` returns the rows of an expression."""
    (span,) = run(span_of(exchanges))
    first, length = bounds(span)
    made = expressions(sliced(exchanges, first, length))
    return summaries({name: run(one) for name, one in made.items()}, captures, length)


def summaries(results: dict[str, Rows], captures: list[str], length: int) -> Side:
    """The summaries from the rows of `expressions`, which may be in any order."""
    classes: dict[tuple[str, Name], Row] = {}
    times: dict[tuple[str, Name], Rows] = {}
    for scope in SCOPES:
        by = grouping_of(scope).by
        for row in results[f"{scope} figures"]:
            p50, p95, p99 = row.pop("percentiles") or (None, None, None)
            s50, s95, s99 = row.pop("service_percentiles") or (None, None, None)
            row |= {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "service_p50_ns": s50, "service_p95_ns": s95,
                "service_p99_ns": s99}  # fmt: skip
            classes[scope, tuple(row.pop(name) for name in by)] = row | {"slices": [0] * SLICES}
        for row in results[f"{scope} times"]:
            classes[scope, group_of(row, by)]["slices"][row["slice_"]] += row["n"]
        for row in sorted((row for row in results[f"{scope} times"] if row["step"] is not None), key=BY_VALUE):
            times.setdefault((scope, tuple(row.pop(name) for name in by)), []).append(row)
    sizes: dict[Name, Rows] = {}
    for row in sorted(results["sizes"], key=BY_VALUE):
        sizes.setdefault((row.pop("client_id"),), []).append(row)
    errors = errors_by_class(results["errors"])
    topics = {row["id"]: row["name"] for row in results["topics"]}
    return Side(captures, length, classes, times, sizes, errors, settings_of(results["settings"]), topics)


def topics_of(timed: Any) -> Any:
    """The expression of the ids of topics that are written and read, with the name of each, or null if it is not known."""
    rows = timed.filter(timed.api.isin(["Produce", "Fetch"])).select("topics", "topic_ids")
    pairs = rows.mutate(pair_=rows.topics.zip(rows.topic_ids).unnest())
    pairs = pairs.select(name=pairs.pair_.f1, id=pairs.pair_.f2)
    return pairs.filter(pairs.id.notnull()).group_by("id").aggregate(name=pairs.name.max())


def named_alike(before: Side, after: Side) -> tuple[Side, Side]:
    """Both captures with the topic names that either of them has.

    Produce and Fetch have ids instead of names from version 13 on (KIP-516). A capture knows the name of an id if it has a
    Metadata response with both; an id refers to the same topic in all captures. The class of an id remains if its capture also
    has a class of the name, since percentiles of two classes cannot be added.
    """
    known = {id_: name for side in (before, after) for id_, name in side.topics.items() if name is not None}

    def renamed(side: Side, table: dict[tuple[str, Name], Any]) -> dict[tuple[str, Name], Any]:
        out: dict[tuple[str, Name], Any] = {}
        for (scope, who), value in table.items():
            name = known.get(who[0]) if scope == "topic" and side.topics.get(who[0], "") is None else None
            key = (scope, (name, *who[1:]))
            out[(scope, who) if name is None or key in table else key] = value
        return out

    def made(side: Side) -> Side:
        topics = {id_: known.get(id_) for id_ in side.topics}
        return replace(side, classes=renamed(side, side.classes), times=renamed(side, side.times), topics=topics)

    return made(before), made(after)


def figures(rows: Any) -> dict[str, Any]:
    """The figures of a class in the report."""
    return {
        "count": total(rows.api.notnull()),
        "answered": total(rows.timed_ns.notnull()),
        "unanswered": total(rows.outcome == "unanswered"),
        "cut_short": total((rows.outcome == "unanswered") & rows.reason.isin(["fin", "rst"]).fill_null(False)),
        "failed": total((rows.error != "NONE").fill_null(False)),
        "request_bytes": rows.request_bytes.sum().fill_null(0).cast("int64"),
        "response_bytes": rows.response_bytes.sum().fill_null(0).cast("int64"),
        "percentiles": rows.timed_ns.quantile([0.5, 0.95, 0.99]),
        "service_percentiles": rows.broker_ns.quantile([0.5, 0.95, 0.99]),
        **{f"mean_{name}": (rows.broker_ns if name == "service_ns" else rows[name]).mean() for name in PARTS},
    }


def errors_of(timed: Any) -> Any:
    """The expression of errors by client, API and name."""
    wrong = timed.filter(timed.error.notnull(), timed.error != "NONE")
    wrong = wrong.mutate(topic=wrong.topics[0])
    return wrong.group_by("client_id", "api", "error").aggregate(
        n=wrong.count(), topic=wrong.topic.min(), topics=wrong.topic.nunique(), most=wrong.topics.length().max()
    )


def errors_by_class(rows: Rows) -> dict[tuple[Any, Any, str], Row]:
    """Errors by client, API and name; with the topic if all exchanges of one concern the same single topic."""
    return {
        (row["client_id"], row["api"], row["error"]): {
            "n": row["n"],
            "topic": row["topic"] if row["topics"] == 1 and row["most"] == 1 else None,
        }
        for row in rows
    }
