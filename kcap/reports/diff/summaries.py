"""One side of a comparison: a capture's exchanges as small summaries by class.

In: the exchanges of a capture as an Ibis table and an engine. Out: `Side`, whose size depends on the number of classes, not of
exchanges. Law: each summary is one expression that any engine runs. A class is an API of a client, of a broker or of a topic,
or an API as a whole. A time is `latency_ns - long_poll_ns`, as in the report `latency`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kcap.reports.definition import ReportRequest, Row, Rows, grouped, key_of, names_by, time_of, total
from kcap.reports.latency import with_times

COLUMNS: Final = (
    "connection", "exchange", "client_id", "software_name", "software_version", "api", "api_version", "server_ip",
    "server_port", "outcome", "error", "latency_ns", "rtt_ns", "queue_ns", "service_ns", "long_poll_ns", "throttle_ns",
    "muted_ns", "request_first_ns", "response_first_ns", "request_bytes", "response_bytes", "topics", "topic_ids", "codecs",
    "acks", "records_bytes", "record_count", "batch_count", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level",
)  # fmt: skip
"""Columns of exchanges that a comparison takes."""
SCOPES: Final = {
    "client": ("client_id", "api"), "broker": ("server_ip", "server_port", "api"), "topic": ("topic", "api"), "api": ("api",),
}  # fmt: skip
"""Kind of class -> what its exchanges have in common."""
SLICES: Final = 10
"""Equal parts of a capture's time between which values may drift."""
STEP: Final = math.log(1.02)
"""Classes of values are 2 % wide: ranks hardly feel it, and a class of exchanges has some hundred of them."""
PARTS: Final = ("rtt_ns", "queue_ns", "service_ns", "throttle_ns", "muted_ns")
"""What a time may consist of; service has long polls subtracted."""
SETTINGS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "codec": ("Produce", lambda rows: rows.codecs.unnest()),
    "acks": ("Produce", lambda rows: rows.acks.cast("string")),
    "max_wait_ms": ("Fetch", lambda rows: rows.max_wait_ms.cast("string")),
    "min_bytes": ("Fetch", lambda rows: rows.min_bytes.cast("string")),
    "max_bytes": ("Fetch", lambda rows: rows.max_bytes.cast("string")),
    "isolation_level": ("Fetch", lambda rows: rows.isolation_level.cast("string")),
}
"""Setting of a client -> the API whose requests have it, its value as text."""

MEASURED: Final = (
    *("client_id", "server_ip", "server_port", "api", "topics", "topic_ids", "outcome", "error", "timed_ns", "broker_ns"),
    *("rtt_ns", "queue_ns", "throttle_ns", "muted_ns", "request_bytes", "response_bytes", "slice_"),
)
"""Columns that figures of a class are made of; engines plan narrow tables faster."""

Name = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """Summaries of a capture."""

    captures: list[str]
    span_ns: int
    classes: dict[tuple[str, Name], Row]
    """Scope and class -> count, answered, failed, unanswered, bytes, percentiles, `slices` (exchanges in each)."""
    times: dict[tuple[str, Name], Rows]
    """Scope and class -> slice, step (class of value), n: times of answered exchanges."""
    sizes: dict[Name, Rows]
    """Client -> the same of the bytes of a batch that it wrote."""
    errors: dict[tuple[Any, Any, str], Row]
    """Client, API, error -> n, topic where there is one alone."""
    settings: dict[tuple[str, Any, Any], dict[str, int]]
    """Setting, client, API (null where it has but one) -> value -> exchanges."""


def steps_of(values: Any) -> Any:
    """The class of a value; values below 1 have one of their own."""
    import ibis

    logarithm = ibis.ifelse(values >= 1, values, 1).cast("float64").ln() / STEP
    return ibis.ifelse(values >= 1, logarithm.floor().cast("int64"), -1)


def scoped(rows: Any, scope: str) -> tuple[Any, list[str]]:
    """The rows with the columns of a scope's classes; a row is repeated for each of its topics."""
    keys = [key_of(name) for name in SCOPES[scope]]
    if scope == "topic":
        rows = rows.filter(rows.api.isin(["Produce", "Fetch"]))
    rows = grouped(rows.select(*MEASURED), keys)
    return rows.filter(rows.by_api.notnull()), names_by(keys)


def settings_of(rows: Any) -> dict[str, Any]:
    """Expressions of what clients have set, and of the software and the versions that they use."""
    made = {
        name: rows.filter(rows.api == api).select("client_id", value=value(rows.filter(rows.api == api)))
        for name, (api, value) in SETTINGS.items()
    }
    software = rows.filter(rows.software_name.notnull())
    made["client-software"] = software.select(
        "client_id", value=software.software_name + " " + software.software_version.fill_null("")
    )
    counted = {
        name: table.filter(table.value.notnull()).group_by("client_id", "value").aggregate(n=lambda some: some.count())
        for name, table in made.items()
    }
    versions = rows.filter(rows.api.notnull(), rows.api_version.notnull())
    versions = versions.mutate(value=versions.api_version.cast("string"))
    return counted | {"versions": versions.group_by("client_id", "api", "value").aggregate(n=versions.count())}


