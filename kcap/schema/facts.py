"""Reads the facts file: text in, frozen records that describe Kafka's messages out.

The first line indexes the APIs; each further line is one message. A message's line is parsed when the message is requested, so
that start-up costs only the index. Law: this module does not know what a version means for the bytes; `kcap.decode.plan` does.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Versions = tuple[int, int]
"""First and last version, both included."""

VERSION_MAX = 32767
"""Last version of an open range ("and later"); api_version is an int16."""

FACTS = Path(__file__).with_name("facts.jsonl")

HEADERS = {"RequestHeader": 2, "ResponseHeader": 1}
"""Header schemas, and the version of each that flexible APIs use (Kafka's ApiMessageType generator)."""


def parse_versions(text: str | None) -> Versions | None:
    """Parses `3`, `3-5` or `3+` to (first, last); None for an empty text and `none`. Raises ValueError for anything else."""
    if text is None or text in ("", "none"):
        return None
    if text.endswith("+"):
        return int(text[:-1]), VERSION_MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def show_versions(versions: Versions) -> str:
    """The inverse of `parse_versions`."""
    first, last = versions
    if last == VERSION_MAX:
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def meet(a: Versions, b: Versions) -> Versions | None:
    """The versions in both ranges; None if there are none."""
    first, last = max(a[0], b[0]), min(a[1], b[1])
    return (first, last) if first <= last else None


def within(versions: Versions | None, version: int) -> bool:
    """Whether `version` is one of `versions`."""
    return versions is not None and versions[0] <= version <= versions[1]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, as in Kafka's message definition (apache/kafka, message/README.md)."""

    name: str
    type: str
    """`int32`, `string`, `[]int32`, `[]Name` of a struct, ..."""
    versions: Versions
    nullable: Versions | None = None
    tagged: Versions | None = None
    tag: int = -1
    default: Any = None
    """As in the definition: a number, a text such as `-1`, `0x7fffffff` or `null`, or None if there is none."""
    entity: str = ""
    """`topicName`, `brokerId`, `groupId`, `producerId`, `transactionalId`, or empty."""
    rigid: bool = False
    """Whether it keeps its plain form in flexible versions (the request header's client id, KIP-511)."""
    fields: tuple["Field", ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """A run of versions of a message that one Kafka release describes."""

    versions: Versions
    flexible: Versions | None
    fields: tuple[Field, ...]
    structs: dict[str, tuple[Field, ...]]


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A request, response, header, or one of the blobs inside bytes fields and records."""

    name: str
    kind: str
    """`request`, `response`, `header`, `data`, `coordinator-key`, `coordinator-value`, `metadata`."""
    key: int | None
    """API key, or record type."""
    family: str
    """The component that reads the blob: `clients`, `group-coordinator`, ..., `storage`; empty for requests and responses."""
    variants: tuple[Variant, ...]

    def variant(self, version: int) -> Variant | None:
        """The description that applies to `version`; None if no release has it."""
        return next((v for v in self.variants if within(v.versions, version)), None)

    @property
    def versions(self) -> Versions:
        """First and last version of any release."""
        return self.variants[0].versions[0], self.variants[-1].versions[1]


@dataclass(frozen=True, slots=True)
class Release:
    """The versions of an API that one Kafka release accepts."""

    versions: Versions
    unstable: bool = False
    """Whether the last of `versions` is not final; brokers refuse it unless they are configured otherwise."""
    deprecated: Versions | None = None


@dataclass(frozen=True, slots=True)
class Api:
    """One API, as in the index."""

    key: int
    name: str
    versions: Versions
    request_headers: tuple[tuple[int, int], ...]
    """(first API version, header version), ascending."""
    response_headers: tuple[tuple[int, int], ...]
    changes: tuple[tuple[str, Release | None], ...] = ()
    """(Kafka release, what it accepts), ascending, with an entry where a release differs from the previous one."""
    listeners: tuple[str, ...] = ()
    """Which listeners serve it: `broker`, `controller`, `zkBroker`."""


@functools.cache
def _lines() -> list[str]:
    # The loader can also read from a zip file on the path, by a name that begins like the module's own: "./kcap.zip/...".
    loader: Any = __spec__.loader
    data: bytes = loader.get_data(__file__.removesuffix(Path(__file__).name) + FACTS.name)
    return data.decode().splitlines()


@functools.cache
def _places() -> dict[str, int]:
    """Message name -> line. The name is the first key of its line, so that no line has to be parsed for this."""
    return {line[9 : line.index('"', 9)]: at for at, line in enumerate(_lines()) if at}


def _release(fact: dict[str, Any]) -> Release:
    versions = parse_versions(fact["versions"])
    assert versions
    return Release(versions, bool(fact.get("unstable")), parse_versions(fact.get("deprecated")))


@functools.cache
def _index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_lines()[0])
    return found


@functools.cache
def releases() -> tuple[str, ...]:
    """The Kafka releases that have facts, oldest first: `0.10.0`, ..., `4.4`."""
    return tuple(_index()["releases"])


@functools.cache
def apis() -> dict[int, Api]:
    """Every API by its key."""
    index = {}
    for fact in _index()["apis"]:
        changes = tuple((name, None if release is None else _release(release)) for name, release in fact["releases"])
        taken = [release.versions for _, release in changes if release is not None]
        versions = min(first for first, _ in taken), max(last for _, last in taken)
        requests, responses = (tuple((a, b) for a, b in fact[side]) for side in ("request_headers", "response_headers"))
        index[fact["key"]] = Api(fact["key"], fact["name"], versions, requests, responses, changes, tuple(fact["listeners"]))
    return index


def _field(fact: list[Any]) -> Field:
    name, kind, versions = fact[:3]
    more = fact[3] if len(fact) > 3 else {}
    return Field(
        name=name,
        type=kind,
        versions=parse_versions(versions) or (0, VERSION_MAX),
        nullable=parse_versions(more.get("nullable")),
        tagged=parse_versions(more.get("tagged")),
        tag=more.get("tag", -1),
        default=more.get("default"),
        entity=more.get("entity", ""),
        rigid=more.get("flexible") == "none",
        fields=tuple(map(_field, more.get("fields", ()))),
    )


def _variant(fact: list[Any]) -> Variant:
    versions, flexible, fields, structs = fact
    return Variant(
        parse_versions(versions) or (0, VERSION_MAX),
        parse_versions(flexible),
        tuple(map(_field, fields)),
        {name: tuple(map(_field, inner)) for name, inner in structs.items()},
    )


def message_names() -> list[str]:
    """The names of all messages, sorted."""
    return list(_places())


@functools.cache
def message(name: str) -> MessageSpec | None:
    """The message with that schema name (`FetchRequest`, `OffsetCommitKey`); None if there is none."""
    at = _places().get(name)
    if at is None:
        return None
    fact = json.loads(_lines()[at])
    return MessageSpec(
        fact["name"], fact["kind"], fact.get("key"), fact.get("family", ""), tuple(map(_variant, fact["variants"]))
    )
