"""Logins that a broker takes long for, while it answers other requests at once.

In: exchanges. Out: findings. Law: logins that waited for the network, or while the broker sent no response at all, show nothing
of what a login costs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row, clients_in, rows_by
from kcap.reports.findings.served import in_time, served

LOGIN: Final = ("SaslAuthenticate", "SaslHandshake")
OTHERS: Final = 10
"""Other requests with which the logins of a server can be compared."""
ALONE: Final = 0.5
"""How sure it is where the capture has fewer."""


@rule(
    "login-slow", "medium", 0.8,
    needs="responses requests",
    looks_at="successful SaslHandshake and SaslAuthenticate responses that take a broker a second or more, compared with its "
    "responses to other requests",
    advice="A broker authenticates on its network threads, so other clients of the same thread wait, too. Find what its logins "
    "wait for: name lookups on its host (reverse DNS), or the service behind a callback handler, such as LDAP or the keys "
    "of an OAuth issuer.",
    instead="a broker without enough CPU, where the many iterations of SCRAM take long",
    sources="KIP-43, KIP-86, KIP-152",
    logins=3, seconds=1, share=0.2, times=10,
)  # fmt: skip
def login_slow(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Logins that succeed and take `seconds` or more: `logins` of them at a broker, and this `share` of its login requests.
    The broker's median for other requests in that time is `times` shorter. Failed logins are left out, since brokers delay
    their response on purpose (connection.failed.authentication.delay.ms).
    """
    least = int(limit["seconds"] * 1e9)
    calls = [call for call in seen.calls if call["api"] in LOGIN and call["error"] == "NONE"]
    if not any((call["latency_ns"] or 0) >= least for call in calls):
        return
    from kcap.reports.findings.absences import absences, waited_for

    table = seen.exchanges
    chosen = table.filter(table.api.isin(list(LOGIN)), table.error == "NONE", in_time(table))
    chosen = chosen.mutate(own=chosen.latency_ns - chosen.rtt_ns.fill_null(0))
    columns = ("client_id", "api", *SERVER, "request_first_ns", "request_last_ns", "latency_ns", "age_ns", "acks", "own")
    late = chosen.filter(chosen.own >= least).select(*columns)
    away = seen.once(absences)
    rows = [
        row for row in seen.first(late, ("request_first_ns", *SERVER), EVENTS_MOST, "slow_logins") if not waited_for(row, away)
    ]  # fmt: skip
    total = Counter[tuple[str, int]]()
    for call in calls:
        total[call["server_ip"], call["server_port"]] += call["n"]
    often = {
        place: some for place, some in rows_by(rows, SERVER).items()
        if len(some) >= limit["logins"] and len(some) >= limit["share"] * total[place]
    }  # fmt: skip
    if not often:
        return
    compared = others(seen, [row for some in often.values() for row in some], limit)
    for place, some in often.items():
        yield from of_server(place, some, total[place], compared.get(place), limit)


def others(seen: Observed, late: Sequence[Row], limit: Mapping[str, float]) -> dict[tuple[str, int], Row]:
    """By server: `n` other requests while one of these logins took long somewhere, and the median of their `own` time, ns."""
    first = min(row["request_first_ns"] for row in late)
    until = max(row["request_first_ns"] + row["latency_ns"] for row in late)
    prompt, _ = served(seen, {"milliseconds": limit["seconds"] * 1e3})
    prompt = prompt.filter(prompt.request_first_ns.between(first, until))
    rows = seen.run(prompt.group_by(*SERVER).aggregate(n=prompt.count(), own=prompt.own.quantile(0.5)))
    return {(row["server_ip"], row["server_port"]): row for row in rows if row["n"] >= OTHERS}


def of_server(place: tuple[str, int], some: Sequence[Row], total: int, beside: Row | None, limit: Mapping[str, float]) -> Found:
    """The finding of a server with these slow logins, unless it was as slow with other requests."""
    took = sorted(row["own"] for row in some)[len(some) // 2]
    if beside and beside["own"] * limit["times"] > took:
        return
    ip, port = place
    clients = clients_in(some)
    yield Finding(
        f"{len(some)} of {total} login requests took broker {ip}:{port} {seconds(took)} (median)"
        + (f", and other requests {seconds(beside['own'])} meanwhile" if beside else ""),
        {"server": f"{ip}:{port}", "client_ids": clients}, len(some),
        where(f"api in {{{', '.join(LOGIN)}}}", "error == NONE", f"latency_ns >= {limit['seconds'] * 1e3:g}ms", server_ip=ip,
              server_port=port),
        some[0]["request_first_ns"], max(row["request_last_ns"] for row in some), sum(row["own"] for row in some),
        {"logins": len(some), "login_requests": total, "longest_ns": max(row["own"] for row in some), "median_ns": took,
         "others_median_ns": round(beside["own"]) if beside else None},
        None if beside else "low", None if beside else ALONE,
    )  # fmt: skip
