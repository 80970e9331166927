"""`kcap schema`: Kafka's messages as far as kcap knows them, and the columns of kcap's own tables.

In: nothing, an API, an API and a version, or an option for the tables. Out: the list of APIs, the API's history, the fields of
both messages, or the dictionary. Law: everything comes from the registry and the imported schemas that decoding uses.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

from kcap.cli.decode import api_key_of
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.schema import registry
from kcap.schema.facts import apis, releases, show_versions, within
from kcap.schema.releases import deprecated_in, first_release, removed_in, taken

if TYPE_CHECKING:
    from kcap.schema.facts import Api, Field, MessageSpec, Variant

SIDES: Final = ("request", "response")
BEFORE_REMOVALS: Final = "3.9"
"""The last release with the versions that KIP-896 removed, shown beside the newest."""
Shape = dict[str, str]
"""Path of a field -> its type and special properties."""


@click.command("schema", short_help="Show Kafka's messages: APIs, versions, fields.")
@click.argument("api", metavar="[API", required=False)
@click.argument("version", metavar="[VERSION]]", required=False, type=int)
@click.option("--tables", "listing", flag_value="tables", help="List kcap's tables and what a row of each is.")
@click.option(
    "--columns",
    "table",
    metavar="TABLE",
    type=click.Choice(tuple(TABLES)),
    help="List the columns of a table: type, unit, meaning, when it is null, Wireshark's field.",
)
@click.option("--flags", "listing", flag_value="flags", help="List the values of the column flags.")
@click.option("--weirds", "listing", flag_value="weirds", help="List the oddities that kcap health counts.")
def run(api: str | None, version: int | None, listing: str | None, table: str | None) -> int:
    """Show all APIs and their versions. With API: what each version changed. With VERSION: the fields of both messages.

    API is a name (case-insensitive) or an API key.
    """
    from kcap.cli.report_formats import screen_width
    from kcap.reports.text import in_columns

    width = screen_width()
    if table is not None or listing is not None:
        if api is not None or (table is not None and listing is not None):
            raise UsageError("one thing at a time: an API, --tables, --columns TABLE, --flags or --weirds")
        from kcap.cli import dictionary

        lists = {"tables": dictionary.tables, "flags": dictionary.flags, "weirds": dictionary.weirds}
        lines = in_columns(dictionary.columns(table) if table is not None else lists[str(listing)](), width)
    elif api is None:
        lines = in_columns(index(), width)
    else:
        found = registry.api(api_key_of(api))
        if found is None:
            raise UsageError(f"no API has the key {api}; kcap schema lists them")
        lines = within_screen(history(found) if version is None else fields_of(found, version), width)
    for line in lines:
        print(line)
    return 0


def within_screen(lines: Iterable[str], width: int) -> Iterator[str]:
    """Lines no wider than the terminal; long ones continue on the next line."""
    from kcap.reports.text import wrapped

    for line in lines:
        indent = len(line) - len(line.lstrip())
        yield from wrapped(line, width, " " * (indent + 4)) or [""]


def index() -> list[list[str]]:
    """All APIs, one per row, below the headings."""
    shown = [BEFORE_REMOVALS, releases()[-1]]
    heads = ["key", "api", "since", *shown, "flexible", "request header", "response header", "note"]
    rows = [heads]
    for api in apis().values():
        since = min((first_release(api.key, version) or "" for version in versions_of(api)), key=releases().index)
        ranges = [version_text(api, name) for name in shown]
        flexible = next((str(first) for first, header in api.request_headers if header >= 2), "-")
        headers = [steps(api.request_headers), steps(api.response_headers)]
        rows.append([str(api.key), api.name, since, *ranges, flexible, *headers, note(api)])
    return rows


def versions_of(api: "Api") -> range:
    """Every version of any release."""
    return range(api.versions[0], api.versions[1] + 1)


def version_text(api: "Api", release: str) -> str:
    """`3-13`, `3-13*` if the last one is not final, `-` if the release does not have the API."""
    found = taken(api.key, release)
    return "-" if found is None else show_versions(found.versions) + "*" * found.unstable


def steps(headers: Sequence[tuple[int, int]]) -> str:
    """`1, from v9 2`."""
    first, *rest = headers
    return ", ".join([str(first[1]), *(f"from v{version} {header}" for version, header in rest)])


def note(api: "Api") -> str:
    """Which versions are removed or deprecated, and since when."""
    newest = taken(api.key, releases()[-1])
    said = []
    for word, since in (("removed", removed_in), ("deprecated", deprecated_in)):
        for release, group in groupby(versions_of(api), key=partial(since, api.key)):
            versions = list(group)
            if release is None or (word == "deprecated" and removed_in(api.key, versions[0])):
                continue
            whole = len(versions) == len(versions_of(api))
            said.append(
                f"{word} in {release}" if whole else f"{show_versions((versions[0], versions[-1]))} {word} in {release}"
            )
    if newest is not None and newest.unstable:
        said.append("* not final")
    return "; ".join(said)


def present(variant: "Variant", fields: Sequence["Field"], version: int) -> Iterator[tuple["Field", Sequence["Field"]]]:
    """The fields that a version has, each with its nested fields."""
    for field in fields:
        if within(field.versions, version):
            yield field, field.fields or variant.structs.get(field.type.removeprefix("[]"), ())


def special(field: "Field", version: int) -> str:
    """The type and special properties of the field in this version."""
    marks = [field.type]
    if within(field.nullable, version):
        marks.append("nullable")
    if within(field.tagged, version):
        marks.append(f"tag {field.tag}")
    return " ".join(marks)


def shape(variant: "Variant", version: int) -> Shape:
    """Every field of a version by its path."""
    found: Shape = {}

    def walk(fields: Sequence["Field"], path: str) -> None:
        for field, inner in present(variant, fields, version):
            found[path + field.name] = special(field, version)
            walk(inner, f"{path}{field.name}.")

    walk(variant.fields, "")
    return found


def changes(before: Shape, after: Shape) -> list[str]:
    """`+ Topics.TopicId: uuid`, `- ...`, `~ ...`; nested fields of an added or removed field are not listed."""

    def outermost(paths: Sequence[str], others: Shape) -> list[str]:
        return [path for path in paths if path.rpartition(".")[0] in others or "." not in path]

    gone = [path for path in before if path not in after]
    new = [path for path in after if path not in before]
    said = [f"- {path}: {before[path]}" for path in outermost(gone, after)]
    said += [f"+ {path}: {after[path]}" for path in outermost(new, before)]
    said += [f"~ {path}: {before[path]} -> {after[path]}" for path in after if path in before and before[path] != after[path]]
    return said


def messages(api: "Api") -> list["MessageSpec | None"]:
    """The request and the response of an API."""
    return [registry.body(api.key, side) for side in (registry.REQUEST, registry.RESPONSE)]


def history(api: "Api") -> Iterator[str]:
    """What each version of an API changed."""
    known = releases()
    yield f"{api.name}, API key {api.key}, served by {', '.join(api.listeners) or 'no listener'}"
    for text, group in groupby(known, key=partial(version_text, api)):
        names = list(group)
        if text != "-" or names[0] != known[0]:
            yield f"  Kafka {span(names)}: " + ("does not have it" if text == "-" else f"versions {text}")
    said = note(api)
    if said:
        yield f"  {said}"
    bodies = messages(api)
    shapes: list[Shape | None] = [None, None]
    for version in versions_of(api):
        yield ""
        yield f"v{version}  ({takers(api, version)})" + ("  flexible" if is_flexible(api, version) else "")
        for side, body in enumerate(bodies):
            variant = body.variant(version) if body else None
            if variant is None:
                continue
            now, before = shape(variant, version), shapes[side]
            said_here = [f"{len(now)} fields"] if before is None else changes(before, now) or ["same fields"]
            shapes[side] = now
            for at, text in enumerate(said_here):
                yield f"  {SIDES[side] if at == 0 else '':<8}  {text}"


def span(names: Sequence[str]) -> str:
    """`2.1 to 2.3`, or the only name."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def takers(api: "Api", version: int) -> str:
    """The releases that accept a version: `1.0 to 3.9`."""
    having = [name for name in releases() if (found := taken(api.key, name)) and within(found.versions, version)]
    return span(having) if having else "no release"


