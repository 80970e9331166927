"""The parts of every report: the tables that it reads, its parameters, and the columns that it groups by.

In: Ibis tables of any engine, and names as a user types them. Out: tables with the columns of the grouping beside their own.
Law: a row is counted once in each group that it belongs to; rows that belong to none are counted with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any, Final

from kcap.columns import EXCHANGES
from kcap.errors import UsageError, did_you_mean
from kcap.reports.text import instant, words

Row = dict[str, Any]
Rows = list[Row]
KEY: Final = ("connection", "exchange")
DECLARED: Final = {column.name: column for column in EXCHANGES}
ALIASES: Final = {
    "version": "api_version", "client": "client_id", "broker": "server_ip", "user": "principal", "group": "group_id",
    "software": "software_name", "verdict": "version_verdict",
}  # fmt: skip
"""Short names of columns."""
LISTS: Final = {"topic": "topics", "codec": "codecs", "magic": "magics", "flag": "flags"}
"""Names of one entry of a list."""
PARTITIONED: Final = frozenset({"topic", "partition"})
"""Names to group by that come from partitions, if a report reads these."""
UNITS: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}
TIMES: Final = ("request_first_ns", "response_first_ns")
"""A row's time is the first of these that was captured."""
PARTS: Final = (
    "rtt_ns",
    "queue_ns",
    "service_ns",
    "long_poll_ns",
    "throttle_ns",
    "muted_ns",
    "request_transfer_ns",
    "transfer_ns",
)
"""The parts of a latency, and the transfers beside it."""
WAITS: Final = ("long_poll_ns", "throttle_ns", "muted_ns")
"""Parts of the service time in which the broker waits. The rest is the broker's own time."""
AFTER_APPEND: Final = ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
"""Errors of a Produce after which the records may be in the log nevertheless: the broker waited for replicas."""
RAFT: Final = "raft-client-"
"""Prefix of the client ids with which brokers and controllers read the cluster's metadata log (KafkaRaftManager)."""
OWN_CLIENTS: Final = ("ReplicaFetcherThread-", RAFT, "AddPartitionsManager-client-", "Persister-client-")
"""Prefixes of the client ids of brokers and controllers: those that copy logs from their leaders (ReplicaFetcherBlockingSend,
KafkaRaftManager), that verify whether a transaction is open (AddPartitionsToTxnManager, KIP-890), and that store the state of
share groups (PersisterStateManager, KIP-932)."""
BROKER: Final = "broker-"
BROKER_THREADS: Final = ("-fetcher-", "-txn-marker-sender")
"""Prefix of other client ids since 0.11, and what may follow it: threads that copy logs and threads that end transactions.

Queries over saved tables test these for each row, in a third of the time of the longer regular expression that `versions` tests
for each client (`kcap.reports.versions.libraries.BROKER_IDS`).
"""
REPLICAS: Final = OWN_CLIENTS[:2], BROKER_THREADS[:1]
"""Those of both that copy logs."""
WRITE_TXN_MARKERS: Final = "WriteTxnMarkers"
REQUESTS_OF_BROKERS: Final = (
    "LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown", WRITE_TXN_MARKERS, "AlterPartition", "Vote",
    "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds",
    "Envelope", "ControllerRegistration", "AssignReplicasToDirs", "UpdateRaftVoter", "InitializeShareGroupState",
    "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary",
)  # fmt: skip
"""APIs that brokers and controllers call. WriteTxnMarkers is the only one that administrators use as well (KIP-664)."""
NODE: Final = ("client_id", "client_ip")
"""Columns that identify a broker or controller that calls others."""
CALLED: Final = ("server_ip", "server_port")
"""Columns that identify the server that is called."""
EDGES_NS: Final = tuple(digit * 10**power for power in range(3, 11) for digit in (1, 3))
"""Lower bounds of the histogram's classes, 1 us to 30 s. Class 0 is below the first bound."""


LARGEST: Final = (1 << 63) - 1
FAR: Final = float(1 << 62)
"""Sums beyond this are not exact to the last unit; an engine would raise an error instead."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The parameters of a report."""

    by: tuple[str, ...] = ()
    """Names to group by, as typed; if empty, those of the report."""
    top: int | None = None
    """Number of rows to show; None for all."""
    long_polls: bool = False
    """Whether exchanges that waited for data count as others do."""
    listed: int = 0
    """Number of exchanges to list for each group (`kcap.reports.listing`)."""
    busiest: int | None = None
    """Number of groups to compute, those with most time or requests, in reports that observe it: it bounds memory."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables a report reads, as Ibis tables."""

    every: Any
    """Every exchange, for what a client did before and after."""
    selected: Any
    """Exchanges that the filter selects."""
    partitions: Any = None
    """Partitions of the selected exchanges; None if they were not read."""
    leading: Any = None
    """Partitions of every exchange, which show their leaders; None if no filter applies."""
    summed: Any = None
    """The rows of `Report.summed`; None if the engine has no table of them."""

    @classmethod
    def under(cls, every: Any, selected: Any, partitions: Any) -> "Tables":
        """The tables of all exchanges; `selected` is restricted by the filter, and is `every` if there is none."""
        if partitions is None or selected is every:
            return cls(every, selected, partitions)
        return cls(every, selected, partitions.semi_join(selected.select(*KEY), list(KEY)), partitions)


