"""Whether clients complied with throttles, by the requests that were sent while the broker had muted their connection
(KIP-219).

In: exchanges. Out: one row per throttled response during whose mute requests were sent: how many on its own connection
(violations), how long before the end the earliest of them was sent, how many on other connections. Law: a broker that throttles
a client responds at once and mutes that one channel until the throttle time is over. Violations are therefore only requests
whose first byte was sent on the throttled connection after the response's last byte and before the end of that time. Requests
of the same client to the same broker on other connections are counted separately and are not violations. A request counts once
on either side, for the throttle that ends last.

A client is its address and client id, a broker its address and port. Times are those at which bytes pass the tap. Near the
broker a request may be in flight when the response leaves, so a few violations in the first milliseconds prove nothing.
"""

from typing import Any, Final

from kcap.limits import EARLY_CLOCK_NS
from kcap.reports.definition import KEY
from kcap.reports.recorded import functions
from kcap.schema.quotas import FIRST_MUTING

MS: Final = 1_000_000
HOSTS: Final = ("client_ip", "server_ip", "server_port")
CHANNEL: Final = ("connection",)
CLIENT: Final = ("client_ip", "client_", "server_ip", "server_port")
"""Columns of all connections of a client to a broker; `client_` is the client id with null replaced, so that null
equals null."""
COLUMNS: Final = (
    *KEY, "client_ip", "client_id", "server_ip", "server_port", "api_key", "api_version", "throttle_time_ms", "throttle_ns",
    "request_first_ns", "response_last_ns",
)  # fmt: skip
"""Columns of exchanges that compliance is computed from."""
OBEYS, DISOBEYS = 0.8, 0.5
"""Shares of complied throttles: from the first on a client complies, up to the second it does not. Real Java clients send a few
requests in the first milliseconds of a mute, before their network thread has read the response."""


def is_muting(rows: Any) -> Any:
    """Rows with a throttled response after which the broker mutes the channel. A broker before KIP-219 delays the response
    instead."""
    ibis = functions(rows)

    first = ibis.cases(*((rows.api_key == key, version) for key, version in FIRST_MUTING.items()), else_=0)
    return (
        (rows.throttle_time_ms > 0)
        & (rows.throttle_ns.fill_null(0) == 0)
        & rows.api_key.notnull()
        & (rows.api_version >= first)
        & rows.response_last_ns.notnull()
    ).fill_null(False)


def compliance(exchanges: Any) -> Any:
    """connection, exchange, violations, early_ns and elsewhere of the muting responses during whose mute requests were sent."""
    ibis = functions(exchanges)

    # nulls match nothing in a join
    rows = exchanges.mutate(client_=ibis.coalesce("=" + exchanges.client_id, ibis.literal("-")))
    throttles = rows.filter(is_muting(rows))
    throttles = throttles.mutate(until=throttles.response_last_ns + throttles.throttle_time_ms.cast("int64") * MS)
    requests = rows.filter(rows.request_first_ns.notnull()).semi_join(throttles, list(HOSTS))
    columns = [*CLIENT, *CHANNEL]
    sent = requests.select(*columns, at=requests.request_first_ns, kind=ibis.literal(0, "int64"), until=ibis.null("int64"))
    muted = throttles.select(*columns, at=throttles.response_last_ns, kind=ibis.literal(1, "int64"), until=throttles.until)
    events = ibis.union(sent, muted)
    before = {"order_by": ["at", "kind"], "rows": (None, 0)}
    walk = events.mutate(
        own=events.until.max().over(ibis.window(group_by=list(CHANNEL), **before)),
        any_=events.until.max().over(ibis.window(group_by=list(CLIENT), **before)),
    )
    walk = walk.filter(walk.kind == 0)
    violations = walk.filter(walk.own - EARLY_CLOCK_NS > walk["at"])
    elsewhere = walk.filter((walk.any_ - EARLY_CLOCK_NS > walk["at"]) & (walk.any_ > walk.own.fill_null(0)))
    on_own = matched(throttles, violations, list(CHANNEL), "own")
    on_other = matched(throttles, elsewhere, list(CLIENT), "any_")
    found = ibis.union(
        on_own.select(
            *KEY, violations=ibis.literal(1, "int64"), early_ns=on_own.until - on_own["at"], elsewhere=ibis.literal(0, "int64")
        ),
        on_other.select(
            *KEY, violations=ibis.literal(0, "int64"), early_ns=ibis.null("int64"), elsewhere=ibis.literal(1, "int64")
        ),
    )
    return found.group_by(*KEY).aggregate(
        violations=found.violations.sum().cast("int64"),
        early_ns=found.early_ns.max(),
        elsewhere=found.elsewhere.sum().cast("int64"),
    )


def matched(throttles: Any, requests: Any, by: list[str], until: str) -> Any:
    """The requests joined with the throttle that ends at `until`; of several that end in the same nanosecond, the
    first by key."""
    ibis = functions(throttles)

    first = ibis.window(group_by=[*by, "until"], order_by=list(KEY))
    ends = throttles.mutate(place_=ibis.row_number().over(first))
    ends = ends.filter(ends.place_ == 0).select(*dict.fromkeys([*by, "until", *KEY]))
    sent = requests.select(*by, "at", ends_=requests[until])
    return ends.join(sent, [*by, ("until", "ends_")])


def obeys(complied: int, muting: int) -> str | None:
    """`yes`, `no` or `mixed` by the share of complied throttles; None if the broker muted no connection."""
    if not muting:
        return None
    share = complied / muting
    return "yes" if share >= OBEYS else "no" if share <= DISOBEYS else "mixed"
