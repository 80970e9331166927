"""Names of the numbers that a finding rests on, in words, where the name alone does not say what was counted or measured.

In: the evidence of a finding by name. Out: a line for people. Law: each name in WORDS is one that some rule gives; machine-read
forms keep the names.
"""

from collections.abc import Mapping
from typing import Any, Final

from kcap.reports.text import figures

WORDS: Final = {
    "acknowledged_ns": "a follower's Fetch behind records",
    "answered_before": "requests answered on them before",
    "answered_bytes": "bytes of the largest that was answered",
    "away_ns": "out of the group for",
    "came_back": "came back later",
    "behind_ns": "at the server behind it",
    "behind": "records between it and the high watermark",
    "zero_window_ns": "closed on one connection for",
    "complied": "throttles complied with",
    "coordinators": "brokers that coordinated the group",
    "early": "closed before a request",
    "elsewhere": "requests on other connections meanwhile",
    "empty": "fetches without records",
    "ended": "transactions that ended",
    "filled": "segments out of order that filled a hole",
    "gone_ns": "between two connections of its producer",
    "full": "requests sent while the pipeline was full",
    "given_up": "requests that clients gave up",
    "gaps": "exchanges with packets that the capture lacks",
    "held_ns": "had the records for",
    "held_back": "fetches that waited though there were records",
    "hole_bytes": "bytes of the smallest hole",
    "idle_ns": "idle before the close",
    "in_sync": "replicas in sync",
    "late": "members that joined late",
    "late_p50_ns": "median of late writes",
    "joins": "JoinGroup requests",
    "lag_first": "lag at first",
    "lag_last": "lag at last",
    "late_ns": "acknowledged late by up to",
    "leaves": "LeaveGroup requests",
    "left": "throttled connections closed early",
    "lifetime_ns": "lifetime of the session",
    "lock_ns": "their locks last",
    "looked_at": "transactions that were looked at",
    "lost_beside": "segments lost on other connections",
    "may_wait_ns": "the broker may wait",
    "muting": "throttles that ask the client to wait",
    "not_coordinator": "NOT_COORDINATOR errors",
    "off_ms": "clock off by",
    "open_ns": "open for",
    "others": "clients that compress the topic",
    "others_median_ns": "median of other requests",
    "others_p95_ns": "95th percentile of the other brokers",
    "out_of_order": "segments out of order",
    "p95_ns": "95th percentile",
    "prompt_p50_ns": "median of requests in time",
    "proxy_ns": "in the proxy",
    "queue_ns": "waited in the queue",
    "quiet_ns": "no request for",
    "recovered": "segments that were lost before the tap",
    "refusing_ns": "accepted no connection for",
    "retransmitted": "segments retransmitted",
    "sacked": "holes that receivers reported",
    "saved": "part of a sample that compression saves",
    "served": "that went through",
    "served_here": "responses on other connections meanwhile",
    "served_others": "responses to other hosts meanwhile",
    "silent_ns": "sent nothing for",
    "smallest_bytes": "bytes of the smallest",
    "soonest_ns": "soonest such request behind the login",
    "spurious": "retransmissions that were not needed",
    "stalls": "times out of the group",
    "stood_ns": "last stable offset stood still for",
    "stored": "codec of the broker",
    "throttle_ms": "throttle time",
    "throttled": "throttled responses",
    "throttles": "throttles that ask the client to wait",
    "timed_out_ns": "closed after",
    "timeout_ns": "transaction timeout",
    "topic_id": "id of the deleted topic",
    "tries": "attempts, those of SYN sent again too",
    "unanswered": "without a response in the capture",
    "unwritten_ns": "no write succeeded for",
    "violations": "requests before a throttle was over",
    "waiting": "JoinGroup requests that waited",
    "waited_ns": "readers of committed records waited",
    "with_followers": "responses that came with these Fetches",
    "written": "codec of the producer",
    "zero_windows": "times that the receive window was closed",
}
"""Name -> what it is, as it stands before the value."""


def evidence_line(evidence: Mapping[str, Any]) -> str:
    """The evidence in a line: `open for 10.3s; last stable offset stood still for 4.02s`."""
    return figures(evidence, WORDS)
