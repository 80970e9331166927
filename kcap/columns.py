"""The columns of every table: name, type and meaning, declared once as plain data.

JSONL keys, CSV headers, and the columns of Parquet, Arrow, pandas, DuckDB and Spark all derive from here. Types have Arrow's
names; a trailing `?` marks a column that may be null.
"""

from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Version of the schema, written into Arrow and Parquet metadata. Changes only add."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `type` is one of `TYPES`, `nullable` says whether null occurs, and `doc` is its meaning in one sentence."""

    name: str
    type: str
    nullable: bool
    doc: str


TYPES = (
    "string",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "timestamp",
    "binary",
    "list<string>",
    "list<int8>",
    "list<int64>",
)
"""Types by name. `timestamp` has microseconds since the epoch in UTC, because Spark's timestamps are no finer."""


def _table(text: str) -> tuple[Column, ...]:
    """Parses the declarations below, one per line: `name type[?] meaning`."""
    columns = []
    for line in text.strip().splitlines():
        name, kind, doc = line.split(None, 2)
        columns.append(Column(name, kind.rstrip("?"), kind.endswith("?"), doc))
    return tuple(columns)


EXCHANGES = _table("""
time timestamp first byte of the request (of the response for an orphan)
capture string? file that holds the request's first byte: base name, made unique by path tail
response_capture string? file that holds the response's first byte
connection string uid of the connection
exchange int64 number within the connection from 1, given when a request header (an orphan's id) is complete
client_ip string address of the client
client_port int32 TCP port of the client
server_ip string address of the Kafka broker
server_port int32 TCP port of the Kafka broker
broker_id int32? node id, from responses that list brokers
cluster_id string? from responses to Metadata and DescribeCluster
api_key int16? request header; null for orphans and raw SASL tokens
api string? Kafka's name of the API, null for unknown keys; SaslToken for raw tokens
api_version int16? request header
correlation_id int32? request header; for an orphan, response header
client_id string? request header
software_name string? from the connection's ApiVersions request v3 or later (KIP-511), from that exchange onward
software_version string? from the connection's ApiVersions request v3 or later (KIP-511)
sasl_mechanism string? from the connection's SaslHandshake
principal string? user of the login, if the login shows it
tls bool the connection is encrypted and was decrypted
outcome string answered, one_way (acks=0), unanswered or orphan
reason string? why it is unanswered or orphan: capture_end, fin, rst, skipped, midstream, lost_in_capture (bytes are missing)
age_ns int64? unanswered requests: capture time from the last byte to the event that reason names
in_flight int32? requests in flight when this response was complete, its own included; above 64, an upper bound after gaps
request_bytes int64? frame bytes with the 4-byte length, as announced
response_bytes int64? frame bytes with the 4-byte length, as announced
request_first_ns int64? packet time at which the frame's first byte was first seen
request_last_ns int64? packet time at which the frame's last byte was first seen
response_first_ns int64? packet time at which the frame's first byte was first seen
response_last_ns int64? packet time at which the frame's last byte was first seen
request_first_packet int64? 1-based packet number within the file
request_last_packet int64? 1-based packet number within the file
response_first_packet int64? 1-based packet number within the file
response_last_packet int64? 1-based packet number within the file
request_last_capture string? file of the request's last byte, if it is another file
response_last_capture string? file of the response's last byte, if it is another file
request_pos int64? lowest file offset of the packets that gave the frame's bytes
request_end_pos int64? highest file offset of the packets that gave the frame's bytes
response_pos int64? lowest file offset of the packets that gave the frame's bytes
response_end_pos int64? highest file offset of the packets that gave the frame's bytes
latency_ns int64? response_first_ns - request_last_ns; negative if the flag clock is set
rtt_ns int64? part of latency: running minimum round trip from the tap to the broker and back
queue_ns int64? part of latency: waiting behind earlier requests of this connection
service_ns int64? part of latency: the rest, which is the broker's own time
long_poll_ns int64? part of service: waiting for min_bytes
throttle_ns int64? part of service: throttling before the response, as brokers did before KIP-219
muted_ns int64? part of service: the broker's mute after an earlier throttle (KIP-219)
request_transfer_ns int64? last minus first byte of the request
transfer_ns int64? last minus first byte of the response
throttle_time_ms int32? from the response, null where it has none
error_code int16? first error of the response that is not NONE, top level first; 0 when all are NONE
error string? Kafka's name of error_code
error_count int32? errors at all levels
topics list<string>? names in wire order (response, then request), each once with an id and once without; null where unresolved
topic_ids list<string>? parallel to topics; an entry is null where the version has none
partition_count int32? partitions of a Produce request, Fetch response and similar messages
batch_count int32? record batches
record_count int32? records, from batch headers, including control records (ends of transactions)
records_bytes int64? bytes of record batches
codecs list<string>? compression codecs seen
magics list<int8>? message formats seen
acks int16? Produce: -1 all, 0 none, 1 leader
timeout_ms int32? from the request
max_wait_ms int32? Fetch
min_bytes int32? Fetch
max_bytes int32? Fetch
isolation_level int8? 0 read_uncommitted, 1 read_committed
session_id int32? Fetch session (KIP-227)
session_epoch int32? Fetch session (KIP-227)
group_id string? group of the request
member_id string? member of the request
generation int32? generation or member epoch
transactional_id string? of the request
producer_id int64? from the request or response
producer_epoch int16? from the request or response
version_verdict string? ok, below_broker_min, above_broker_max, unnegotiated or not_highest
removed_in string? first Kafka release that no longer takes this API and version
deprecated_in string? first Kafka release that deprecates this API and version
flags list<string> oddities of this row, sorted, from a closed list
""")

