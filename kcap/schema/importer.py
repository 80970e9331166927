"""Kafka's message definitions in, the project's compact facts out; run once for a new Kafka release.

    python -m kcap.schema.importer SOURCE... [-o OUT]

A source is a Kafka jar that holds `*.json` message definitions (2.4 and later), a folder of them, or a `.jsonl` table of
version ranges that `probe/ApiRanges.java` took from older jars; the name of a jar or folder carries the release
(`kafka-clients-4.4.0.jar`, `4.4.0/`). Only facts are taken (names, types, versions, tags, defaults, nullability, entity types),
never the comments and `about` texts.

Law: the newest release that has a version of a message describes it, older releases only the versions it dropped; the output
depends on the definitions alone, not on the order of the sources.
"""

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kcap.errors import UsageError
from kcap.inputs import reading, refuse_input
from kcap.schema.facts import FACTS, HEADERS, Versions, meet, parse_versions, show_versions

Json = dict[str, Any]
Release = tuple[int, ...]

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_FAMILIES = ("group-coordinator", "transaction-coordinator", "share-coordinator", "metadata", "storage")
"""Name endings of the artifacts other than kafka-clients; each has the record types of one internal topic."""


def definitions(source: Path) -> Iterator[tuple[Release, str, Json]]:
    """Yields (release, family, definition) of every message in a jar or folder.

    Raises ValueError if the name has no release or a definition cannot be parsed.
    """
    found = _RELEASE.findall(source.name)
    if not found:
        raise ValueError(f"{source.name}: no Kafka release in the name")
    release = tuple(int(part) for part in found[-1])
    family = next((name for name in _FAMILIES if source.name.startswith(f"kafka-{name}-")), "clients")
    if source.is_dir():
        texts = {path.name: path.read_text() for path in sorted(source.glob("*.json"))}
    else:
        with zipfile.ZipFile(source) as jar:
            names = sorted(n for n in jar.namelist() if re.search(r"(^|/)(message|metadata)/[^/]+\.json$", n))
            texts = {name: jar.read(name).decode() for name in names}
    for name, text in texts.items():
        try:
            # Text after the definition is ignored, as in Kafka's own generator (2.8 has a stray comma there).
            yield release, family, json.JSONDecoder().raw_decode(_COMMENT.sub("", text).strip())[0]
        except ValueError as error:
            raise ValueError(f"{source.name}: {name}: {error}") from error


def _field(field: Json, within: Versions) -> list[Any] | None:
    """The facts of one field as `[name, type, versions, attributes]`; None if it is outside the versions `within`."""
    tagged = parse_versions(field.get("taggedVersions"))
    versions = parse_versions(field.get("versions")) or tagged
    here = meet(versions, within) if versions else None
    if versions is None or here is None:
        return None
    fact: Json = {}
    if tagged and meet(tagged, within):
        fact["tagged"] = show_versions(tagged)
        fact["tag"] = field["tag"]
    nullable = parse_versions(field.get("nullableVersions"))
    if nullable and meet(nullable, within):
        fact["nullable"] = show_versions(nullable)
    for name, key in (("default", "default"), ("entity", "entityType"), ("flexible", "flexibleVersions")):
        if key in field:
            fact[name] = field[key]
    if "fields" in field:
        fact["fields"] = _fields(field["fields"], here)
    return [field["name"], field["type"], show_versions(versions), *([fact] if fact else [])]


def _fields(fields: list[Json], within: Versions) -> list[Any]:
    return [fact for field in fields if (fact := _field(field, within))]


def _used(fields: list[Any], structs: Json) -> set[str]:
    """Names of the common structs that `fields` refer to, directly or indirectly."""
    names: set[str] = set()
    for field in fields:
        kind = field[1].removeprefix("[]")
        if kind in structs:
            names |= {kind} | _used(structs[kind], structs)
        names |= _used(field[3].get("fields", []) if len(field) > 3 else [], structs)
    return names


def _variant(definition: Json, within: Versions) -> list[Any]:
    """`[versions, flexible versions, fields, common structs]` of a definition, restricted to `within`."""
    structs = {struct["name"]: _fields(struct["fields"], within) for struct in definition.get("commonStructs", [])}
    fields = _fields(definition.get("fields", []), within)
    used = _used(fields, structs)
    flexible = parse_versions(definition.get("flexibleVersions"))
    return [
        show_versions(within),
        show_versions(flexible) if flexible and meet(flexible, within) else "none",
        fields,
        {name: facts for name, facts in structs.items() if name in used},
    ]


def _rest(wanted: Versions, have: list[Versions]) -> list[Versions]:
    """The parts of `wanted` that no range of `have` covers."""
    parts = [wanted]
    for low, high in have:
        parts = [
            piece
            for first, last in parts
            for piece in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if piece[0] <= piece[1]
        ]
    return parts


def _merged(releases: dict[Release, Json]) -> Json:
    """Merges one message of several releases: its variants from the oldest version to the newest."""
    variants: list[list[Any]] = []
    covered: list[Versions] = []
    for release in sorted(releases, reverse=True):
        valid = parse_versions(releases[release]["validVersions"])
        for part in _rest(valid, covered) if valid else []:
            variants.append(_variant(releases[release], part))
            covered.append(part)
    variants.sort(key=lambda variant: parse_versions(variant[0]) or (0, 0))
    newest = releases[max(releases)]
    fact: Json = {"name": newest["name"], "kind": newest["type"]}
    if "apiKey" in newest:
        fact["key"] = newest["apiKey"]
    return fact | {"variants": variants}


