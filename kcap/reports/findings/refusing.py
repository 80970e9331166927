"""Brokers that responded, then accept no connection for a while, and perhaps do again.

In: connections and exchanges. Out: findings. Law: no pairs of connections, one order of time.
"""

from collections.abc import Mapping
from typing import Final

from kcap.reports.definition import RAFT
from kcap.reports.findings.closing import at_server, hosts_of
from kcap.reports.findings.leaders import NOT_LEADING
from kcap.reports.findings.model import Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import PLACE, SERVER, Observed, Row, server_of
from kcap.reports.findings.outages import failing, outages
from kcap.reports.text import count as counted

BEFORE_NS: Final = 5_000_000_000
"""How long before the broker's last response the writes count that show how often a partition is written to."""
UNANSWERED: Final = (
    "See whether its host is up, and check the path to it (routes, firewalls, security groups): if only the broker has "
    "stopped, its host refuses connections (RST)."
)
"""Advice where nothing comes back."""
CONTROLLER: Final = (
    "See why it stopped: its log, the kernel log (out of memory), and the times of deployments. The other controllers elect a "
    "leader while a majority of the voters is available (kafka-metadata-quorum.sh describe --status); clients do not notice."
)
"""Advice where it is a controller."""
DONE_NS: Final = 3_000_000_000
"""How long a client that waits for a broker keeps its connection at least; one that is done closes it sooner."""
STEADY: Final = 5
"""Writes in that time from which on the next one is due within a second."""