FLAG_MEANINGS = {
    "clock": "the response is older than the request: clocks or capture points differ",
    "duplicated": "a segment of it came again within 5 ms: captured twice, or sent again at once",
    "gap": "bytes of it are missing in the capture",
    "late": "the response came after the client had closed its side, or after the client's own time-out",
    "malformed": "a length or count of it is impossible",
    "midstream": "the connection had begun before the capture",
    "one_sided": "only one direction of the connection was captured",
    "out_of_order": "the response came before those of earlier requests",
    "resynced": "the frame's start was found again after missing bytes",
    "retransmitted": "a segment of it was sent more than once",
    "snaplen": "packets were captured shorter than they were",
    "truncated": "the end of the frame is missing",
    "undecoded": "a value that a column needs could not be read",
}
"""Member of `exchanges.flags` -> what it says about the row; sorted."""
FLAGS = tuple(FLAG_MEANINGS)
"""Members of `exchanges.flags`; bit i of a flag mask stands for entry i."""
WITHOUT_POLLS = "latency_without_polls"
"""Name in filters of the time that reports use: `latency_ns` less `long_poll_ns`, during which a Fetch waited for data."""

CONNECTIONS = _table("""
connection string uid: a hash of the endpoints, the first packet's time and the client's initial sequence number
number int64 1-based number by first packet, as Wireshark's tcp.stream counts from 0
community_id string Community ID flow hash v1, seed 0
client_ip string address of the client (of the lower endpoint if the direction is unknown)
client_port int32 TCP port of the client
server_ip string address of the server
server_port int32 TCP port of the server
capture string file of the first packet
first_ns int64 time of the first packet
last_ns int64 time of the last packet
began string syn or midstream
ended string fin, rst, open or idle
closed_ns int64? time of the first FIN or RST
closed_by string? side of the first FIN or RST: client or server
phase string kafka, tls, http, opaque or empty
detail string? what the bytes look like if they are not Kafka; the version of a PROXY protocol header before them
packets int64 packets of both directions
client_packets int64 packets the client sent
server_packets int64 packets the server sent
retransmitted int64 data segments that repeat bytes seen before
sacked int64 segments whose selective acknowledgement reports a hole: the receiver lacks bytes (SACK, RFC 2018)
spurious int64 segments whose selective acknowledgement reports bytes that came twice (D-SACK, RFC 2883)
duplicated int64 data segments that came again within 5 ms: captured twice, or sent again at once
out_of_order int64 data segments that came before their turn
recovered int64 data segments that filled a hole a round trip and 3 ms or more later: lost before the tap and retransmitted
rtt_min_ns int64? smallest round trip from the tap to the server and back
rtt_avg_ns int64? mean round trip from the tap to the server and back
client_rtt_min_ns int64? smallest round trip from the tap to the client and back
zero_window_stalls int64 times a receiver closed its window
zero_window_ns int64 how long receive windows were closed, summed over both sides
client_id string? of the first request
software_name string? from ApiVersions (KIP-511)
software_version string? from ApiVersions (KIP-511)
sasl_mechanism string? from SaslHandshake
principal string? user of the login, if the login shows it
tls bool TLS was seen
tls_version string? from the server's hello
tls_cipher string? from the server's hello
tls_sni string? server name that the client requested (SNI)
tls_alpn string? application protocol that the server chose (ALPN); TLS 1.3 encrypts it, so keys are needed
tls_alpn_offered list<string>? application protocols that the client offered (ALPN); null without a ClientHello
tls_ja3 string? JA3 fingerprint of the ClientHello: an MD5 in hexadecimal
tls_ja4 string? JA4 fingerprint of the ClientHello
tls_client_subject string? subject of the client's certificate (RFC 4514); TLS 1.3 encrypts it, so keys are needed
tls_server_subject string? subject of the server's certificate (RFC 4514); TLS 1.3 encrypts it, so keys are needed
tls_resumed bool? the session resumed an earlier one, by session id, ticket or PSK; null if a hello is missing
tls_handshake_ns int64? from the ClientHello to the last Finished, by their packets; null with 0-RTT data or missing records
tls_alerts list<string>? alerts that were read or recognised by length, except those of a close: sender, name and meaning
exchanges int64 rows of this connection
request_frames int64 complete frames of the client
response_frames int64 complete frames of the server
client_captured int64 unique stream bytes of the client that packets of the capture carry
client_framed int64 those in frames that gave rows
client_skipped int64 those that were skipped
client_opaque int64 those that are not Kafka or not decrypted
client_pending int64 those in a frame without its end
client_missing int64 stream bytes of the client that no packet carries
client_unacked_ns int64? from the client's last new data to the end, if not all was acknowledged (RFC 9293)
client_resent_ns int64 longest time from new data of the client until unacknowledged data was retransmitted; 0 for none
client_resent_at_ns int64? time of the segment that ended it
server_captured int64 unique stream bytes of the server that packets of the capture carry
server_framed int64 those in frames that gave rows
server_skipped int64 those that were skipped
server_opaque int64 those that are not Kafka or not decrypted
server_pending int64 those in a frame without its end
server_missing int64 stream bytes of the server that no packet carries
server_unacked_ns int64? from the server's last new data to the end, if not all was acknowledged (RFC 9293)
server_resent_ns int64 longest time from new data of the server until unacknowledged data was retransmitted; 0 for none
server_resent_at_ns int64? time of the segment that ended it
""")

