"""Laws of the versions tables for people: they fit, and say what was asked."""

import pytest

from kcap.cli.versions_text import report as text_of
from kcap.cli.versions_text import story as story_of
from kcap.reports.text import Style
from kcap.reports.versions.identity import identify
from kcap.reports.versions.report import report
from kcap.reports.versions.story import of as story
from tests.reports.talking import of

NAMES = ("raw-frames.pcap", "java-transactions.pcap", "fallback-0.9.pcap", "old-java-new-broker.pcap", "sasl-raw-tokens.pcap")


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("name", NAMES)
def test_lines_fit(name: str, width: int) -> None:
    lines = text_of(report(of(name), [name], "4.4"), Style(width, False, True))
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    assert any(line.startswith("client ") for line in lines)


@pytest.mark.parametrize("width", [80, 160])
def test_stories_fit(width: int) -> None:
    whole = of("raw-frames.pcap")
    found = report(whole, [], "4.4")["diagnoses"]
    for uid in whole.profiles:
        lines = story_of(story(whole, uid, identify(whole), found), Style(width, False, True))
        assert all(len(line) <= width for line in lines), max(lines, key=len)


def test_the_color_is_for_what_breaks() -> None:
    lines = text_of(report(of("fallback-0.9.pcap"), [], "4.4"), Style(100, True, True))
    assert any("\x1b[" in line and " no " in line for line in lines)
