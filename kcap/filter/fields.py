"""The names that a filter may use: columns of `exchanges`, short forms, Wireshark's field names, fields of Kafka's messages.

In: a name. Out: what it stands for and which values it takes. Law: every column has a name; each alias equals the columns that
it stands for.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from kcap.columns import EXCHANGES, FLAGS, ON_REQUEST, WITHOUT_POLLS, Column
from kcap.filter.ast import Deep, FieldRef, Operand
from kcap.schema import registry
from kcap.schema.errors import CODES
from kcap.schema.facts import Field as Fact
from kcap.schema.facts import MessageSpec, Variant
from kcap.wire.codecs import CODECS

KINDS: Final = {"string": "text", "bool": "flag", "timestamp": "time"}
ADDRESSES: Final = frozenset({"client_ip", "server_ip"})

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "latency": ("latency_ns",),
    "rtt": ("rtt_ns",),
    "queue": ("queue_ns",),
    "service": ("service_ns",),
    "long_poll": ("long_poll_ns",),
    "throttle": ("throttle_time_ms",),
    "muted": ("muted_ns",),
    "transfer": ("transfer_ns",),
    "request_transfer": ("request_transfer_ns",),
    "age": ("age_ns",),
    "topic": ("topics",),
    "topic_id": ("topic_ids",),
    "codec": ("codecs",),
    "magic": ("magics",),
    "flag": ("flags",),
    "ip": ("client_ip", "server_ip"),
    "port": ("client_port", "server_port"),
    "client.id": ("client_id",),
    "kafka.api_key": ("api_key",),
    "kafka.api_version": ("api_version",),
    "kafka.correlation_id": ("correlation_id",),
    "kafka.client_id": ("client_id",),
    "kafka.topic_name": ("topics",),
    "kafka.topic_id": ("topic_ids",),
    "kafka.error": ("error_code",),
    "kafka.throttle_time": ("throttle_time_ms",),
    "kafka.acks": ("acks",),
    "kafka.required_acks": ("acks",),
    "kafka.timeout": ("timeout_ms",),
    "kafka.max_wait_time": ("max_wait_ms",),
    "kafka.min_bytes": ("min_bytes",),
    "kafka.max_bytes": ("max_bytes",),
    "kafka.isolation_level": ("isolation_level",),
    "kafka.fetch_session_id": ("session_id",),
    "kafka.fetch_session_epoch": ("session_epoch",),
    "kafka.consumer_group": ("group_id",),
    "kafka.group_id": ("group_id",),
    "kafka.member_id": ("member_id",),
    "kafka.member": ("member_id",),
    "kafka.generation_id": ("generation",),
    "kafka.transactional_id": ("transactional_id",),
    "kafka.producer_id": ("producer_id",),
    "kafka.producer_epoch": ("producer_epoch",),
    "kafka.request_frame": ("request_last_packet",),
    "kafka.response_frame": ("response_last_packet",),
    "tcp.len": ("request_bytes", "response_bytes"),
    "tcp.port": ("client_port", "server_port"),
    "tcp.srcport": ("client_port", "server_port"),
    "tcp.dstport": ("client_port", "server_port"),
    "ip.addr": ("client_ip", "server_ip"),
    "ip.src": ("client_ip", "server_ip"),
    "ip.dst": ("client_ip", "server_ip"),
    "ip.host": ("client_ip", "server_ip"),
    "ipv6.addr": ("client_ip", "server_ip"),
    "ipv6.src": ("client_ip", "server_ip"),
    "ipv6.dst": ("client_ip", "server_ip"),
    "frame.number": ("request_first_packet", "request_last_packet", "response_first_packet", "response_last_packet"),
    "tcp.stream": ("stream",),
    "frame.time": ("time",),
    "frame.time_epoch": ("time",),
    "frame.file": ("capture",),
}
"""Other names for columns; several columns are alternatives. An exchange has packets in both directions, so Wireshark's source
and destination are either end."""

LENGTH: Final = "kafka.len"
"""The values of both length prefixes: the frame's bytes less the prefix itself."""
PREFIX_BYTES: Final = 4
PARTITION_IDS: Final = frozenset({"partition", "partitions", "partitionId", "partitionIndex", "partitionIndexes"})
"""Names of partition numbers in Kafka's schemas, beside `index` within a partition."""
ADVICE: Final[dict[str, str]] = {
    "frame.len": "is for -T fields -e; in a filter request_bytes and response_bytes are the sizes of an exchange's messages",
    "frame.time_relative": "is for -T fields -e; in a filter compare time, or look at --time-format relative",
    "kafka.partition_id": "is for -T fields -e; in a filter use a body field, such as request.topics.partitions.partition",
}
"""Wireshark's names without a counterpart in exchanges -> what to use instead."""

_OUTCOMES: Final = ("answered", "one_way", "unanswered", "orphan")
_REASONS: Final = ("capture_end", "fin", "rst", "lost_in_capture", "skipped", "midstream")
_VERDICTS: Final = ("ok", "below_broker_min", "above_broker_max", "unnegotiated", "not_highest")
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "outcome": _OUTCOMES,
    "reason": _REASONS,
    "flags": FLAGS,
    "codecs": CODECS,
    "version_verdict": _VERDICTS,
}
"""Column -> all values that it can have."""