CAPTURES = _table("""
capture string base name, made unique by path tail
path string as given
size int64? bytes on disk
format string pcap, pcapng, or pcap+snoop for a snoop file; then + and the compression
link_types list<int64> LINKTYPE_ values seen
snaplen int64? snapshot length the file announces
first_ns int64? time of the first packet
last_ns int64? time of the last packet
packets int64 packets read
packet_bytes int64 captured bytes of all packets
cut_packets int64 packets captured shorter than they were
kernel_drops int64? packets that the capturing machine dropped, from pcapng's interface statistics
complete bool false if the file ends in the middle of a record
""")

WEIRDS = _table("""
kind string stable name of the oddity
connection string? uid of the connection that it belongs to, if any
capture string? file of the first sighting
packet int64? packet of the first sighting
position int64? file offset of the first sighting
detail string detail of the first sighting
count int64 number of sightings
""")

PARTITIONS = _table("""
connection string uid of the connection
exchange int64 number within the connection
time timestamp first byte of the request (of the response for an orphan)
api_key int16 request header
group_id string? group for which the partition is requested, or of the message
topic string? name, from the message or found in the capture by its id
topic_id string? from the message, null if the version has none
partition int32 number within the topic
error_code int16? of this partition, null without a response; for a ShareFetch without an error, that of its acknowledgements
error string? Kafka's name of error_code
fetch_offset int64? where a Fetch reads from, by the request or by its fetch session (KIP-227)
base_offset int64? first offset of a Produce; the offset that ListOffsets or OffsetForLeaderEpoch found
high_watermark int64? of the response
last_stable_offset int64? of the response
log_start_offset int64? of the response; low watermark of DeleteRecords
committed_offset int64? of OffsetCommit, TxnOffsetCommit and OffsetFetch
timestamp_ms int64? of ListOffsets (negative values have special meanings) or of a commit; log append time of a Produce
leader_epoch int32? of the response, or else of the request
batches int32? record batches of a Produce request or a Fetch response
records int64? records, from batch headers; a ShareFetch may bring more than it acquires
bytes int64? bytes of record batches
codec string? compression of the first batch
magic int8? format of the first batch
producer_id int64? of the first batch
producer_epoch int16? of the first batch
base_sequence int32? of the first batch
mixed_codec bool? the batches are not all of one codec
timestamp_type string? CreateTime or LogAppendTime, of the first batch
first_timestamp_ms int64? of the first record, from its batch's header
max_timestamp_ms int64? largest timestamp in the batches' headers
crc_ok bool? the checksums of all batches match their bytes
lag int64? of a Fetch: high watermark less the position after this response; null if some of its records were not captured
delivery_count int16? of a ShareFetch: the largest of the records that it acquires (KIP-932)
""")

