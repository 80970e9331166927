"""Oddities of captures, streams and messages: the closed list of everything that is strange and yet no reason to stop.

A weird is counted exactly and shown with its first place. Odd input never raises an exception; whatever cannot be explained has
a name here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class WeirdKind(StrEnum):
    """One member per oddity: its stable name in the `weirds` table, and what was seen."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        made.meaning = meaning
        return made

    # capture files
    FILE_TRUNCATED = "file_truncated", "the last record or block is cut; everything before it was read"
    FILE_EMPTY = "file_empty", "a capture file without a single packet"
    FILE_UNREADABLE = "file_unreadable", "one file of several could not be read and was left out"
    BLOCK_MALFORMED = "block_malformed", "a pcapng block whose fields contradict its length"
    SECRETS_LIMIT = "secrets_limit", "a Decryption Secrets Block above the limit; its keys were not read"
    INTERFACE_LIMIT = (
        "interface_limit",
        "more interfaces of a pcapng section than the limit; packets of later ones are not read",
    )
    COMPRESSED_TRUNCATED = "compressed_truncated", "the compressed stream ends early"
    TIME_WENT_BACK = "time_went_back", "a packet older than the one before it in the same file"
    KERNEL_DROPS = "kernel_drops", "the capturing host reports dropped packets"
    # packets
    LINK_UNKNOWN = "link_unknown", "a link type that cannot be decoded"
    PACKET_MALFORMED = "packet_malformed", "headers that contradict themselves"
    PACKET_CUT = "packet_cut", "the snapshot length cut a header; the packet cannot be read"
    FRAGMENTS_INCOMPLETE = "fragments_incomplete", "a datagram with missing IP fragments"
    FRAGMENTS_LIMIT = "fragments_limit", "more unfinished datagrams than the limit"
    # TCP streams
    OVERLAP_DIFFERS = "overlap_differs", "the same sequence numbers carried different bytes; the first copy won"
    GAP = "gap", "stream bytes that no packet of the capture carries"
    LATE_DATA = "late_data", "data for a hole that had been given up"
    REORDER_LIMIT = "reorder_limit", "a hole was closed because too much data waited behind it"
    DATA_AFTER_FIN = "data_after_fin", "data after the end of a stream"
    CONNECTION_LIMIT = "connection_limit", "more open connections than the limit; the quietest one was closed"
    CONNECTION_IDLE = "connection_idle", "a connection without a packet for longer than the idle time"
    # TLS
    TLS_TURNS_LIMIT = "tls_turns_limit", "more turns on an encrypted connection than the limit; later ones are not listed"
    TLS_RECORDS_LOST = "tls_records_lost", "application data between decrypted records is missing, or no key decrypts it"
    # Kafka frames
    NOT_KAFKA = "not_kafka", "a TCP connection that is not Kafka; the detail names what it looks like"
    PROXY_HEADER = (
        "proxy_header",
        "a connection begins with a PROXY protocol header of a load balancer; the detail names the client behind it",
    )
    DIRECTION_UNKNOWN = "direction_unknown", "no SYN, and no content that distinguishes client from server"
    RECOGNITION_LIMIT = (
        "recognition_limit",
        "connections that are not recognised yet hold more bytes than the limit; this one was decided by the bytes it had",
    )
    BOUNDARY_LOST = "boundary_lost", "no frame can start here; resync searches for the next boundary"
    RESYNCED = "resynced", "resync found the next frame boundary"
    FRAME_LENGTH_INVALID = "frame_length_invalid", "a length prefix that is negative, too short, or above the limit of Kafka"
    FRAME_INCOMPLETE = "frame_incomplete", "a frame whose end is missing"
    FRAMES_LIMIT = (
        "frames_limit",
        "unfinished frames of all connections hold more bytes than the limit; this one was not read completely",
    )
    API_UNKNOWN = "api_unknown", "a request with a key or version that no Kafka release has"
    HUNT_LIMIT = "hunt_limit", "the search for a frame boundary reached its limit and skipped bytes"
    # exchanges
    UNANSWERED = "unanswered", "a request without a response; the detail gives the reason"
    ORPHAN = "orphan", "a response without a captured request"
    OUT_OF_ORDER_RESPONSE = "out_of_order_response", "a response before one to an earlier request; brokers respond in order"
    CORRELATION_REUSED = "correlation_reused", "a request repeats the id of an outstanding one"
    LATE_RESPONSE = "late_response", "a response after the client had closed its side"
    ACKS0_ANSWERED = "acks0_answered", "a response to a Produce with acks=0"
    OUTSTANDING_LIMIT = "outstanding_limit", "more outstanding requests than the limit, on one connection or on all"
    EARLY_LIMIT = "early_limit", "more responses wait for their requests than the limit"
    # facts of the whole capture
    FACTS_LIMIT = "facts_limit", "more topics, brokers, client libraries or version lists than the limit"
    NESTED_LIMIT = (
        "nested_limit",
        "more partitions or records of an exchange than its row can have; their tables have all",
    )
    TOPICS_LIMIT = (
        "topics_limit",
        "more topics of one message or of all waiting messages than the limit; the row has some or none",
    )
    PARTITIONS_LIMIT = "partitions_limit", "more partitions of a message than the limit; later ones have no row"
    # bodies
    UNDECODED = "undecoded", "a body that does not match its API and version"
    DECODER_FAILED = "decoder_failed", "kcap's own code failed on an exchange or a connection, whose values are missing"


@dataclass(frozen=True, slots=True)
class Weird:
    """One sighting. `connection` is None if the oddity belongs to the file."""

    kind: WeirdKind
    detail: str
    file: int
    """Index of the file in the capture."""
    packet: int
    """1-based packet number within the file; 0 if no packet is meant."""
    position: int
    """Byte offset in the file; 0 if none is meant."""
    connection: str | None = None
