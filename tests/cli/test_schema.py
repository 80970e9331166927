"""Laws of `kcap schema`: what it tells is what decoding goes by."""

import pytest

from kcap.cli.main import main
from kcap.cli.schema import changes
from kcap.schema import registry


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["schema", *arguments]) == 0
    return capsys.readouterr().out


def test_the_list_has_every_api(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported(capsys).splitlines()
    assert len(lines) == 1 + len(registry.api_keys())
    assert lines[1].split()[:6] == ["0", "Produce", "0.10.0", "0-11", "3-13", "9"]
    assert lines[1].endswith(" 0-2 removed in 4.0")
    assert lines[5].endswith(" removed in 4.0")


def test_the_history_of_an_api(capsys: pytest.CaptureFixture[str]) -> None:
    text = reported(capsys, "fetch")
    assert "v13  (3.1 to 4.4)  flexible\n  request   - Topics.Topic: string\n" in text
    assert "            + Topics.TopicId: uuid\n" in text
    assert "v18  (4.1 to 4.4)" in text
    assert "  Kafka 2.7 to 3.0: versions 0-12\n" in text


@pytest.mark.parametrize("key", registry.api_keys())
def test_every_version_can_be_shown(capsys: pytest.CaptureFixture[str], key: int) -> None:
    versions = registry.version_range(key)
    assert versions
    assert reported(capsys, str(key))
    assert f"request v{versions[1]}" in reported(capsys, str(key), str(versions[1]))


def test_the_fields_of_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    text = reported(capsys, "metadata", "1")
    assert text.startswith(
        "Metadata request v1, header v1, not flexible\n  Topics: []MetadataRequestTopic nullable\n    Name: string"
    )
    assert "\nMetadata response v1, header v0" in text
    assert "controlledshutdown request v0, header v0" in reported(capsys, "controlledshutdown", "0").lower()


@pytest.mark.parametrize("arguments", [["fetc"], ["fetch", "99"], ["9999"]], ids=" ".join)
def test_what_does_not_exist_is_told(arguments: list[str]) -> None:
    assert main(["schema", *arguments]) == 2


def test_changes_name_the_outermost_field_alone() -> None:
    before = {"A": "int8", "B": "[]B", "B.C": "int8"}
    after = {"A": "int16", "D": "[]D", "D.E": "int8"}
    assert changes(before, after) == ["- B: []B", "+ D: []D", "~ A: int8 -> int16"]