RECORDS = _table("""
connection string uid of the connection
exchange int64 number within the connection
api string Produce (from its request), Fetch or ShareFetch (from its response)
topic string? name, from the message or found in the capture by its id
topic_id string? from the message, null if the version has none
partition int32 number within the topic
offset int64? absolute; for a Produce from its response, null if the response has no offset
timestamp_ms int64? of the record, or of its batch if the broker sets it
timestamp_type string? CreateTime or LogAppendTime, null for messages of format 0
magic int8 format of the batch
codec string compression of the batch
key_bytes int32? size of the key, null if the key is null
value_bytes int32? size of the value, null if the value is null
headers list<string> names of the headers, in wire order
control string? type of a control record: COMMIT, ABORT, LEADER_CHANGE or another; UNKNOWN if it cannot be read
key binary? the key, if payloads are requested
value binary? the value, if payloads are requested
""")

NEGOTIATIONS = _table("""
connection string uid of the connection
client_ip string address of the client
client_port int32 TCP port of the client
server_ip string address of the Kafka broker
server_port int32 TCP port of the Kafka broker
software_name string? from the connection's ApiVersions request (KIP-511)
software_version string? from the connection's ApiVersions request (KIP-511)
api_key int16 request header
api string? Kafka's name of the API, null for unknown keys
broker_min int16? first version that the broker offers, to this connection or else to another; null if it offers none
broker_max int16? last version that the broker offers
versions list<int64> versions that the connection used, ascending
count int64 requests
verdict string? the worst of their verdicts: ok, not_highest, unnegotiated, above_broker_max, below_broker_min
step int64 number of the API's first exchange within the connection: the order in which the connection used its APIs
client_id string? of the first request
requested int16 version of the first request
chosen int16? version of the last request whose response was not UNSUPPORTED_VERSION; null if there is none
error_code int16? the first error of the responses that is not NONE; null if there is none
error string? Kafka's name of error_code
features list<string> finalized features and their levels, of the connection's last ApiVersions response that has them
""")

