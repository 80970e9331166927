"""The tables that rules look at, and the small summaries of them that most rules share.

In: tables of Ibis or recorded ones (`kcap.reports.recorded`), and an engine that runs expressions. Out: rows as dictionaries.
Law: a summary has a row for each class of exchanges or connections, whatever the size of the capture; both engines give the
same.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kcap.limits import CLUSTERS_MOST, LINKS_KEPT, MESSAGES_AT_ONCE, RECREATED_MOST
from kcap.reports.definition import (
    AFTER_APPEND,
    REQUESTS_OF_BROKERS,
    at_localhost,
    group_of,
    is_broker,
    of_brokers,
    topic_of,
    uids,
)
from kcap.reports.findings.columns import BESIDE_COLUMNS, PARTITION_COLUMNS, SUMMED
from kcap.reports.findings.inner import CALLS, OF_CLUSTER, numbered_nodes, of_cluster
from kcap.reports.findings.running import Runner
from kcap.reports.recorded import functions

if TYPE_CHECKING:
    from kcap.reports.carried import Carried

Row = dict[str, Any]
Made = TypeVar("Made")
CLASS = (
    "client_id", "software_name", "software_version", "principal", "group_id", "transactional_id", "api", "api_version",
    "server_ip", "server_port", "error", "outcome", "reason",
)  # fmt: skip
"""What exchanges of one class have in common."""
RESPONSES_READ: Final = 8
"""Responses of a server that are read, where the first ones cannot be decoded."""
PLACE: Final = ("topic", "partition")
SERVER: Final = ("server_ip", "server_port")
AWAY: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID")
"""Errors of requests for a topic that is not there, or not any more."""


def cut_short(table: Any) -> Any:
    """Of exchanges: requests without a response on connections that were closed or reset."""
    return (table.outcome == "unanswered") & table.reason.isin(["fin", "rst"])


def in_wrong_version(table: Any) -> Any:
    """Of exchanges: requests in versions that the broker is known not to name."""
    return table.version_verdict.isin(["below_broker_min", "above_broker_max"]).fill_null(False)


def server_of(row: Row) -> str:
    """Address and port of a row's server."""
    return f"{row['server_ip']}:{row['server_port']}"


HEARTBEATS: Final = {
    "ConsumerGroupHeartbeat": "consumer", "ShareGroupHeartbeat": "share", "StreamsGroupHeartbeat": "streams",
}  # fmt: skip
"""API of a protocol in which the broker assigns (KIP-848, KIP-932, KIP-1071) -> its name; member epoch 0 joins, -1 leaves."""
CONNECT: Final = "connect"
"""The protocol type of groups of Kafka Connect's workers."""
SENT: Final = ("request_first_ns", "request_last_ns")
"""Columns of exchanges: when the first and the last byte of the request were sent."""
LASTED: Final = ("first_ns", "last_ns")
"""Columns of connections, and of groups of anything: times of the first and the last packet."""


