"""The importer: definitions of several releases in, one set of facts out."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kcap.schema.facts import FACTS
from kcap.schema.importer import facts, main

SCHEMAS = Path(__file__).resolve().parents[2].parent / "shared" / "tools" / "schemas"

HEADERS = {
    f"{name}.json": {"type": "header", "name": name, "validVersions": valid, "flexibleVersions": flexible, "fields": []}
    for name, valid, flexible in (("RequestHeader", "1-2", "2+"), ("ResponseHeader", "0-1", "1+"))
}
OLD: dict[str, Any] = {
    "apiKey": 5, "type": "request", "name": "OldRequest", "validVersions": "0-3", "flexibleVersions": "3+",
    "listeners": ["broker"], "deprecatedVersions": "0",
    "fields": [
        {"name": "Gone", "type": "int8", "versions": "0-1", "about": "prose"},
        {"name": "Kept", "type": "[]Inner", "versions": "1+", "fields": [{"name": "A", "type": "string", "versions": "1+"}]},
    ],
}  # fmt: skip
NEW: dict[str, Any] = {
    "apiKey": 5, "type": "request", "name": "NewRequest", "validVersions": "2-4", "flexibleVersions": "3+",
    "latestVersionUnstable": True,
    "commonStructs": [
        {"name": "Common", "versions": "0+", "fields": [{"name": "B", "type": "int8", "versions": "0+"}]},
        {"name": "Unused", "versions": "0+", "fields": []},
    ],
    "fields": [
        {"name": "Renamed", "type": "Common", "versions": "0+"},
        {"name": "Tag", "type": "int64", "taggedVersions": "4+", "tag": 0, "default": "0x7f"},
    ],
}  # fmt: skip


def answer(definition: dict[str, Any]) -> dict[str, Any]:
    return definition | {"type": "response", "name": definition["name"].replace("Request", "Response")}


def folder(place: Path, release: str, *definitions: dict[str, Any]) -> Path:
    target = place / release
    target.mkdir()
    for name, header in HEADERS.items():
        (target / name).write_text("// a comment\n" + json.dumps(header))
    for definition in definitions:
        (target / f"{definition['name']}.json").write_text("  // licence\n" + json.dumps(definition, indent=1))
    return target


def by_name(text: str) -> dict[str, Any]:
    return {line["name"]: line for line in map(json.loads, text.splitlines()[1:])}


def test_the_newest_release_describes_what_it_has(tmp_path: Path) -> None:
    """Older releases describe only the versions that were dropped; prose stays out."""
    old, new = folder(tmp_path, "3.9.2", OLD, answer(OLD)), folder(tmp_path, "4.4.0", NEW, answer(NEW))
    text = facts([old, new])
    assert facts([new, old]) == text
    message = by_name(text)["NewRequest"]
    assert [variant[0] for variant in message["variants"]] == ["0-1", "2-4"]
    assert message["variants"][0] == [
        "0-1", "none", [["Gone", "int8", "0-1"], ["Kept", "[]Inner", "1+", {"fields": [["A", "string", "1+"]]}]], {},
    ]  # fmt: skip
    assert message["variants"][1][2][1] == ["Tag", "int64", "4+", {"tagged": "4+", "tag": 0, "default": "0x7f"}]
    assert list(message["variants"][1][3]) == ["Common"]
    assert "prose" not in text


def test_the_index(tmp_path: Path) -> None:
    """Releases with their ranges, header versions as steps."""
    old, new = folder(tmp_path, "3.9.2", OLD, answer(OLD)), folder(tmp_path, "4.4.0", NEW, answer(NEW))
    index = json.loads(facts([old, new]).splitlines()[0])
    (api,) = index["apis"]
    assert index["releases"] == ["3.9", "4.4"]
    assert api["name"] == "New"
    assert api["releases"] == [["3.9", {"versions": "0-3", "deprecated": "0"}], ["4.4", {"versions": "2-4", "unstable": True}]]
    assert api["request_headers"] == [[0, 1], [3, 2]]
    assert api["response_headers"] == [[0, 0], [3, 1]]


def test_releases_without_definitions(tmp_path: Path) -> None:
    """What the probe took of older jars stands before what the definitions say; only changes make an entry."""
    table = tmp_path / "ranges.jsonl"
    table.write_text(
        "".join(f'{{"release":"{name}","apis":{{"5":"0-{last}"}}}}\n' for name, last in (("0.10.2.2", 1), ("1.0.2", 1)))
    )
    gone = {kind: definition | {"validVersions": "none"} for kind, definition in (("q", NEW), ("a", answer(NEW)))}
    sources = [table, folder(tmp_path, "3.9.2", OLD, answer(OLD)), folder(tmp_path, "4.4.0", *gone.values())]
    index = json.loads(facts(sources).splitlines()[0])
    assert index["releases"] == ["0.10.2", "1.0", "3.9", "4.4"]
    assert index["apis"][0]["releases"] == [
        ["0.10.2", {"versions": "0-1"}], ["3.9", {"versions": "0-3", "deprecated": "0"}], ["4.4", None],
    ]  # fmt: skip


def test_a_patch_that_differs_keeps_its_number(tmp_path: Path) -> None:
    """The newest patch stands for its release."""
    sources = [folder(tmp_path, "4.0.0", NEW, answer(NEW)), folder(tmp_path, "4.0.1", OLD, answer(OLD))]
    assert json.loads(facts(sources).splitlines()[0])["releases"] == ["4.0.0", "4.0"]


def test_jars_are_read_as_they_are(tmp_path: Path) -> None:
    """A jar with definitions gives the facts of the folder with the same."""
    source = folder(tmp_path, "4.4.0", NEW, answer(NEW))
    jar = tmp_path / "kafka-clients-4.4.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in source.iterdir():
            archive.write(path, f"common/message/{path.name}")
        archive.writestr("META-INF/other.json", "{}")
    assert facts([jar]) == facts([source])


def test_what_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr and exit code 2; the output is not touched."""
    out = tmp_path / "out.jsonl"
    (tmp_path / "nameless").mkdir()
    assert main([str(tmp_path / "nameless"), "-o", str(out)]) == 2
    (tmp_path / "1.2.3").mkdir()
    (tmp_path / "1.2.3" / "X.json").write_text("{")
    assert main([str(tmp_path / "1.2.3"), "-o", str(out)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert not out.exists()
    source = tmp_path / "4.3.0.jsonl"
    source.write_text("{}\n")
    assert main([str(source), "-o", str(tmp_path / "no" / ".." / source.name)]) == 2
    assert "input" in capsys.readouterr().err
    assert source.read_text() == "{}\n"
    assert main([str(folder(tmp_path, "4.4.0", NEW, answer(NEW))), "-o", str(out)]) == 0
    assert out.read_text().startswith('{"releases":["4.4"],"apis":')


@pytest.mark.skipif(not SCHEMAS.exists(), reason="the definitions of both releases are not beside the checkout")
def test_the_committed_facts_are_what_the_importer_writes() -> None:
    """Law: importing the definitions again changes nothing."""
    fresh = by_name(facts([SCHEMAS / "3.9.2", SCHEMAS / "4.4.0"]))
    committed = by_name(FACTS.read_text())
    assert len(fresh) > 180
    trial = {"ShareGroupHeartbeatRequest"}  # 4.0 changed version 0, which no release ever called final
    assert {name for name, line in fresh.items() if committed.get(name) != line} == trial