def _field(name: str, columns: tuple[Column, ...]) -> FieldRef:
    first = columns[0]
    many = first.type.startswith("list<")
    inner = first.type.removeprefix("list<").removesuffix(">")
    kind = "address" if first.name in ADDRESSES else KINDS.get(inner, "number")
    return FieldRef(name, kind, tuple(column.name for column in columns), many)


@cache
def fields() -> dict[str, FieldRef]:
    """Every name that stands for columns."""
    declared = {column.name: column for column in (*EXCHANGES, *ON_REQUEST["exchanges"])}
    found = {name: _field(name, (column,)) for name, column in declared.items()}
    for alias, names in ALIASES.items():
        found[alias] = _field(alias, tuple(declared[name] for name in names))
    found[LENGTH] = FieldRef(LENGTH, "number", ("request_bytes", "response_bytes"), offset=PREFIX_BYTES)
    found[WITHOUT_POLLS] = FieldRef(WITHOUT_POLLS, "number", ("latency_ns",), minus="long_poll_ns")
    return found


@cache
def named_values(column: str) -> Mapping[str, int | str]:
    """Words for the values of a column, in lower case -> the value; empty for most columns."""
    if column == "api":
        apis = {name.lower(): name for key in registry.api_keys() if (name := registry.api_name(key))}
        return apis | {"sasltoken": "SaslToken"}
    if column == "api_key":
        return {name.lower(): key for key in registry.api_keys() if (name := registry.api_name(key))} | {"offsets": 2}
    if column == "error":
        return {name.lower(): name for name in CODES}
    if column == "error_code":
        return {name.lower(): code for name, code in CODES.items()}
    return {word: word for word in WORDS.get(column, ())}


def snake(name: str) -> str:
    """`FetchOffset`, `fetchOffset` and `fetch_offset` as `fetch_offset`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def deep_fields() -> dict[str, Deep]:
    """Every field of requests and responses by its dotted name, `request.topics.partitions.fetch_offset`."""
    found: dict[str, tuple[str, tuple[str, ...], str, set[int]]] = {}
    for key in registry.api_keys():
        for side, word in ((registry.REQUEST, "request"), (registry.RESPONSE, "response")):
            for path, kind in _paths(registry.body(key, side)):
                dotted = ".".join([word, *map(snake, path)])
                entry = found.get(dotted)
                if entry is None or (entry[2] == "struct" and kind != "struct"):
                    entry = found[dotted] = (word, path, kind, entry[3] if entry else set())
                entry[3].add(key)
    return {name: Deep(side, path, kind, frozenset(apis)) for name, (side, path, kind, apis) in found.items()}


@cache
def partition_ids() -> tuple[str, ...]:
    """Every field of requests and responses that is the number of a partition, or a list of them."""
    return tuple(
        name for name, field in deep_fields().items()
        if field.kind == "number"
        and (field.path[-1] in PARTITION_IDS or (field.path[-1] == "index" and "artition" in field.path[-2]))
    )  # fmt: skip


@cache
def fractions() -> frozenset[tuple[str, tuple[str, ...]]]:
    """Side and path of the numbers in bodies that are not integers."""
    return frozenset(
        (word, path)
        for key in registry.api_keys()
        for side, word in ((registry.REQUEST, "request"), (registry.RESPONSE, "response"))
        for path, kind in _paths(registry.body(key, side), exact=True)
        if kind == "float64"
    )


def _paths(message: MessageSpec | None, *, exact: bool = False) -> list[tuple[tuple[str, ...], str]]:
    """The JSON keys down to each field of all versions, and the kind of its values; with `exact`, its type in the schema."""
    found: dict[tuple[str, ...], str] = {}

    def walk(variant: Variant, inside: tuple[Fact, ...], path: tuple[str, ...]) -> None:
        for field in inside:
            kind = field.type.removeprefix("[]")
            here = (*path, field.name[:1].lower() + field.name[1:])
            inner = field.fields or variant.structs.get(kind, ())
            found.setdefault(here, "struct" if inner else kind if exact else _kind(kind))
            walk(variant, inner, here)

    for variant in message.variants if message else ():
        walk(variant, variant.fields, ())
    return list(found.items())


def _kind(kind: str) -> str:
    return {"string": "text", "uuid": "text", "bytes": "text", "records": "text", "bool": "flag"}.get(kind, "number")


def lookup(name: str) -> Operand | None:
    """What a name stands for; None if it is unknown."""
    found: Operand | None = fields().get(name)
    if found is None and name.partition(".")[0] in ("request", "response"):
        found = deep_fields().get(".".join(map(snake, name.split("."))))
    return found


def names_like(name: str) -> list[str]:
    """The names among which suggestions for an unknown name are searched."""
    if name.partition(".")[0] in ("request", "response"):
        return [*fields(), *deep_fields()]
    return list(fields())