@rule(
    "broker-unavailable", "medium", 0.85,
    needs="beginnings responses",
    looks_at="brokers that responded and then accept no connection for a while; partitions that were written to all the time, "
    "until no write to them succeeded at any broker",
    advice="See why it stopped: its log, the kernel log (out of memory), and the times of deployments. A broker that shuts "
    "down in order hands over its partitions first (controlled.shutdown.enable). The partitions of a killed broker have no "
    "leader until its session expires (broker.session.timeout.ms).",
    instead="a planned restart; a change of a listener or a firewall",
    refused=3, seconds=1, unwritten=3,
)  # fmt: skip
def broker_unavailable(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A broker that becomes unavailable while the capture runs: at least `refused` attempts to connect fail. If connections get
    no response, each SYN is an attempt.

    A rolling restart looks the same, and clients continue with the brokers that lead by then: the finding is info. It is a
    problem if partitions that were written to several times a second then have no successful write for `unwritten` seconds.
    """
    for row in outages(seen):
        controls = (row["server_ip"], row["server_port"]) in seen.once(quorum_listeners)
        lasted = row["last_ns"] - row["first_ns"]
        if row["tries"] < limit["refused"] or lasted < limit["seconds"] * 1e9:
            continue
        links, server = seen.every_link, server_of(row)
        refused = links.filter(failing(links), links.first_ns.between(row["first_ns"], row["last_ns"]))
        how = "refused" if row["refused"] == row["n"] else "not answered" if not row["refused"] else "refused or not answered"
        waits = [one for one in unwritten(seen, row) if one["gap_ns"] >= limit["unwritten"] * 1e9]
        longest = max((one["gap_ns"] for one in waits), default=0)
        yield Finding(
            f"{'controller' if controls else 'broker'} {server} accepted no connection for at least {seconds(lasted)}: "
            f"{counted(row['n'], 'connection')} of {hosts_of(row)} {'was' if row['n'] == 1 else 'were'} {how}"
            + (f", tried {row['tries']:,} times" if row["tries"] > row["n"] else "")
            + (f"; no write to {counted(len(waits), 'partition')} succeeded for up to {seconds(longest)}" if waits else ""),
            {"server": server, "broker_id": row["broker_id"], "client_ips": at_server(seen, refused, row)}, row["n"],
            where(server_ip=row["server_ip"], server_port=row["server_port"]), row["first_ns"], row["last_ns"], longest,
            {"connections": row["n"], "tries": row["tries"] if row["tries"] > row["n"] else None, "refused": row["refused"],
             "refusing_ns": lasted,
             **({"partitions": len(waits), "unwritten_ns": longest} if waits else {})},
            None if waits else "info", advice=UNANSWERED if not row["refused"] else CONTROLLER if controls else None,
        )  # fmt: skip


def quorum_listeners(seen: Observed) -> set[tuple[str, int]]:
    """The addresses and ports at which brokers and controllers read the log of the cluster's metadata."""
    table = seen.every
    polls = table.filter(table.client_id.fill_null("").startswith(RAFT))
    return {(row["server_ip"], row["server_port"]) for row in seen.run(polls.select(*SERVER).distinct())}


def unwritten(seen: Observed, row: Row) -> list[Row]:
    """Partitions that clients wrote to all the time, up to the first connection that the broker did not take or until their
    leader moved while it took none, with `gap_ns`: from the last write to the next that any broker took. Where none did, up to
    the last connection that the host of the writer tried. A client that closed its connection soon was done by itself, and
    so was one that wrote nothing more for a while and left no request without a response.
    """
    parts = seen.parts
    produced = parts.filter(parts.api == "Produce", parts.topic.notnull())
    refused = produced.filter(
        produced.error.isin(list(NOT_LEADING)), produced.request_first_ns.between(row["seen_ns"], row["last_ns"])
    )
    moved = refused.group_by(*PLACE).aggregate(moved_ns=refused.request_first_ns.min())
    good = produced.filter(produced.error == "NONE", produced.response_first_ns.notnull())
    mine = (good.server_ip == row["server_ip"]) & (good.server_port == row["server_port"])
    last = good.mutate(mine=mine).left_join(moved, list(PLACE))
    at = last.response_first_ns
    own = last.mine & (at <= row["first_ns"]) & (at > row["seen_ns"] - BEFORE_NS)
    last = last.filter(own | ((at <= last.moved_ns) & (at > last.moved_ns - BEFORE_NS)).fill_null(False))
    last = last.group_by(*PLACE).aggregate(
        n=last.count(), ok_ns=last.response_first_ns.max(), connection=last.connection.argmax(last.response_first_ns)
    )
    links = seen.connections
    links = links.select("connection", "client_ip", "closed_by", "closed_ns")
    pending = produced.filter((produced.error != "NONE").fill_null(True), produced.request_first_ns <= row["first_ns"])
    last = last.left_join(pending.group_by(*PLACE).aggregate(pending_ns=pending.request_first_ns.max()), list(PLACE))
    wanted = (last.ok_ns > row["first_ns"] - BEFORE_NS) | (last.pending_ns > last.ok_ns).fill_null(False)
    last = last.filter(last.n >= STEADY, wanted).select(*PLACE, "ok_ns", "connection").inner_join(links, "connection")
    open_ = (last.closed_by != "client").fill_null(True) | (last.closed_ns - last.ok_ns > DONE_NS).fill_null(False)
    last = last.filter(open_)
    both = last.left_join(good.select(*PLACE, "response_first_ns"), list(PLACE))
    gaps = both.group_by(*PLACE, "ok_ns", "client_ip").aggregate(
        next_ns=both.response_first_ns.min(where=both.response_first_ns > both.ok_ns)
    )
    tried = seen.every_link
    tried = tried.filter(
        failing(tried), tried.server_ip == row["server_ip"], tried.server_port == row["server_port"],
        tried.first_ns.between(row["first_ns"], row["last_ns"]),
    )  # fmt: skip
    tried = tried.group_by("client_ip").aggregate(tried_ns=tried.first_ns.max())
    gaps = gaps.left_join(tried, "client_ip")
    until = gaps.next_ns.fill_null(gaps.tried_ns)
    return seen.run(gaps.filter(until.notnull()).select(*PLACE, gap_ns=until - gaps.ok_ns))