Expressions = dict[str, Any]
Results = Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class Report:
    """A report: expressions that any engine runs, and plain Python over their few result rows."""

    name: str
    by: tuple[str, ...]
    """The default grouping."""
    columns: tuple[str, ...]
    """Columns of exchanges that it needs."""
    build: Callable[[Tables, ReportRequest], Expressions]
    finish: Callable[[Results, ReportRequest], Row]
    """Returns the keys that the result has beside `report` and `captures`: all rows in order, `left_out` with all reasons, also
    those with a count of zero, and the report's own keys."""
    partitions: tuple[str, ...] = ()
    """Columns of partitions that it uses if they are available."""
    joined: bool = False
    """Whether it reads partitions joined with the columns of their exchanges."""
    groups: bool = True
    """Whether `--by` is allowed."""
    begins: bool = False
    """Whether it begins with the capture's health and the findings of `check`, if it reads a whole capture."""
    own: frozenset[str] = field(default_factory=frozenset)
    """Names to group by that are not columns of exchanges; they need partitions."""
    summed: Callable[[Tables, ReportRequest], Any] | None = None
    """Rows that several of its expressions start from. An engine that has them as a table computes them once."""
    sides: bool = False
    """Whether it counts load, so that it must report when a capture has both sides of a proxy."""
    counted: Callable[[Tables, ReportRequest], Any] | None = None
    """The rows that its groups count if these are not all selected exchanges, with the columns of `Grouping.rows`."""


def report_of(name: str) -> Report:
    """The report that a module of `kcap.reports` defines. Raises ModuleNotFoundError."""
    found: Report = import_module(f"kcap.reports.{name}").REPORT
    return found


@dataclass(frozen=True, slots=True)
class Key:
    """One key to group by."""

    name: str
    """Its key in the result."""
    column: str
    step_ns: int = 0
    """Width of a time bucket."""
    entry: bool = False
    """Whether the column is a list whose entries are the keys."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of exchanges that it needs."""
        if self.step_ns:
            return TIMES
        return ("topics", "topic_ids") if self.column == "topics" else (self.column,)


def group_name(row: Row, keys: Sequence[Key]) -> str:
    """The values of a row in the columns of the grouping. A client may have the empty id."""
    return ", ".join(words(row[key.name]) or '""' for key in keys)


def key_of(name: str, own: frozenset[str] = frozenset()) -> Key:
    """The key of a name to group by. Raises UsageError for an unknown name."""
    if name in own:
        return Key(name, name)
    if name.partition(":")[0] == "time" and name != "time":
        return Key("time", "time", step_of(name))
    if name in LISTS:
        return Key(name, LISTS[name], entry=True)
    column = ALIASES.get(name, name)
    declared = DECLARED.get(column)
    if declared is None:
        known = [*DECLARED, *ALIASES, *LISTS, *own]
        advice = did_you_mean(name, known) or "; kcap schema --columns exchanges lists them"
        raise UsageError(f"--by {name!r} is no column of exchanges{advice}")
    return Key(column, column, entry=declared.type.startswith("list<"))


def step_of(name: str) -> int:
    """The step of `time:10s`, in nanoseconds. Raises UsageError."""
    text = name.partition(":")[2]
    number = text.rstrip("usmh")
    if not number.isdecimal() or not int(number) or text[len(number) :] not in UNITS:
        raise UsageError(f"--by {name!r} is not understood; a time bucket is written time:10s (us, ms, s, m, h)")
    return int(number) * UNITS[text[len(number) :]]


def keys_of(report: Report, request: ReportRequest) -> list[Key]:
    """The keys of a grouping. Raises UsageError for names that are unknown or repeated."""
    keys = [key_of(name, report.own) for name in request.by or report.by]
    names = [key.name for key in keys]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--by names {twice!r} twice")
    return keys


def time_of(rows: Any) -> Any:
    """The time of each row, in nanoseconds."""
    return rows[TIMES[0]].fill_null(rows[TIMES[1]])