def summarized(run: Callable[[Any], Rows], exchanges: Any, captures: list[str]) -> Side:
    """The summaries of a table of exchanges; `run` gives the rows of an expression."""
    timed = with_times(exchanges.select(*COLUMNS), ReportRequest())
    timed = timed.mutate(at_ns=time_of(timed), broker_ns=timed.service_ns - timed.long_poll_ns.fill_null(0))
    (span,) = run(timed.aggregate(first=timed.at_ns.min(), last=timed.at_ns.max()))
    first, length = span["first"] or 0, (span["last"] or 0) - (span["first"] or 0) + 1
    part = ((timed.at_ns - first).cast("float64") * SLICES / length).floor().cast("int64")
    timed = timed.filter(timed.at_ns.notnull()).mutate(slice_=part.clip(0, SLICES - 1))
    classes: dict[tuple[str, Name], Row] = {}
    times: dict[tuple[str, Name], Rows] = {}
    for scope in SCOPES:
        rows, by = scoped(timed, scope)
        for row in run(rows.group_by(by).aggregate(**figures(rows))):
            p50, p95, p99 = row.pop("percentiles") or (None, None, None)
            s50, s95, s99 = row.pop("service_percentiles") or (None, None, None)
            row |= {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "service_p50_ns": s50, "service_p95_ns": s95,
                "service_p99_ns": s99}  # fmt: skip
            classes[scope, tuple(row.pop(name) for name in by)] = row | {"slices": [0] * SLICES}
        for row in run(rows.group_by([*by, "slice_"]).aggregate(n=rows.count())):
            classes[scope, tuple(row[name] for name in by)]["slices"][row["slice_"]] = row["n"]
        answered = rows.filter(rows.timed_ns.notnull()).mutate(step=lambda some: steps_of(some.timed_ns))
        for row in run(answered.group_by([*by, "slice_", "step"]).aggregate(n=answered.count())):
            times.setdefault((scope, tuple(row.pop(name) for name in by)), []).append(row)
    sizes: dict[Name, Rows] = {}
    written = timed.filter(timed.api == "Produce", timed.batch_count > 0)
    written = written.mutate(step=steps_of(written.records_bytes / written.batch_count))
    for row in run(written.group_by(["client_id", "slice_", "step"]).aggregate(n=written.count())):
        sizes.setdefault((row.pop("client_id"),), []).append(row)
    settings: dict[tuple[str, Any, Any], dict[str, int]] = {}
    for name, expression in settings_of(timed).items():
        for row in run(expression):
            settings.setdefault((name, row["client_id"], row.get("api")), {})[row["value"].strip()] = row["n"]
    return Side(captures, length, classes, times, sizes, errors_of(run, timed), settings)


def figures(rows: Any) -> dict[str, Any]:
    """What is said of a class."""
    return {
        "count": total(rows.api.notnull()),
        "answered": total(rows.timed_ns.notnull()),
        "unanswered": total(rows.outcome == "unanswered"),
        "failed": total((rows.error != "NONE").fill_null(False)),
        "request_bytes": rows.request_bytes.sum().fill_null(0).cast("int64"),
        "response_bytes": rows.response_bytes.sum().fill_null(0).cast("int64"),
        "percentiles": rows.timed_ns.quantile([0.5, 0.95, 0.99]),
        "service_percentiles": rows.broker_ns.quantile([0.5, 0.95, 0.99]),
        **{f"mean_{name}": (rows.broker_ns if name == "service_ns" else rows[name]).mean() for name in PARTS},
    }


def errors_of(run: Callable[[Any], Rows], timed: Any) -> dict[tuple[Any, Any, str], Row]:
    """Errors by client, API and name; the topic where all exchanges of one have the same alone."""
    wrong = timed.filter(timed.error.notnull(), timed.error != "NONE")
    wrong = wrong.mutate(topic=wrong.topics[0])
    rows = run(
        wrong.group_by("client_id", "api", "error").aggregate(
            n=wrong.count(), topic=wrong.topic.min(), topics=wrong.topic.nunique(), most=wrong.topics.length().max()
        )
    )
    return {
        (row["client_id"], row["api"], row["error"]): {
            "n": row["n"],
            "topic": row["topic"] if row["topics"] == 1 and row["most"] == 1 else None,
        }
        for row in rows
    }