TLS_TURNS = _table("""
connection string uid of the connection
turn int64 number within the connection, from 1
client_ip string address of the client
client_port int32 TCP port of the client
server_ip string address of the server
server_port int32 TCP port of the server
request_first_ns int64 packet time of the first byte of the client's records
request_last_ns int64 packet time of the last byte of the client's records
response_first_ns int64? packet time of the first byte of the server's records; null if there are none
response_last_ns int64? packet time of the last byte of the server's records; null if there are none
latency_ns int64? response_first_ns - request_last_ns: an estimate, exact if the turn is one exchange
request_bytes int64 bytes of the client's records without their headers: ciphertext, including what encryption adds
response_bytes int64 bytes of the server's records without their headers: ciphertext, including what encryption adds
request_records int64 records of the client
response_records int64 records of the server
gap bool bytes of the connection are missing in the turn or just before it
""")

TOPIC_NAMES = _table("""
topic_id string as Kafka prints it
topic string name of the topic
cluster_id string? cluster of the broker that sent it
connection string uid of the first connection that has it
exchange int64 number of that exchange
""")

BROKERS = _table("""
cluster_id string? cluster, if the message that lists the broker has one
broker_id int32 node id
host string name or address that clients get (advertised.listeners)
port int32 port that clients get (advertised.listeners)
rack string? rack of the broker
server_ip string? address in the capture that was verified to be this endpoint
server_port int32? its port
connection string uid of the first connection that has it
exchange int64 number of that exchange
""")

PAYLOADS = frozenset({"key", "value"})
"""Columns of `records` that exist only on request."""

ON_REQUEST = {
    "exchanges": _table("""
stream int64 number of the connection among all TCP connections by first packet, from 0, as Wireshark's tcp.stream
cluster_brokers int32? brokers of the cluster, by the lists that this broker sent (Metadata, DescribeCluster)
"""),
    "partitions": _table("""
leader_id int32? leader in Metadata, whose partitions are rows if this is requested; null for all other rows
plain_bytes int64? of a Produce: uncompressed bytes of its batches; null if one cannot be decompressed
control_records int64? control records (ends of transactions, leader changes) among the records; null without a batch
"""),
}
"""Columns that a pass over a capture can compute and that a table has only on request."""

TABLES = {
    "exchanges": EXCHANGES,
    "connections": CONNECTIONS,
    "captures": CAPTURES,
    "weirds": WEIRDS,
    "partitions": PARTITIONS,
    "records": RECORDS,
    "negotiations": NEGOTIATIONS,
    "tls_turns": TLS_TURNS,
    "topic_names": TOPIC_NAMES,
    "brokers": BROKERS,
}
"""Every table that exists, by name."""

TABLE_MEANINGS = {
    "exchanges": "a request with its response, or one of them without the other",
    "connections": "a TCP connection",
    "captures": "a capture file",
    "weirds": "a kind of oddity on a connection or in a file",
    "partitions": "a topic partition that an exchange is about",
    "records": "a record that an exchange carries",
    "negotiations": "an API on a connection: the versions used and those that the broker offers",
    "tls_turns": "a request and a response, inferred from record sizes and directions of an encrypted connection",
    "topic_names": "a topic id whose name a response has",
    "brokers": "an endpoint of a broker that a response lists",
}
"""Table -> what one row of it represents."""


def exchange_column(name: str) -> str:
    """The name that a column of exchanges has in a table of partitions that has a column of the same name."""
    return f"exchange_{name}" if name in PARTITION_NAMES else name


ONLY_ROW = "only_row"
"""bool column beside the columns of exchanges in a table of partitions: whether the exchange has no other row there."""
PARTITION_NAMES = frozenset(column.name for column in TABLES["partitions"])
