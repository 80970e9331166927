"""Saves what the versions report needs of captures beside the tables of a folder, and reads it back.

In: connection profiles and the facts of the whole capture. Out: one compressed JSON file for each set of captures. Law: the
report from what was read back equals that from what was saved. The form is JSON, not pickle, since a folder may come from an
untrusted source.

The tables are not sufficient: they have neither the ranges that a broker offers of unused APIs, nor the requests before a
login.
"""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from kcap.errors import CaptureError, UsageError, said
from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.facts.merge import Facts, merged, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.identities import Identity
from kcap.reports.versions.merge import together
from kcap.reports.versions.profile import ApiVersionsResponse, ConnectionProfile
from kcap.reports.versions.profiles import ConnectionProfiles

MARKS: Final = "_sets"
"""Folder of the files that mark finished sets, `NAME.json`."""
FOLDER: Final = "_versions"
FORMAT: Final = 4
"""Version of the form; raised when it changes."""
SHARED: Final = (Offer, ApiVersionsResponse)
"""Types of values that many connections have in common: each value is written once."""
PARTS_OF_OFFER: Final = {"ranges": dict[int, tuple[int, int]]}
"""The parts of an offer, which packs them."""
Plain = Any
"""The types that JSON has."""


@dataclass(frozen=True, slots=True)
class SavedSet:
    """One set of captures."""

    captures: list[str]
    """Names of the files."""
    profiles: list[ConnectionProfile]
    others: list[dict[str, Any]]
    """Connections without an exchange."""
    offers: list[tuple[Server, Offer, str]]
    """Server, its offer, and the exchange that first had it."""
    features: dict[Server, dict[str, Any]]
    malformed: dict[str, str]
    left_out: Counter[str]
    facts: Facts


class Codec:
    """Converts typed values to JSON values and back, by their annotations; shared values become numbers."""

    def __init__(self, shared: dict[str, list[Plain]] | None = None) -> None:
        """`shared`: the shared values of a file that is read."""
        self.shared: dict[str, list[Plain]] = {kind.__name__: [] for kind in SHARED} if shared is None else shared
        self._numbers: dict[int, int] = {}
        self._made: dict[tuple[str, int], Any] = {}
        self._ways: dict[tuple[bool, Any], Callable[[Any], Any]] = {}

    def plain(self, kind: Any, value: Any) -> Plain:
        """A value of a type as a JSON value."""
        return self._way(False, kind)(value)

    def made(self, kind: Any, value: Plain) -> Any:
        """The value of a type from a JSON value. Raises TypeError, ValueError or LookupError if it is not one."""
        return self._way(True, kind)(value)

    def _way(self, back: bool, kind: Any) -> Callable[[Any], Any]:
        found = self._ways.get((back, kind))
        if found is None:
            found = self._ways[back, kind] = self._new(back, kind)
        return found

    def _new(self, back: bool, kind: Any) -> Callable[[Any], Any]:
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            (one,) = (part for part in inner if part is not NoneType)
            way = self._way(back, one)
            return lambda value: None if value is None else way(value)
        if origin is tuple and inner[-1] is not Ellipsis:
            ways = [self._way(back, part) for part in inner]
            out = tuple if back else list
            return lambda value: out(way(part) for way, part in zip(ways, value, strict=True))
        if origin in (tuple, list, set):
            way = self._way(back, inner[0])
            collect: Callable[[Iterable[Any]], Any] = origin if back else list
            return lambda value: collect(map(way, value))
        if origin in (dict, Counter):
            ways = [self._way(back, part) for part in (*inner, int)[:2]]
            first, second = ways
            if back:
                return lambda value: origin({first(key): second(entry) for key, entry in value})
            return lambda value: [[first(key), second(entry)] for key, entry in value.items()]
        if kind is Offer:
            hints: dict[str, Any] = PARTS_OF_OFFER
        elif is_dataclass(kind):
            known = get_type_hints(kind, localns={"Identity": Identity})
            hints = {field.name: known[field.name] for field in fields(kind)}
        else:
            return lambda value: value
        names, ways = list(hints), [self._way(back, hint) for hint in hints.values()]
        if not back:
            listed: Callable[[Any], Any] = lambda value: [way(getattr(value, name)) for way, name in zip(ways, names)]  # noqa: E731
            return partial(self._number, kind.__name__, listed) if kind in SHARED else listed
        build: Callable[[Any], Any] = lambda value: kind(*(way(part) for way, part in zip(ways, value, strict=True)))  # noqa: E731
        return partial(self._numbered, kind.__name__, build) if kind in SHARED else build

    def _number(self, name: str, listed: Callable[[Any], Plain], value: Any) -> int:
        """The number of a shared value; its parts are written at its first occurrence."""
        number = self._numbers.get(id(value))
        if number is None:
            parts = listed(value)
            number = self._numbers[id(value)] = len(self.shared[name])
            self.shared[name].append(parts)
        return number

    def _numbered(self, name: str, build: Callable[[Plain], Any], number: int) -> Any:
        """The shared value of a number."""
        if (name, number) not in self._made:
            self._made[name, number] = build(self.shared[name][number])
        return self._made[name, number]