def rows_by(rows: Iterable[Row], key: str | Sequence[str]) -> dict[Any, list[Row]]:
    """Rows by one of their values, or by several as a tuple."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key] if isinstance(key, str) else group_of(row, key), []).append(row)
    return found


def in_groups(table: Any, names: Sequence[str], times: tuple[str, str] = SENT, **figures: Any) -> Any:
    """Rows of a table in groups by some columns: n, first_ns, last_ns, and other figures; `times`: the columns whose least and
    whose largest value the two times are.
    """
    first, last = times
    return table.group_by(*names).aggregate(n=table.count(), first_ns=table[first].min(), last_ns=table[last].max(), **figures)


LINK: Final = ("client_id", "client_ip", "server_ip", "server_port", "phase", "began", "ended", "tls")
"""What connections of a group have in common."""


def ranked(groups: Any) -> Any:
    """Groups of connections with their turn, the most exchanges first; those without any have turns of their own."""
    groups = groups.mutate(silent=groups.exchanges == 0)
    order = groups.exchanges.desc(), groups.n.desc(), groups.first_ns
    return groups.mutate(turn=functions(groups).row_number().over(group_by="silent", order_by=order))


class Observed:
    """A capture's tables."""

    def __init__(
        self,
        run: Runner,
        exchanges: Any,
        partitions: Any,
        connections: Any,
        brokers: Any,
        message: Callable[[str, int, str], Row | None] | None = None,
        parts: Any = None,
        *,
        marked: bool = False,
    ) -> None:
        """`run` runs expressions; `message` gives the request or response of an exchange as Kafka's JSON (connection, number,
        side), None where its bytes cannot be had; `parts` are the partitions with `BESIDE_COLUMNS`, where they need not
        be joined; `marked`: `exchanges` and `parts` have the column `OF_CLUSTER`."""
        self.runner = run
        self.exchanges = exchanges
        self.every = exchanges
        """All exchanges, also where `exchanges` are those of clients alone."""
        self.every_link = connections
        """All connections, as `every`."""
        self.partitions = partitions
        self.connections = connections
        self.brokers = brokers
        self._message = message
        self._parts = parts
        self._marked = marked
        self.has_messages = message is not None
        """Whether messages can be read, as they can of captures."""
        self._label = ""  # that of what is held of it
        self._made: dict[Callable[[Observed], Any], Any] = {}
        self._calls_of: dict[tuple[str, ...], dict[Any, list[Row]]] = {}
        self._clients_of: dict[tuple[tuple[str, object], ...], list[str]] = {}
        self.courses: Callable[[Sequence[str], tuple[int, int]], list[list[int]]] | None = None
        """Filters and the span of the capture -> counts over time, as in `courses`; None where they are not made."""
        self.crowded = False
        """Whether there may be more groups of connections than are looked at."""
        self.carried: tuple[Carried, ...] = ()
        """Proxies of which the capture has both sides; their connections to the servers behind them are left out."""
        self.selected: frozenset[str] = frozenset()
        """The ids of the rules that look at these tables."""
        self.left_out: dict[str, int] = {}
        """Rows that a bound left out of a report, by what they are."""

    def run(self, expression: Any) -> list[Row]:
        """The rows of an expression. Of times that no packet shows, as of the end of a request that was cut, `first_ns` and
        `last_ns` stand for each other, or the capture's beginning for both."""
        rows = self.runner(expression)
        for row in rows if rows and rows[0].keys() >= {"first_ns", "last_ns"} else ():
            first, last = row["first_ns"], row["last_ns"]
            if first is None or last is None:
                known = first if last is None else last
                row["first_ns"] = row["last_ns"] = self.span[0] if known is None else known
        return rows

    def of_clients(self) -> "Observed":
        """The same without what brokers and controllers send each other: their errors and polls are the cluster's own."""
        table, links = self.exchanges, self.connections
        rows, clients, parts = table, links, self._parts
        nameless = numbered = False
        own = operator.itemgetter(OF_CLUSTER) if self._marked else of_cluster
        calls = [call for call in self.calls if not (call["api"] in REQUESTS_OF_BROKERS or is_broker(call["client_id"]))]
        if len(calls) < len(self.calls):
            rows = table.filter(~own(table))
            parts = None if parts is None else parts.filter(~own(parts))
        nodes = numbered_nodes(self.calls, table)
        if nodes is not None:
            nodes = self.runner.hold("nodes", nodes)
            numbered = bool(self.runner(nodes.limit(1)))
        if numbered:
            theirs = self.runner.hold("links_of_nodes", table.semi_join(nodes, CALLS).select("connection").distinct())
            rows, clients = rows.anti_join(nodes, CALLS), links.anti_join(nodes, CALLS)
            parts = None if parts is None else parts.anti_join(theirs, "connection")
        if self.runner(links.filter(of_brokers(links)).select("connection").limit(1)):
            clients = clients.filter(~of_brokers(clients))
            nameless = any(call["outcome"] == "orphan" and call["client_id"] is None for call in calls)
        if nameless:  # responses without a request do not name the client: their connections do
            theirs = self.runner.hold("links_of_brokers", links.filter(of_brokers(links)).select("connection"))
            rows = rows.anti_join(theirs, "connection")
            parts = None if parts is None else parts.anti_join(theirs, "connection")
        mine = self._part("of_clients", rows, self.every, clients, parts)
        if not nameless and not numbered:
            mine.calls = calls
        return mine

    def of_front(self, carried: "tuple[Carried, ...]") -> "Observed":
        """The same without the connections with which proxies carry on what is there from their clients already."""
        names = sorted(name for one in carried for name in one.connections)
        tables = self.exchanges, self.every, self.connections, self._parts
        others = (None if one is None else one.filter(~self.among(one.connection, names, "carried")) for one in tables)
        one = self._part("of_front", *others)
        one.carried = carried
        return one

    def among(self, value: Any, names: Sequence[str], label: str) -> Any:
        """Whether a value is one of these names; the engine may hold them under a label."""
        return value.isin(self.runner.names(self._label + label, names))

    def by_cluster(self) -> "list[tuple[str | None, Observed]]":
        """The same for each cluster, where responses name several, the busiest first; what servers carry that no response
        assigns to one stands by itself (None).

        Names of topics and groups, offsets and producer ids are those of one cluster. Connections without exchanges belong to
        each of them.
        """
        table = self.exchanges
        sizes = {row["cluster_id"]: row["n"] for row in self.run(table.group_by("cluster_id").aggregate(n=table.count()))}
        known = sorted((name for name in sizes if name is not None), key=lambda name: (-sizes[name], name))
        if len(known) < 2:
            return [(None, self)]
        if len(known) > CLUSTERS_MOST:
            self.left_out["clusters"] = len(known) - CLUSTERS_MOST
        found: list[tuple[str | None, Observed]] = []
        for at, name in enumerate((*known[:CLUSTERS_MOST], *({None} & sizes.keys()))):
            mine, every, parts = (
                table if table is None else table.filter(table.cluster_id.fill_null("") == (name or ""))
                for table in (self.exchanges, self.every, self._parts)
            )
            others = self.every.anti_join(every, "connection").select("connection")
            links = self.connections.anti_join(others, "connection")
            one = self._part(f"of_cluster_{at}", mine, every, links, parts)
            one.left_out = self.left_out
            found.append((name, one))
        return found

    def each_cluster(self) -> "list[tuple[Row, Observed]]":
        """The same, each with what its rows have beside: `cluster_id` where there are several clusters."""
        several = len(clusters := self.by_cluster()) > 1
        return [({"cluster_id": name} if several else {}, one) for name, one in clusters]

    def _part(self, label: str, exchanges: Any, every: Any, connections: Any, parts: Any) -> "Observed":
        """The same with a part of the rows, under names that begin with `label`."""
        label = f"{self._label}{label}_"
        mine, links, parts = (
            None if table is None else self.runner.hold(label + name, table, view=True)
            for name, table in (("exchanges", exchanges), ("connections", connections), ("parts", parts))
        )
        one = Observed(self.runner, mine, self.partitions, links, self.brokers, self._message, parts)
        one.every, one.every_link, one.crowded, one.carried = every, self.every_link, self.crowded, self.carried
        one.selected = self.selected
        one._label = label
        return one

    def first(self, expression: Any, order: Sequence[Any], most: int, what: str, whole: Any = None) -> list[Row]:
        """The first rows of an expression in an order; the rest is counted in `left_out` under `what`. `whole`: an expression
        of how many there are (`n`), where these are not all.
        """
        rows = self.run(expression.order_by(*order).limit(most))
        if len(rows) == most:
            (count,) = self.run(expression.aggregate(n=expression.count()) if whole is None else whole)
            if count["n"] > most:
                self.left_out[what] = count["n"] - most
        return rows

    def once(self, make: "Callable[[Observed], Made]") -> "Made":
        """What `make` gives of these tables, made for the first rule that needs it."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found

    def message(self, row: Row, side: str) -> Row:
        """The request or response of a row with `connection` and `exchange`; empty where it cannot be had."""
        if self._message is None or row.get("connection") is None:
            return {}
        return self._message(row["connection"], row["exchange"], side) or {}

    def prepared(self, rows: Sequence[Row], needs: Callable[[Row], bool] = lambda _row: True) -> Iterator[Row]:
        """The rows, with the messages of those that need them ready: as many at a time as stay decoded."""
        for start in range(0, len(rows), MESSAGES_AT_ONCE):
            some = rows[start : start + MESSAGES_AT_ONCE]
            self.prepare([row for row in some if needs(row)])
            yield from some

    def offered(self, rows: Sequence[Row]) -> dict[tuple[str, int], dict[int, tuple[int, int]]]:
        """By address of a server, the APIs and the lowest and highest versions that it offers, of the ApiVersions responses of
        these rows.

        A listener offers all clients the same, so that of each only the first RESPONSES_READ rows are looked at, up to one that
        can be read.
        """
        some: dict[tuple[str, int], list[Row]] = {}
        for row in rows:
            known = some.setdefault((row["server_ip"], row["server_port"]), [])
            if len(known) < RESPONSES_READ:
                known.append(row)
        found: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        for row in self.prepared([row for known in some.values() for row in known]):
            place = row["server_ip"], row["server_port"]
            if place not in found:
                offered = {
                    one.get("apiKey"): (one.get("minVersion"), one.get("maxVersion"))
                    for one in self.message(row, "response").get("apiKeys") or ()
                }
                if offered:
                    found[place] = offered
        return found

    def prepare(self, rows: Sequence[Row]) -> None:
        """Makes the messages of rows with `connection` and `exchange` ready: many at once cost little more than one."""
        if (prepare := getattr(self._message, "prepare", None)) is not None:
            times = [row.get("request_first_ns") for row in rows]
            known = [time for time in times if time is not None]
            between = (min(known), max(known)) if known and len(known) == len(rows) else None
            prepare([(row["connection"], row["exchange"]) for row in rows if row.get("connection") is not None], between)

    @cached_property
    def some_cut_short(self) -> bool:
        """Whether there is a request as `cut_short` looks for."""
        return any(call["reason"] in ("fin", "rst") for call in self.calls)

    @property
    def closed_by_server(self) -> Any:
        """The connections, by name, that the server closed or reset first."""
        return self.connections.filter(self.connections.closed_by == "server").connection

    @cached_property
    def span(self) -> tuple[int, int]:
        """Times of the first and the last packet of any connection."""
        table = self.every_link
        (row,) = self.run(table.aggregate(first=table.first_ns.min(), last=table.last_ns.max()))
        return row["first"] or 0, row["last"] or 0

    @cached_property
    def quality(self) -> Row:
        """How complete the exchanges are: n, orphans (no request), lost (no response, though there must have been one), cut
        (messages of which a part is missing), gaps (those of which packets are missing), throttled (responses with a throttle
        time).
        """
        sums = ("n", "throttled", "cut", "gaps")
        found: Row = {name: sum(call[name] for call in self.calls) for name in sums}
        found["orphans"] = sum(call["n"] for call in self.calls if call["outcome"] == "orphan")
        found["lost"] = sum(call["lost"] for call in self.calls if call["outcome"] == "unanswered")
        return found

    @cached_property
    def errors_of_partitions(self) -> set[str]:
        """Every error that some partition got."""
        return {row["error"] for row in self.run(self.partitions.select("error").distinct())}

    @cached_property
    def apis(self) -> set[str]:
        """Every API that was called."""
        return {call["api"] for call in self.calls}

    @cached_property
    def calls(self) -> list[Row]:
        """Exchanges by class: n, first_ns, last_ns, latency_ns, records, batches, bytes (of records), request_bytes,
        response_bytes, most_request_bytes, most_response_bytes, most_queue_ns, broker_id; how many were throttled, cut (a part
        of a message is missing), have gaps, or were lost by the capture (see `quality`); and an example.
        """
        table = self.exchanges
        gap, silent = table.flags.contains("gap"), table.flags.contains("one_sided")
        return self.run(
            in_groups(
                table,
                CLASS,
                throttled=table.count(where=table.throttle_time_ms > 0),
                cut=table.count(where=table.flags.contains("snaplen") | gap),
                gaps=table.count(where=gap),
                lost=table.count(where=silent | table.reason.isin(["lost_in_capture", "skipped"])),
                batches=table.batch_count.sum(),
                request_bytes=table.request_bytes.sum(),
                response_bytes=table.response_bytes.sum(),
                most_request_bytes=table.request_bytes.max(),
                most_response_bytes=table.response_bytes.max(),
                most_queue_ns=table.queue_ns.max(),
                broker_id=table.broker_id.max(),
                latency_ns=table.latency_ns.sum(),
                records=table.record_count.sum(),
                bytes=table.records_bytes.sum(),
                connection=table.connection.argmin(table.request_first_ns),
                exchange=table.exchange.argmin(table.request_first_ns),
            )
        )

    def most_calls(self, key: str | tuple[str, ...], apis: Collection[str]) -> int:
        """Calls of these APIs by the one that has most of them; 0 without any. Where they are too few rules need no query."""
        return max((sum(call["n"] for call in calls) for calls in self.calls_by(key, apis).values()), default=0)

    def calls_by(self, key: str | tuple[str, ...], apis: Collection[str]) -> dict[Any, list[Row]]:
        """The classes of some APIs by one of their values, or by several as a tuple."""
        return rows_by((call for call in self.calls if call["api"] in apis), key)

    @cached_property
    def begun(self) -> set[tuple[str, str]]:
        """What was spoken on connections and how they began, each pair once."""
        return {(row["phase"], row["began"]) for row in self.run(self.connections.select("phase", "began").distinct())}

    @cached_property
    def links(self) -> list[Row]:
        """Connections by client, server and how they went, those with the most exchanges first.

        Scans make silent connections by the hundred thousand: they count where a broker advertises the address. Of too many
        groups, those without exchanges have half of the room if they need it: what fails is among them.
        """
        every = self.connections
        known = every.server_ip.isin(self.brokers.host) | at_localhost(every, self.brokers)
        table = every.filter((every.phase != "empty") | known)
        whole = None
        if self.crowded:  # what is computed of a group takes 1 kB, and clients may be as many as connections
            groups = ranked(
                table.group_by(*LINK).aggregate(n=table.count(), first_ns=table.first_ns.min(), exchanges=table.exchanges.sum())
            )
            whole = groups.aggregate(n=groups.count())
            chosen = groups.order_by(groups.turn, groups.silent).limit(LINKS_KEPT)
            table = table.semi_join(chosen, [table[name].identical_to(chosen[name]) for name in LINK])
        links = in_groups(
            table,
            LINK,
            LASTED,
            **{name: table[name].sum() for name in SUMMED},
            missing=(table.client_missing + table.server_missing).sum(),
            skipped=(table.client_skipped + table.server_skipped).sum(),
            filled=table.out_of_order.sum(where=table.client_missing + table.server_missing == 0),
            stalls=table.zero_window_stalls.sum(),
            zero_window_ns=table.zero_window_ns.max(),
            request_bytes=table.client_captured.sum(),
            response_bytes=table.server_captured.sum(),
            most_response_bytes=table.server_captured.max(),
            server_packets=table.server_packets.sum(),
            life_ns=(table.last_ns - table.first_ns).median(),
            rtt_ns=table.rtt_min_ns.min(),
            client_rtt_ns=table.client_rtt_min_ns.min(),
        )
        links = ranked(links)
        rows = self.first(links, (links.turn, links.silent), LINKS_KEPT, "connection_groups", whole)
        return sorted(rows, key=lambda link: (link["silent"], link["turn"]))

    @cached_property
    def links_of(self) -> dict[str | None, list[Row]]:
        """Client id -> its `links`."""
        return rows_by(self.links, "client_id")

    def errors(self, names: Sequence[str], by: Sequence[str] = ("client_id",), apis: Sequence[str] | None = None) -> list[Row]:
        """Exchanges whose first error is one of these, in groups: n, first_ns, last_ns, error_name, latency_ns, an example."""
        if not any(call["error"] in names and (apis is None or call["api"] in apis) for call in self.calls):
            return []
        table = self.exchanges
        chosen = table.filter(table.error.isin(list(names)))
        if apis is not None:
            chosen = chosen.filter(chosen.api.isin(list(apis)))
        groups = in_groups(
            chosen, by, ("request_first_ns", "response_last_ns"), latency_ns=chosen.latency_ns.sum(),
            error_name=chosen.error.min(), connection=chosen.connection.argmin(chosen.request_first_ns),
            exchange=chosen.exchange.argmin(chosen.request_first_ns),
        )  # fmt: skip
        return self.run(groups)

    def partition_errors(
        self, names: Sequence[str], by: Sequence[str] = ("client_id", "topic"), chosen: Any = None
    ) -> list[Row]:
        """As `errors`, of single partitions, or of those `chosen` among them."""
        if not self.errors_of_partitions.intersection(names):
            return []
        if chosen is None:
            chosen = self.parts.filter(self.parts.error.isin(list(names)))
        groups = in_groups(
            chosen, by, requests=uids(chosen).nunique(), latency_ns=chosen.latency_ns.sum(),
            partitions=chosen.partition.nunique(), connection=chosen.connection.argmin(chosen.request_first_ns),
            exchange=chosen.exchange.argmin(chosen.request_first_ns),
        )  # fmt: skip
        return self.run(groups)

    def not_yet_led(self, errors: Sequence[str]) -> Any:
        """Partitions, as a table of `topic` and `partition`, that one broker refused with some of these errors and served
        only after the last of them: it did not lead them yet, as with a topic that was just created, and nothing moved.
        """
        parts = self.parts.filter(self.parts.topic.notnull())
        bad = parts.error.isin(list(errors))
        good = (parts.error == "NONE") & parts.api.isin(["Produce", "Fetch"])
        parts = parts.mutate(bad_ns=bad.ifelse(parts.request_first_ns, None), good_ns=good.ifelse(parts.request_first_ns, None))
        parts = parts.filter(parts.bad_ns.notnull() | parts.good_ns.notnull())
        each = parts.group_by(*PLACE).aggregate(
            bad_ns=parts.bad_ns.max(), good_ns=parts.good_ns.min(),
            ips=parts.server_ip.nunique(), ports=parts.server_port.nunique(),
        )  # fmt: skip
        later = each.bad_ns < each.good_ns
        if self.recreated:  # good before as well, of a partition that is gone
            later |= each.topic.isin(list(self.recreated))
        return each.filter(later, each.ips == 1, each.ports == 1).select(*PLACE)

    @cached_property
    def recreated(self) -> dict[str, tuple[int | None, int, tuple[str, ...]]]:
        """Topic -> of one that was deleted and created again: when the last request for the old one was sent that succeeded
        (None: before the capture), when the first for the new one, and the ids of the old ones, as requests name them since
        Fetch 13 (KIP-516).

        A server refuses an id, never takes it again, and serves the name: of one server, as those of a cluster learn it one
        after the other, and two clusters may have topics of one name.
        """
        found = dict[str, tuple[int | None, int, tuple[str, ...]]]()
        if not self.errors_of_partitions.intersection(AWAY):
            return found
        parts, place = self.parts, ("topic", "server_ip", "server_port")
        parts = parts.filter(
            parts.api.isin(["Produce", "Fetch", "ListOffsets"]) | parts.topic_id.notnull(), parts.topic.notnull()
        )
        named, good, bad = parts.topic_id.notnull(), parts.error == "NONE", parts.error.isin(list(AWAY))
        lives = parts.group_by(*place, old=parts.topic_id).aggregate(
            good_ns=parts.request_first_ns.max(where=good), bad_ns=parts.response_first_ns.min(where=bad & named)
        )
        gone = lives.filter(lives.bad_ns.notnull(), lives.good_ns.fill_null(0) < lives.bad_ns)
        served = parts.filter(good).select(*place, "topic_id", "request_first_ns").inner_join(gone, place)
        other = (served.topic_id != served.old).fill_null(False) & (served.request_first_ns > served.good_ns.fill_null(0))
        served = served.filter(other | (served.request_first_ns > served.bad_ns))
        new = served.group_by("topic", "old").aggregate(gone_ns=served.good_ns.max(), back_ns=served.request_first_ns.min())
        for row in self.first(new, ("back_ns", "topic", "old"), RECREATED_MOST, "recreated_topics"):
            olds = found.get(row["topic"], (0, 0, ()))[2]
            found[row["topic"]] = row["gone_ns"], row["back_ns"], (*olds, row["old"])
        return found

    @cached_property
    def parts(self) -> Any:
        """Partitions with what their exchange says of client, server and times; the name of a topic that nothing names is its
        id, as of requests that name ids alone where the capture has no Metadata."""
        rows = self._parts
        if rows is None:
            mine = self.exchanges.select("connection", "exchange", *BESIDE_COLUMNS)
            rows = self.partitions.select(*PARTITION_COLUMNS).inner_join(mine, ["connection", "exchange"])
        return rows.mutate(topic=topic_of(rows))

    @cached_property
    def flows(self) -> list[Row]:
        """Partitions of Produce and Fetch by API, client, topic and codec: n, bytes, batches, records, first_ns, last_ns; and
        what decides whether rules need look closer: `oldest` magic, `doubtful` (Produce of which it is not known whether it
        was done), `behind` (high watermark less last stable offset), `lag`, `early_ms` and `late_ms` (records' timestamps less
        the time of the request).
        """
        parts = self.parts
        chosen = parts.filter(parts.api.isin(["Produce", "Fetch"]))
        closed = cut_short(chosen)
        stamped = (chosen.api == "Produce") & (chosen.max_timestamp_ms > 0)
        off = chosen.max_timestamp_ms - chosen.request_first_ns / 1_000_000
        behind = chosen.high_watermark.clip(lower=-1) - chosen.last_stable_offset.clip(lower=0)  # of any 64 bits: no overflow
        return self.run(
            in_groups(
                chosen, ("api", "client_id", "topic", "codec"),
                bytes=chosen.bytes.sum(), batches=chosen.batches.sum(), records=chosen.records.sum(),
                oldest=chosen.magic.min(), doubtful=chosen.count(where=closed | chosen.error.isin(list(AFTER_APPEND))),
                behind=behind.max(where=chosen.last_stable_offset >= 0),
                lag=chosen.lag.max(), early_ms=off.min(where=stamped), late_ms=off.max(where=stamped),
            )
        )  # fmt: skip

    def flows_of(self, api: str) -> list[Row]:
        """Those of Produce or of Fetch."""
        return [flow for flow in self.flows if flow["api"] == api]

    def clients_by_topic(self, *apis: str) -> dict[str, list[str]]:
        """Topic -> client ids that use it by these of Produce and Fetch, in their order."""
        found: dict[str, set[str]] = {}
        for flow in self.flows:
            if flow["api"] in apis and flow["client_id"]:
                found.setdefault(flow["topic"], set()).add(flow["client_id"])
        return {topic: sorted(clients) for topic, clients in found.items()}

    def calls_of(self, **equal: object) -> list[Row]:
        """The classes that have these values, of an index: rules ask for each of thousands of names."""
        names = tuple(equal)
        if names not in self._calls_of:
            self._calls_of[names] = self.calls_by(names, self.apis)
        return self._calls_of[names].get(tuple(equal.values()), [])

    def clients_of(self, **equal: object) -> list[str]:
        """Client ids of the classes that have these values, in their order."""
        requested = tuple(equal.items())
        if requested not in self._clients_of:
            self._clients_of[requested] = clients_in(self.calls_of(**equal))
        return self._clients_of[requested]


SUMS: Final = ("n", "latency_ns", "records", "batches", "request_bytes", "response_bytes")


def totals(calls: Sequence[Row]) -> Row:
    """Classes of exchanges as one: sums of what adds up, first_ns, last_ns, broker_id."""
    found: Row = {name: sum(call[name] or 0 for call in calls) for name in SUMS}
    found["first_ns"] = min((call["first_ns"] for call in calls if call["first_ns"] is not None), default=0)
    found["last_ns"] = max((call["last_ns"] for call in calls if call["last_ns"] is not None), default=0)
    found["broker_id"] = max((call["broker_id"] for call in calls if call["broker_id"] is not None), default=None)
    return found


def times_of(rows: Sequence[Row]) -> tuple[int, int]:
    """The first and the last time of rows with `first_ns` and `last_ns`, ns since the epoch."""
    return min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)


def clients_in(rows: Iterable[Row]) -> list[str]:
    """The client ids of rows, sorted."""
    return sorted({row["client_id"] for row in rows if row["client_id"]})
