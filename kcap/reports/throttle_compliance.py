"""Requests that a client sent to a broker before that broker's throttle was over (KIP-219).

In: exchanges. Out: one row a throttled answer that was not obeyed, with how many requests came too early and by how much. Law:
a request counts once, against the throttle that ends last; only answers that come at once and ask for silence count, since an
older broker has waited already when it answers.

A client is its address and client id, a broker its address and port. The wire tells when bytes pass the tap: near the broker a
request may be on its way when the answer leaves, so the tap's view is the stricter one there.
"""

from typing import Any

from kcap.limits import EARLY_CLOCK_NS
from kcap.reports.definition import KEY
from kcap.schema.quotas import FIRST_MUTING

MS = 1_000_000
CLIENT = ("client_ip", "who", "server_ip", "server_port")
COLUMNS = (
    *KEY, "client_ip", "client_id", "server_ip", "server_port", "api_key", "api_version", "throttle_time_ms", "throttle_ns",
    "request_first_ns", "response_last_ns",
)  # fmt: skip
"""Columns of exchanges that are looked at."""


def asks_for_silence(rows: Any) -> Any:
    """Rows whose answer was throttled and leaves the waiting to the client."""
    import ibis

    first = ibis.cases(*((rows.api_key == key, version) for key, version in FIRST_MUTING.items()), else_=0)
    return (
        (rows.throttle_time_ms > 0)
        & (rows.throttle_ns.fill_null(0) == 0)
        & rows.api_key.notnull()
        & (rows.api_version >= first)
        & rows.response_last_ns.notnull()
    ).fill_null(False)


def broken(exchanges: Any) -> Any:
    """connection, exchange, violations, same_connection, early_ns of the throttled answers that were not obeyed.

    Some clients keep quiet on the connection that was throttled alone, and go on with another to the same broker."""
    import ibis

    # a null would be no partner to itself in a join
    rows = exchanges.mutate(who=ibis.coalesce("=" + exchanges.client_id, ibis.literal("-")))
    throttles = rows.filter(asks_for_silence(rows))
    throttles = throttles.mutate(until=throttles.response_last_ns + throttles.throttle_time_ms.cast("int64") * MS)
    requests = rows.filter(rows.request_first_ns.notnull()).semi_join(throttles, list(CLIENT))
    asked = requests.select(
        *CLIENT, at=requests.request_first_ns, kind=ibis.literal(0, "int64"), until=ibis.null("int64"), his=requests.connection
    )
    told = throttles.select(
        *CLIENT, at=throttles.response_last_ns, kind=ibis.literal(1, "int64"), until=throttles.until, his=throttles.connection
    )
    events = ibis.union(asked, told)
    so_far = ibis.window(group_by=list(CLIENT), order_by=["at", "kind"], rows=(None, 0))
    walk = events.mutate(over=events.until.max().over(so_far))
    early = walk.filter((walk.kind == 0) & (walk.over - EARLY_CLOCK_NS > walk.at)).drop("until", "kind")
    # two throttles may end in one nanosecond: the first of them by name stands for both
    first = ibis.window(group_by=[*CLIENT, "until"], order_by=list(KEY))
    ends = throttles.mutate(place=ibis.row_number().over(first))
    ends = ends.filter(ends.place == 0).select(*CLIENT, "until", *KEY)
    both = ends.join(early, [*CLIENT, ("until", "over")])
    return both.group_by(*KEY).aggregate(
        violations=both["at"].count(),
        same_connection=(both.connection == both.his).cast("int64").sum(),
        early_ns=(both.until - both["at"]).max(),
    )