def _header_steps(message: Json, header: Json) -> list[list[int]]:
    """`[[first version of the message, header version], ...]`. A flexible body has the newest flexible header that every
    release so far gives it; another body has the newest header before those (Kafka's generator, ApiMessageType).
    """
    flexible_header = parse_versions(header["variants"][-1][1])
    assert flexible_header
    highest = HEADERS[header["name"]]
    steps: list[list[int]] = []
    for variant in message["variants"]:
        valid, flexible = parse_versions(variant[0]), parse_versions(variant[1])
        assert valid
        turn = flexible[0] if flexible else valid[1] + 1
        for first, last, version in (
            (valid[0], min(valid[1], turn - 1), flexible_header[0] - 1),
            (max(valid[0], turn), valid[1], highest),
        ):
            if first <= last and (not steps or steps[-1][1] != version):
                steps.append([first, version])
    return steps


def _api(key: int, request: Json, response: Json, headers: dict[str, Json], releases: dict[Release, Json]) -> Json:
    """The index entry of one API: what the registry needs without parsing the messages."""
    fact: Json = {
        "key": key,
        "name": request["name"].removesuffix("Request"),
        "releases": [],
        "request_headers": _header_steps(request, headers["RequestHeader"]),
        "response_headers": _header_steps(response, headers["ResponseHeader"]),
    }
    for _, definition in sorted(releases.items()):
        if parse_versions(definition["validVersions"]):
            fact["listeners"] = definition.get("listeners", fact.get("listeners", []))
    return fact


def _taken(definition: Json) -> Json | None:
    """The versions of an API that one release accepts; None if it accepts none."""
    if not parse_versions(definition["validVersions"]):
        return None
    valid: Json = {"versions": definition["validVersions"]}
    if definition.get("latestVersionUnstable"):
        valid["unstable"] = True
    if "deprecatedVersions" in definition and definition["deprecatedVersions"] != "none":
        valid["deprecated"] = definition["deprecatedVersions"]
    return valid


def _steps(taken: dict[Release, Json | None], known: list[Release]) -> list[list[Any]]:
    """`[[release, what it accepts or null], ...]`, with an entry where a release differs from the previous one."""
    steps: list[list[Any]] = []
    before: Json | None = None
    for release in known:
        fact = taken.get(release)
        if fact != before:
            steps.append([called(release, known), fact])
        before = fact
    return steps


def called(release: Release, known: list[Release]) -> str:
    """The release without its patch number: `4.4`, `0.10.2`. An earlier patch of the same release keeps it: `4.0.0`."""
    size = 3 if release[0] == 0 else 2
    newest = max(other for other in known if other[:size] == release[:size])
    return ".".join(map(str, release[:size] if release == newest else release))


def ranges(source: Path) -> Iterator[tuple[Release, dict[int, Json | None]]]:
    """Yields (release, API key -> what it accepts) for each line of a table that `probe/ApiRanges.java` printed."""
    for line in source.read_text().splitlines():
        fact = json.loads(line)
        apis: dict[int, Json | None] = {
            int(key): {"versions": show_versions(_range(text))} for key, text in fact["apis"].items()
        }
        yield tuple(map(int, fact["release"].split("."))), apis


def _range(text: str) -> Versions:
    first, last = text.split("-")
    return int(first), int(last)


def facts(sources: list[Path]) -> str:
    """The text of the facts file: a first line with the index of the APIs, then one line per message, sorted by name."""
    found: dict[tuple[str, int | str], dict[Release, Json]] = {}
    families: dict[str, str] = {}
    taken: dict[int, dict[Release, Json | None]] = {}
    known: set[Release] = set()
    for source in sources:
        if source.suffix == ".jsonl":
            for release, apis in ranges(source):
                known.add(release)
                for key, fact in apis.items():
                    taken.setdefault(key, {})[release] = fact
            continue
        for release, family, definition in definitions(source):
            side = definition["type"]
            place = (side, definition["apiKey"]) if side in ("request", "response") else (side, definition["name"])
            found.setdefault(place, {})[release] = definition
            families[definition["name"]] = family
            known.add(release)
            if side == "request":
                taken.setdefault(definition["apiKey"], {})[release] = _taken(definition)
    messages: dict[str, Json] = {}
    for (side, _), releases in found.items():
        message = _merged(releases)
        if side not in ("request", "response", "header"):
            message["family"] = families[message["name"]]
        messages[message["name"]] = message
    headers = {name: messages[name] for name in HEADERS}
    index = []
    for (side, number), releases in sorted(found.items(), key=str):
        if side == "request" and isinstance(number, int):
            request, response = (_merged(found[(kind, number)]) for kind in ("request", "response"))
            api: Json = _api(number, request, response, headers, releases)
            index.append(api | {"releases": _steps(taken[number], sorted(known))})
    index.sort(key=lambda api: int(api["key"]))
    first = {"releases": [called(release, sorted(known)) for release in sorted(known)], "apis": index}
    lines = [first, *(messages[name] for name in sorted(messages))]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Writes the facts of the given sources; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kcap.schema.importer", description="import Kafka message definitions")
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    parser.add_argument("-o", "--output", type=Path, default=FACTS)
    options = parser.parse_args(arguments)
    try:
        with reading(map(str, options.sources)):
            refuse_input(str(options.output))
        text = facts(options.sources)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, UsageError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
