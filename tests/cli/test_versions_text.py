"""Laws of the versions tables for people: they fit, and say what was asked."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kcap.cli.versions_text import explanation
from kcap.cli.versions_text import report as text_of
from kcap.cli.versions_text import story as story_of
from kcap.reports.text import Style
from kcap.reports.versions.explain import explanation_of
from kcap.reports.versions.identity import identify
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.report import report
from kcap.reports.versions.story import of as story
from tests.reports.talking import closed_by_server, of, of_stories, profile, whole
from tests.support import messages as m
from tests.support.wire import request

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


RANGES = {0: (0, 13), 1: (4, 18), 3: (0, 13), 18: (0, 4)}
GOLDEN = Path(__file__).parent.parent / "golden" / "versions"


def closed_after(folder: Path) -> ConnectionProfiles:
    """Sixty connections that the broker closes at the version of ListOffsets that Kafka 4.0 removed."""
    stories = [
        closed_by_server(
            m.began(40_000 + number, 10**9 + number * 50_000_000).client(request(2, 0, 2, bytes.fromhex("ffffffff00000000")))
        )
        for number in range(60)
    ]
    return of_stories(folder, *stories)


def localhost(folder: Path) -> ConnectionProfiles:
    """A broker that sends a client of another machine to localhost."""
    story = m.began().ask(m.api_versions(1), m.api_versions_answer(1, RANGES))
    return of_stories(folder, story.ask(m.metadata(2), m.metadata_answer(2, [(1, "localhost", 9092)])).close())


SIX: dict[str, Callable[[Path], ConnectionProfiles]] = {
    "healthy-java": lambda _: of("problems/healthy-1.pcap"),
    "old-java-new-broker": lambda _: of("old-java-new-broker.pcap"),
    "closed-after-list-offsets": closed_after,
    "login-failed": lambda _: of("problems/authentication-failed-loop.pcap"),
    "tls-confusion": lambda _: of("problems/tls-plaintext-confusion.pcap"),
    "advertised-localhost": localhost,
}
"""What is seen most at support desks."""


@pytest.mark.parametrize("name", SIX)
def test_what_is_seen_most_reads_as_it_was_reviewed(name: str, tmp_path: Path) -> None:
    """KCAP_GOLDEN=write writes the texts anew: to be read line by line before they are committed."""
    lines = text_of(report(SIX[name](tmp_path), [name], "4.4"), Style(100, False, True))
    path = GOLDEN / f"{name}.txt"
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    if os.environ.get("KCAP_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_an_explanation_says_that_a_client_settles_only_where_its_work_was_seen() -> None:
    works, begins = profile([(3, 1), (1, 12)]), profile([(3, 1)])
    lines = [explanation(explanation_of("app", ["4.0"], whole(made)), Style(200, False, True))[1] for made in (works, begins)]
    assert lines == [
        "settles with Kafka 4.0 on each API it uses",
        "cannot be judged: only Metadata was seen, no work, so what else it needs is not known",
    ]
