"""Laws of `kcap health`: a verdict for people, the same for machines."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from kcap.cli.main import main
from tests.cli.running import PCAPS, ROOT


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(PCAPS / "java-transactions.pcap")]) == 0
    sentence, empty, head, *points = capsys.readouterr().out.splitlines()
    assert sentence.startswith("Good: ")
    assert empty == ""
    assert head.split() == ["verdict", "point", "finding"]
    assert all(point.startswith(("ok ", " " * 20)) for point in points), "a long finding goes on below itself"
    assert any("50,590 captured = 50,590 framed + 0 skipped" in point for point in points)


def test_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--format", "json", str(PCAPS / "raw-frames.pcap")]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["report"] == "health"
    assert reported["captures"] == ["raw-frames.pcap"]
    assert {"point", "verdict", "sentence"} <= reported["rows"][0].keys()
    assert reported["left_out"] == {}
    assert {weird["kind"] for weird in reported["weirds"]} >= {"api_unknown", "not_kafka"}


def test_oddities_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(PCAPS / "raw-frames.pcap")]) == 0
    assert "api_unknown" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_told_and_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["health", str(PCAPS / "aiokafka.pcap"), str(ROOT / "README.md")]) == 3
    out, error = capsys.readouterr()
    assert out.startswith("Bad: ")
    assert "BAD      files" in out
    assert "no capture" in error


@pytest.mark.parametrize("suffix", [".md", ".html", ".txt"])
def test_every_form_begins_with_the_verdict_and_has_every_point(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"health{suffix}"
    assert main(["health", str(PCAPS / "raw-frames.pcap"), "-o", str(path)]) == 0
    text = unescape(re.sub(r"[\\`]", "", path.read_text()))
    places = [text.find(part) for part in ("Good: ", "never go back", "captured =", "correlation_reused")]
    assert places == sorted(places)
    assert places[0] >= 0
