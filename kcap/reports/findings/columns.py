"""The columns of each table that rules, groups and transactions look at; of other columns no table is made for them."""

from typing import Final

EXCHANGE_COLUMNS: Final = (
    "connection", "exchange", "client_id", "software_name", "software_version", "principal", "sasl_mechanism", "group_id",
    "member_id", "generation", "transactional_id", "producer_id", "producer_epoch", "api", "api_version", "server_ip",
    "server_port", "client_ip", "broker_id", "error", "outcome", "reason", "age_ns", "request_first_ns",
    "request_last_ns", "response_first_ns", "response_last_ns", "latency_ns", "rtt_ns", "queue_ns",
    "long_poll_ns",
    "throttle_ns", "muted_ns", "throttle_time_ms", "record_count", "batch_count", "records_bytes", "request_bytes",
    "session_id", "session_epoch", "acks", "version_verdict", "flags", "tls", "capture", "response_capture", "client_port",
    "api_key", "correlation_id", "response_bytes", "request_first_packet", "response_first_packet", "request_last_capture",
    "response_last_capture", "request_pos", "request_end_pos", "response_pos", "response_end_pos", "max_wait_ms", "min_bytes",
    "transfer_ns", "request_transfer_ns", "topics", "isolation_level",
    "in_flight", "cluster_id",
)  # fmt: skip
PARTITION_COLUMNS: Final = (
    "connection", "exchange", "api_key", "topic", "topic_id", "partition", "error", "codec", "magic", "records", "bytes",
    "batches", "lag", "max_timestamp_ms", "producer_id", "producer_epoch", "base_sequence", "base_offset",
    "fetch_offset", "high_watermark", "last_stable_offset", "committed_offset", "group_id", "delivery_count",
)  # fmt: skip
BESIDE_COLUMNS: Final = (
    "client_id", "api", "server_ip", "server_port", "request_first_ns", "request_last_ns", "response_first_ns", "latency_ns",
    "acks", "api_version", "outcome", "reason", "age_ns", "cluster_id",
)  # fmt: skip
"""Columns of exchanges that rules look at beside those of their partitions; no two have one name."""
CONNECTION_COLUMNS: Final = (
    "connection", "client_id", "client_ip", "server_ip", "server_port", "phase", "detail", "began", "ended",
    "closed_ns", "closed_by", "tls", "packets", "retransmitted", "duplicated", "sacked", "spurious", "out_of_order",
    "recovered", "zero_window_stalls", "zero_window_ns", "exchanges", "response_frames", "client_captured", "server_captured",
    "first_ns", "last_ns", "rtt_min_ns", "client_rtt_min_ns",
    "tls_alerts", "tls_version", "tls_sni", "tls_server_subject", "tls_client_subject", "tls_ja4",
    "tls_handshake_ns",
    "server_packets", "client_missing", "server_missing", "client_skipped", "server_skipped",
    "client_unacked_ns", "server_unacked_ns", "server_pending",
    "client_resent_ns", "client_resent_at_ns", "server_resent_ns", "server_resent_at_ns",
)  # fmt: skip
SUMMED: Final = ("exchanges", "packets", "retransmitted", "duplicated", "out_of_order", "recovered", "sacked", "spurious")
"""Columns of connections of which groups of connections have the sums."""
BROKER_COLUMNS: Final = ("host", "port", "broker_id")
COLUMNS: Final = {
    "exchanges": EXCHANGE_COLUMNS, "partitions": PARTITION_COLUMNS, "connections": CONNECTION_COLUMNS,
    "brokers": BROKER_COLUMNS,
}  # fmt: skip
"""Tables that rules look at -> their columns."""
MESSAGE_COLUMNS: Final = (
    "connection", "exchange", "api_key", "api_version", "capture", "response_capture", "request_last_capture",
    "response_last_capture", "request_bytes", "response_bytes", "request_pos", "request_end_pos", "response_pos",
    "response_end_pos", "request_first_packet", "response_first_packet", "request_first_ns", "response_first_ns",
    "client_ip", "client_port", "server_ip", "server_port", "correlation_id", "outcome", "tls",
)  # fmt: skip
"""Columns of exchanges by which their bytes are found in the files again."""
GROUP_TABLES: Final = {
    "exchanges": tuple(dict.fromkeys((
        *MESSAGE_COLUMNS, "client_id", "api", "group_id", "member_id", "generation", "error", "request_last_ns",
        "response_last_ns", "cluster_id",
    ))),
    "partitions": ("connection", "exchange", "topic", "topic_id", "partition", "lag"),
}  # fmt: skip
"""Tables that the report `groups` looks at -> their columns."""
TRANSACTION_TABLES: Final = {
    "exchanges": tuple(dict.fromkeys((
        *MESSAGE_COLUMNS, "client_id", "api", "group_id", "transactional_id", "producer_id", "producer_epoch", "error",
        "request_last_ns", "response_last_ns", "cluster_id",
    ))),
    "partitions": (
        "connection", "exchange", "topic", "topic_id", "partition", "error", "records", "bytes", "producer_id",
        "producer_epoch",
    ),
    "connections": ("connection", "first_ns", "last_ns"),
}  # fmt: skip
"""Tables that the report `transactions` looks at -> their columns."""