def set_of(profiles: ConnectionProfiles, facts: Facts, captures: Sequence[str]) -> SavedSet:
    """The set to save for captures; `facts` are those of all of them."""
    offers = [(server, offer, example) for server, some in profiles.offers.items() for offer, example in some.values()]
    every = [one.open() for one in profiles.profiles.stored()]
    return SavedSet(
        list(captures), every, profiles.others, offers, profiles.features, profiles.malformed, profiles.left_out,
        replace(facts, names={}, topic_sources={}),
    )  # fmt: skip


def packed(one: SavedSet) -> bytes:
    """The content of a file."""
    codec = Codec()
    body = codec.plain(SavedSet, one)
    document = {"format": FORMAT, "shared": codec.shared, "set": body}
    return gzip.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), 6, mtime=0)


def unpacked(data: bytes, place: str) -> SavedSet:
    """The set of a file. Raises CaptureError, which names the file, for anything else."""
    try:
        document = json.loads(gzip.decompress(data))
        if document["format"] != FORMAT:
            raise CaptureError(f"{place}: written by another release of kcap (form {document['format']}): ingest it again")
        found: SavedSet = Codec(document["shared"]).made(SavedSet, document["set"])
    except (OSError, EOFError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise CaptureError(f"{place}: no saved versions: {type(error).__name__}") from None
    return found


def part_of(one: SavedSet) -> ConnectionProfiles:
    """The profiles of a set, without its facts."""
    made = ConnectionProfiles(MetadataTracker())
    for profile in one.profiles:
        made.profiles[profile.uid] = profile
    for server, offer, example in one.offers:
        made.offers.setdefault(server, {})[id(offer)] = offer, example
    made.others, made.features, made.malformed, made.left_out = one.others, one.features, one.malformed, one.left_out
    return made


def whole(sets: Sequence[SavedSet]) -> tuple[ConnectionProfiles, list[str]]:
    """The profiles of several sets as those of one capture, and the names of its files."""
    profiles = together(map(part_of, sets), tracker_of(merged(one.facts for one in sets)))
    return profiles, list(dict.fromkeys(name for one in sets for name in one.captures))


def place_of(folder: str, name: str) -> str:
    """The file of a set in a folder."""
    return f"{folder.rstrip('/')}/{FOLDER}/{name}.json.gz"


def is_saved(path: str) -> bool:
    """Whether a path is a folder with tables of sets."""
    return os.path.isdir(os.path.join(path, MARKS))


def read(folders: Sequence[str]) -> tuple[ConnectionProfiles, list[str]]:
    """The profiles of the finished sets of some folders, and the names of the captures.

    Raises CaptureError for a file that cannot be read, UsageError for a set that was saved without them.
    """
    sets = []
    for folder in folders:
        for mark in sorted(Path(folder, MARKS).glob("*.json")):
            place = place_of(folder, mark.stem)
            try:
                data = Path(place).read_bytes()
            except FileNotFoundError:
                raise UsageError(f"{folder}: set {mark.stem} was saved without {FOLDER}: ingest its captures again") from None
            except OSError as error:
                raise CaptureError(f"{place}: {said(error)}") from None
            sets.append(unpacked(data, place))
    return whole(sets)