def topic_of(rows: Any) -> Any:
    """The topic of each row of partitions: its name, or its id if the name is not known."""
    return rows.topic.fill_null(rows.topic_id)


def of_brokers(rows: Any, begins: Sequence[str] = OWN_CLIENTS, threads: Sequence[str] = BROKER_THREADS) -> Any:
    """Which rows have a client id that brokers and controllers use among each other, or a list with such an id."""
    name = rows.client_id.fill_null("")
    own = name.startswith(BROKER) & reduce(or_, map(name.contains, threads))
    return reduce(or_, map(name.startswith, begins), own)


def calls_node(rows: Any) -> Any:
    """Which exchanges are of APIs that only brokers and controllers call, so that `CALLED` is one of them."""
    return rows.api.isin([api for api in REQUESTS_OF_BROKERS if api != WRITE_TXN_MARKERS]).fill_null(False)


def shows_node(rows: Any) -> Any:
    """Which exchanges show that their `NODE` is a broker or controller: such an API succeeds under a client id that is a
    number.

    Connections of a node to the controllers have its id as client id (NodeToControllerChannelManager). They also carry APIs of
    clients, such as ApiVersions and CreateTopics (DefaultAutoTopicCreationManager).
    """
    return (calls_node(rows) & (rows.error == "NONE") & rows.client_id.re_search("^[0-9]+$")).fill_null(False)


def of_replicas(rows: Any) -> Any:
    """Which rows have a client id of the threads that copy logs from their leaders."""
    return of_brokers(rows, *REPLICAS)


def is_broker(name: str | None, begins: Sequence[str] = OWN_CLIENTS, threads: Sequence[str] = BROKER_THREADS) -> bool:
    """`of_brokers` for one client id."""
    return name is not None and (
        name.startswith(tuple(begins)) or (name.startswith(BROKER) and any(thread in name for thread in threads))
    )


