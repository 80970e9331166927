"""Records that brokers acknowledged and that are in no log any more.

In: the offsets that Produce responses give to batches. Out: topics in which one offset was given to two batches. Law: a batch
that was sent twice and a topic that was created again give no finding.
"""

from collections.abc import Mapping
from typing import Any

from kcap.reports.findings.model import Finding, Found, rule, where
from kcap.reports.findings.observed import AWAY, PLACE, Observed, in_groups
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

SECOND_NS = 1_000_000_000
BATCH = (*PLACE, "base_offset", "records", "bytes", "max_timestamp_ms", "producer_id")
"""What a batch that is sent again, or captured on both sides of a proxy, has in common with the first."""


@rule(
    "records-lost", "critical", 0.9,
    needs="requests responses bodies",
    looks_at="offsets in Produce responses: leaders of a partition that gave the same offset to different batches",
    advice="Records of one of the two batches are no longer in any log: write again those that must not be missing. Then set "
    "acks=all, min.insync.replicas of 2 or more and unclean.leader.election.enable=false for this topic, and see which broker "
    "stopped or handed over its partitions at that time.",
    instead="a topic that was deleted and created again, if the capture does not show that",
    sources="KIP-101, KIP-966",
)  # fmt: skip
def records_lost(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """Acknowledged records that a new leader does not have.

    With acks=1, the leader alone acknowledges a batch. If the next leader had not copied the batch, it gives the same offsets
    to other records, and the first leader removes its batch when it becomes a follower (KIP-101).
    """
    places = {(call["server_ip"], call["server_port"]) for call in seen.calls if call["api"] == "Produce"}
    if len(places) < 2:
        return
    twice = given_twice(seen)
    rows = seen.run(
        in_groups(twice, ("topic",), ("at_ns", "at_ns"), records=twice.twice.sum(), partitions=twice.partition.nunique())
    )
    away = {row["topic"] for row in seen.partition_errors(AWAY, ("topic",))} if rows else set()
    for row in rows:
        if row["topic"] not in away:
            offsets, parts = counted(row["records"], "offset"), counted(row["partitions"], "partition")
            yield Finding(
                f"leaders gave {offsets} of {parts} of topic {row['topic']} to two different records each: "
                f"{counted(row['records'], 'acknowledged record')} {'is' if row['records'] == 1 else 'are'} lost",
                {"topic": row["topic"], "client_ids": seen.clients_by_topic("Produce").get(row["topic"], [])}, row["n"],
                where("api == Produce", "error == NONE", topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
                {"records": row["records"], "partitions": row["partitions"]},
            )  # fmt: skip


def given_twice(seen: Observed) -> Any:
    """Batches that were acknowledged at offsets of others, as an expression: topic, partition, at_ns, twice (how many offsets).

    Offsets are those of one cluster: where no response names the cluster of a broker, its batches do not count.
    """
    parts = seen.parts
    parts = parts.filter(
        parts.api == "Produce", parts.error == "NONE", parts.base_offset >= 0, parts.records > 0, parts.magic == 2,
        parts.topic.notnull(), parts.cluster_id.notnull(), parts.response_first_ns.notnull(),
    )  # fmt: skip
    led = parts.group_by(*PLACE).aggregate(
        ips=parts.server_ip.nunique(), ports=parts.server_port.nunique(), ids=parts.topic_id.nunique()
    )
    moved = led.filter((led.ips > 1) | (led.ports > 1), led.ids <= 1)
    parts = parts.semi_join(moved, list(PLACE))
    batches = parts.group_by(*BATCH).aggregate(at_ns=parts.response_first_ns.min())
    # a log that begins again at offset 0 is that of a new topic
    begun = batches.group_by(*PLACE).aggregate(
        began_ns=batches.at_ns.min(), zero_ns=batches.at_ns.max(where=batches.base_offset == 0)
    )
    again = begun.filter(begun.zero_ns > begun.began_ns + SECOND_NS)
    batches = batches.anti_join(again, list(PLACE))
    ibis = functions(batches)
    order = {"group_by": list(PLACE), "order_by": ["base_offset", "at_ns"]}
    batches = batches.mutate(end_=batches.base_offset + batches.records.cast("int64"))
    batches = batches.mutate(reached=batches.end_.max().over(ibis.window(**order, rows=(None, 0))))
    batches = batches.mutate(before=batches.reached.lag().over(ibis.window(**order)))
    batches = batches.filter(batches.before > batches.base_offset)
    ends = (batches.before < batches.end_).ifelse(batches.before, batches.end_)
    return batches.mutate(twice=ends - batches.base_offset)