def is_flexible(api: "Api", version: int) -> bool:
    """Whether the version has tag sections and compact forms (KIP-482)."""
    request = messages(api)[0]
    variant = request.variant(version) if request else None
    return variant is not None and within(variant.flexible, version)


def fields_of(api: "Api", version: int) -> Iterator[str]:
    """The fields of both messages of a version. Raises UsageError for a version that no release has."""
    if not registry.known(api.key, version):
        raise UsageError(f"{api.name} has no version {version}; it has {show_versions(api.versions)}")
    headers = registry.request_header_version(api.key, version), registry.response_header_version(api.key, version)
    flexible = "flexible" if is_flexible(api, version) else "not flexible"
    for side, body in enumerate(messages(api)):
        variant = body.variant(version) if body else None
        if side:
            yield ""
        yield f"{api.name} {SIDES[side]} v{version}, header v{headers[side]}, {flexible}"
        if variant is not None:
            yield from field_lines(variant, variant.fields, version, 1)


def field_lines(variant: "Variant", fields: Sequence["Field"], version: int, depth: int) -> Iterator[str]:
    """Fields with their nested fields, indented."""
    for field, inner in present(variant, fields, version):
        default = "" if field.default in (None, "") else f" = {field.default}"
        entity = f"  ({field.entity})" if field.entity else ""
        yield f"{'  ' * depth}{field.name}: {special(field, version)}{default}{entity}"
        yield from field_lines(variant, inner, version, depth + 1)
