"""The dictionary of kcap's data: tables, columns, flags, oddities. `kcap schema` and docs/tables.md print it.

In: a table's name, or nothing. Out: rows of text, the first of which are the headings. Law: names, types and meanings are those
of `kcap.columns` and `kcap.weird`; for every nullable column it says when it is null; Wireshark's fields are those that filters
accept.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from kcap.columns import FLAG_MEANINGS, ON_REQUEST, TABLE_MEANINGS, TABLES, Column
from kcap.weird import WeirdKind

Lines = list[tuple[str, ...]]
UNITS: Final = (
    ("time", "UTC, microseconds"),
    ("*_ns_sum", "nanoseconds"),
    ("timestamp_ms", "milliseconds since the epoch"),
    ("*_timestamp_ms", "milliseconds since the epoch"),
    ("*first_ns", "nanoseconds since the epoch"),
    ("*last_ns", "nanoseconds since the epoch"),
    ("*_ns", "nanoseconds"),
    ("*_ms", "milliseconds"),
    ("*_pos", "bytes from the file's start"),
    ("position", "bytes from the file's start"),
    ("*bytes", "bytes"),
    ("size", "bytes"),
    ("snaplen", "bytes"),
    ("client_[cfsopm]*ed", "bytes"),
    ("server_[cfsopm]*ed", "bytes"),
    ("*_missing", "bytes"),
    ("*_pending", "bytes"),
    ("*_opaque", "bytes"),
    ("*_packet", "number in the file, from 1"),
    ("packet", "number in the file, from 1"),
)
"""Pattern of column names -> unit; the first match counts."""
NULLS: Final = (
    ("connections.detail", "the connection is Kafka without a PROXY protocol header, or has no byte that was captured"),
    ("connections.tls_*", "there is no TLS, or the capture does not show it"),
    ("captures.size", "the capture is not a file on disk"),
    ("captures.snaplen", "the file announces none"),
    ("captures.kernel_drops", "the file has no such statistics"),
    ("captures.*_ns", "no packet was read"),
    ("weirds.connection", "the oddity is the file's"),
    ("weirds.*", "the oddity has no place in a file"),
    ("records.offset", "the response has no offset, or was not captured"),
    ("records.timestamp_*", "the format of the message has none"),
    ("records.control", "the record is no control record"),
    ("records.key*", "the record has no key"),
    ("records.value*", "the record has no value (a tombstone)"),
    ("negotiations.api", "no Kafka release has the key"),
    ("negotiations.verdict", "what the broker offers was not captured"),
    ("negotiations.chosen", "no other response was captured"),
    ("negotiations.error*", "no response with another error was captured"),
    ("brokers.rack", "the broker has none, or the version of the message has none"),
    ("brokers.server_*", "no address in the capture was verified to be this endpoint"),
    ("*_last_capture", "the file of the first byte"),
    ("request_transfer_ns", "not all of the request's bytes were captured"),
    ("request_*", "no byte of the request was captured, or not this one"),
    ("capture", "no request was captured"),
    ("response_*", "there is no response, or this byte of it was not captured"),
    ("transfer_ns", "there is no response, or not all of its bytes were captured"),
    ("reason", "answered, or one-way"),
    ("age_ns", "the request is not unanswered"),
    ("in_flight", "there is no response, or no request"),
    ("latency_ns", "there is no response, or a byte that it is measured from was not captured"),
    ("*_ns", "the capture does not show it"),
    ("throttle_time_ms", "the response has no such field, or was not captured"),
    ("error*", "the response has no error field, or none that was captured and read"),
    ("api", "a response without a request, or a key of no Kafka release"),
    ("api_*", "a response without a request, or a raw SASL token"),
    ("correlation_id", "a raw SASL token"),
    ("client_id", "the request has none, or was not captured"),
    ("broker_id", "no response in the capture has it"),
    ("cluster_id", "no response in the capture has it"),
    ("cluster_brokers", "no such list of this broker was captured"),
    ("software_*", "the connection's ApiVersions request does not have it, or was not captured"),
    ("principal", "the login does not show it, or was not captured"),
    ("sasl_mechanism", "no SASL handshake was captured"),
    ("version_verdict", "what the broker offers was not captured"),
    ("removed_in", "every release that kcap knows accepts it"),
    ("deprecated_in", "no release that kcap knows deprecates it"),
    ("topic", "the message has an id, and the capture does not have its name"),
    ("topic_id", "the version has none"),
    ("broker_min", "the broker does not offer the API, or its offer was not captured"),
    ("broker_max", "the broker does not offer the API, or its offer was not captured"),
    ("closed_ns", "no FIN or RST was captured"),
    ("*_resent_at_ns", "no unacknowledged data was retransmitted"),
    ("*_unacked_ns", "all data was acknowledged, or no acknowledgement was captured"),
    ("closed_by", "no FIN or RST was captured, or the side of the client is not known"),
    ("*", "the message or its version has none, or it was not captured"),
)
"""Pattern of nullable columns, by name or by table and name -> when they are null; the first match counts."""
PROTOCOLS: Final = ("kafka.", "tcp.", "ip.", "ipv6.", "frame.")
"""Prefixes of Wireshark's field names."""


def matching(patterns: tuple[tuple[str, str], ...], *names: str) -> str:
    """The text of the first pattern that matches one of the names of a thing; empty for none."""
    return next((text for pattern, text in patterns if any(fnmatchcase(name, pattern) for name in names)), "")


def wireshark(table: str, name: str) -> str:
    """The fields of tshark that stand for a column of exchanges in filters and with -e."""
    from kcap.filter.fields import ALIASES

    if table != "exchanges":
        return ""
    return " ".join(alias for alias, columns in ALIASES.items() if name in columns and alias.startswith(PROTOCOLS))


def tables() -> Lines:
    """Every table: its name, its number of columns, what a row is."""
    rows = [(name, str(len(columns)), TABLE_MEANINGS[name]) for name, columns in TABLES.items()]
    return [("table", "columns", "a row is"), *rows]


def columns(table: str) -> Lines:
    """The columns of a table, then its optional ones."""
    heads = ("column", "type", "unit", "meaning", "null", "Wireshark")
    return [heads, *(described(table, column) for column in (*TABLES[table], *ON_REQUEST.get(table, ())))]


def described(table: str, column: Column) -> tuple[str, ...]:
    """One line of `columns`."""
    unit = matching(UNITS, column.name) if "int" in column.type or column.type == "timestamp" else ""
    null = matching(NULLS, column.name, f"{table}.{column.name}") if column.nullable else "never"
    return column.name, column.type, unit, column.doc, null, wireshark(table, column.name)


def flags() -> Lines:
    """The possible values of `exchanges.flags`."""
    return [("flag", "meaning"), *FLAG_MEANINGS.items()]


def weirds() -> Lines:
    """The possible values of `weirds.kind`."""
    return [("kind", "meaning"), *((kind.value, kind.meaning) for kind in WeirdKind)]


def markdown(lines: Lines) -> Iterator[str]:
    """A table of GitHub's Markdown."""
    heads, *rows = lines
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        first, *others = (cell.replace("|", "\\|").replace("<", "&lt;") for cell in row)
        yield "| " + " | ".join([f"`{row[0]}`" if first else "", *others]) + " |"
