"""Rows and filters to hold evaluators together with."""

from typing import Any

from hypothesis import strategies as st

from kcap.columns import EXCHANGES, FLAGS

Row = dict[str, Any]

SOME: dict[str, st.SearchStrategy[Any]] = {
    "api": st.sampled_from(["Fetch", "Produce", "Metadata", "SaslToken"]),
    "api_key": st.sampled_from([0, 1, 3, 18]),
    "api_version": st.integers(0, 5),
    "client_id": st.sampled_from(["", "app", "App-1", "a.b", "ÄPP", "(x"]),
    "client_ip": st.sampled_from(
        ["10.0.0.1", "10.255.0.9", "192.168.1.77", "fe80::1", "::1", "2001:db8::ff:1", "1:2:3:4:5:6:7:8"]
    ),
    "server_ip": st.sampled_from(["10.0.0.1", "::1", "2001:db8::"]),
    "client_port": st.sampled_from([9092, 40000]),
    "server_port": st.sampled_from([9092, 9094]),
    "latency_ns": st.sampled_from([-5, 0, 1, 50_000_000, 1_000_000_000, (1 << 62)]),
    "long_poll_ns": st.sampled_from([0, 1, 49_000_000]),
    "throttle_time_ms": st.sampled_from([0, 1, 50]),
    "request_bytes": st.integers(0, 30_000),
    "response_bytes": st.integers(0, 30_000),
    "error_code": st.sampled_from([0, 6, 35]),
    "error": st.sampled_from(["NONE", "NOT_LEADER_OR_FOLLOWER", "UNSUPPORTED_VERSION"]),
    "outcome": st.sampled_from(["answered", "one_way", "unanswered", "orphan"]),
    "tls": st.booleans(),
    "time": st.sampled_from([0, 1_795_240_800_000_000, 1_795_240_800_000_001, 1_795_300_000_123_456]),
    "topics": st.lists(st.one_of(st.none(), st.sampled_from(["orders", "Orders.x", "a", ""])), max_size=3),
    "magics": st.lists(st.sampled_from([0, 1, 2]), max_size=3),
    "flags": st.lists(st.sampled_from(FLAGS[:4]), max_size=2, unique=True),
}
"""Column -> values; the columns that the filters below use."""
NULLABLE = {column.name for column in EXCHANGES if column.nullable}


def rows() -> st.SearchStrategy[list[Row]]:
    """Some rows; every column that may be null is null now and then."""
    columns = {name: st.one_of(st.none(), values) if name in NULLABLE else values for name, values in SOME.items()}
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=12)


TERMS = (
    "latency_without_polls > 1ms",
    "latency_without_polls",
    "latency_without_polls in {1ms..50ms}",
    "latency_without_polls < latency_ns",
    "api == Fetch",
    "api != produce",
    "api in {Fetch, Metadata}",
    "not (api in {Fetch})",
    "api_key == Metadata",
    "api_key >= 3",
    "api_version in {0..2 4}",
    "client_id",
    "client_id == app",
    'client_id contains "p"',
    'client_id matches "^a.p$"',
    'client_id matches "app|x"',
    "len(client_id) > 1",
    'lower(client_id) == "app-1"',
    'upper(client_id) contains "APP"',
    'client_id < "b"',
    "client_ip == 10.0.0.0/8",
    "ip.addr == ::1",
    "ip.addr != 10.0.0.1",
    "ip == 2001:db8::/33",
    "client_ip == fe80::/10",
    "client_ip != 10.0.0.0/8",
    "server_ip in {10.0.0.0/24, ::1}",
    "tcp.port == 9092",
    "tcp.port != 9092",
    "any tcp.port != 9092",
    "latency > 50ms",
    "latency <= 0",
    "abs(latency_ns) >= 5",
    "latency_ns > abs(long_poll_ns)",
    "client_id == lower(client_id)",
    "latency_ns",
    "throttle == 0",
    "throttle > 1ms",
    "request_bytes > 1kB",
    "request_bytes in {0..1KiB 20kB..30000}",
    "response_bytes > request_bytes",
    "response_bytes != request_bytes",
    "kafka.error == NOT_LEADER_OR_FOLLOWER",
    "error != NONE",
    "error",
    "not error",
    "outcome == answered",
    "tls",
    "!tls",
    "tls == true",
    'time >= "2026-11-21 06:00"',
    'time == "2026-11-21T06:00:00.000001Z"',
    "topics",
    'topics == "orders"',
    'topics != "orders"',
    'any topics != "orders"',
    'all topics contains "r"',
    'topics matches "ORDERS"',
    "len(topics) > 1",
    "count(topics) >= 2",
    "count(topics) == 0",
    "upper(topics) == ORDERS",
    "magics == 2",
    "all magics == 2",
    "magic in {0 1}",
    "magics > 0",
    "flags",
    "flags == gap",
    "all flags != gap",
    "flags contains a",
    "count(flags) < 2",
    "topics in {orders, a}",
    "all topics in {orders, a}",
)
"""Conditions of every kind."""


def filters() -> st.SearchStrategy[str]:
    """Conditions, alone and joined."""
    terms = st.sampled_from(TERMS)
    return st.recursive(
        terms,
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("({} xor {})".format, inner, inner),
            st.builds("not ({})".format, inner),
        ),
        max_leaves=4,
    )