def is_replica(name: str | None) -> bool:
    """`of_replicas` for one client id."""
    return is_broker(name, *REPLICAS)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys by which rows are grouped."""

    keys: Sequence[Key]

    @classmethod
    def of(cls, report: Report, request: ReportRequest) -> "Grouping":
        """The grouping of a request. Raises UsageError as `keys_of` does."""
        return cls(keys_of(report, request))

    @property
    def by(self) -> list[str]:
        """The columns that `rows` adds."""
        return [f"by_{key.name}" for key in self.keys]

    def rows(self, rows: Any) -> Any:
        """The rows with `by_NAME` for each key. A row is repeated for each entry of a list, omitted if it is empty."""
        for key in self.keys:
            if key.step_ns:
                at = time_of(rows)
                rows = rows.mutate(**{f"by_{key.name}": at - at % key.step_ns})
            elif key.column == "topics":
                # The request may name what the response has by its id: an exchange counts once for each topic.
                names = rows.topics.zip(rows.topic_ids).map(lambda pair: pair.f1.fill_null(pair.f2))
                rows = rows.mutate(**{f"by_{key.name}": names.unique().unnest()})
            elif key.entry:
                rows = rows.mutate(**{f"by_{key.name}": rows[key.column].unnest()})
            else:
                rows = rows.mutate(**{f"by_{key.name}": rows[key.column]})
        return rows

    def without(self, rows: Any) -> dict[str, Any]:
        """Reason -> number of rows in no group, for each key that is an entry of a list."""
        return {f"no_{key.name}": (rows[key.column].length().fill_null(0) == 0).sum() for key in self.keys if key.entry}

    def named(self, row: Row) -> Row:
        """A row of the result with its group first, by the names of the keys; times become text."""
        rest, out = dict(row), Row()
        for key in self.keys:
            value = rest.pop(f"by_{key.name}")
            out[key.name] = instant(value, key.step_ns) if key.step_ns and value is not None else plain(value)
        return out | rest

    def in_order(self, rows: list[Row], cost: Callable[[Row], Any]) -> list[Row]:
        """Named rows, those with the least cost first and ties by name; in order of time if there are time buckets."""
        timed = any(key.step_ns for key in self.keys)
        rows.sort(key=lambda row: [sort_value(row[key.name]) for key in self.keys])
        rows.sort(key=lambda row: sort_value(row["time"]) if timed else cost(row))
        return rows


def of_busiest(rows: Any, measured: Any, by: list[str], measure: Any, most: int) -> Any:
    """The rows of the groups with the largest sums of a measure, in that order; ties are ordered by name.

    `measured`: the rows on which `measure`, an expression, is evaluated: the same rows with fewer columns, for engines where
    others are costly.
    """
    import ibis

    found = measured.group_by(by).aggregate(measure=measure).order_by([ibis.desc("measure"), *by]).limit(most)
    return rows.semi_join(found, [rows[name].identical_to(found[name]) for name in by])


def group_of(row: Row, by: Sequence[str]) -> tuple[Any, ...]:
    """The group of a row: its values in some columns."""
    return tuple(row[name] for name in by)


def total(condition: Any) -> Any:
    """The number of rows for which a condition holds; 0 for no rows."""
    return summed(condition)


def summed(column: Any, where: Any = None) -> Any:
    """The sum of a column of counts or sizes, which have 32 bits on the wire; 0 for no rows."""
    return column.cast("int64").sum(where=where).fill_null(0).cast("int64")


def added(column: Any) -> Any:
    """The sum of a column of times in ns; 0 for no rows. A sum beyond 64 bits becomes the largest or smallest 64-bit value."""
    import ibis

    exact, rough = column.sum(), column.cast("float64").sum()
    held = ibis.ifelse(rough >= FAR, LARGEST, ibis.ifelse(rough <= -FAR, -LARGEST, exact))
    return held.fill_null(0).cast("int64")


def first_of(rows: Any, by: Sequence[str], value: Any) -> Any:
    """One exchange per group, the one with the smallest value. Ties go to the first by key on every engine."""
    import ibis

    order = ibis.window(group_by=list(by), order_by=[value.asc(nulls_first=False), *KEY])
    ranked = rows.mutate(place_=ibis.row_number().over(order))
    return ranked.filter(ranked.place_ == 0).select(*by, *KEY)


def slowest(rows: Any, value: Any) -> Any:
    """The key of the exchange with the largest value in each aggregated group; null without a value. Ties are resolved as in
    `first_of`, without sorting."""
    import ibis

    return ibis.struct({"value": -value, **{name: rows[name] for name in KEY}}).min(where=value.notnull())


def histogram(rows: Any, by: Sequence[str], value: str) -> Any:
    """How many values of each group are in each class; `classes` makes lists of these."""
    import ibis

    column = rows[value]
    found = ibis.cases(*((column < edge, at) for at, edge in enumerate(EDGES_NS)), else_=len(EDGES_NS))
    counted = rows.filter(column.notnull()).select(*by, class_=found.cast("int64"))
    return counted.group_by(*by, "class_").aggregate(values=counted.count())


def classes(rows: Rows, by: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
    """Rows of `histogram`: group -> values by class."""
    out: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        out.setdefault(group_of(row, by), empty())[row["class_"]] += row["values"]
    return out


def counts_of(rows: Sequence[Row]) -> list[int]:
    """The histogram of all rows of a report."""
    return [sum(column) for column in zip(*(row["histogram"] for row in rows))]


def empty() -> list[int]:
    """The histogram of no rows."""
    return [0] * (len(EDGES_NS) + 1)


def nearest_ns(value: float | None) -> int | None:
    """A quantile in whole nanoseconds; halves are rounded up."""
    return None if value is None else int(value // 1) + (value % 1 >= 0.5)


def plain(value: Any) -> Any:
    """The value as a type that JSON has."""
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def sort_value(value: Any) -> tuple[bool, Any]:
    """Sort key for the name of a group; nulls come last."""
    return value is None, value if value is not None else 0


def uid(connection: str, exchange: int) -> str:
    """`UID.N`, which names an exchange."""
    return f"{connection}.{exchange}"


def uids(rows: Any) -> Any:
    """`uid` of the exchange of each row, as a column."""
    return rows.connection.concat(".").concat(rows.exchange.cast("string"))


def without_zeros(counts: Mapping[str, Any]) -> dict[str, int]:
    """The reasons with a count above zero."""
    return {name: int(count) for name, count in counts.items() if count}


LOCALHOST = "localhost"
"""The name by which each host refers to itself (RFC 6761 section 6.3)."""


def is_own(ip: Any) -> Any:
    """Whether an address, or each address of a column, is one by which a host refers to itself."""
    return (ip == "::1") | ip.startswith("127.")


def at_localhost(links: Any, brokers: Any) -> Any:
    """Connections to an address of the client's own host, at a port that brokers advertise as `localhost`."""
    return is_own(links.server_ip) & links.server_port.isin(brokers.filter(brokers.host == LOCALHOST).port)


USUAL_LEAST, USUAL = 9000, (90, 99)


def at_usual_port(table: Any) -> Any:
    """Of connections: those to a port that listeners of Kafka usually have, such as 9092 and 19093."""
    return (table.server_port >= USUAL_LEAST) & (table.server_port % 1000).between(*USUAL)
