"""Laws of the pages: whole, self-contained, and proof against what clients call themselves."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.cli import report_formats
from kcap.cli.versions_page import document
from kcap.cli.versions_text import FACTS_SHOWN
from kcap.cli.versions_text import report as lines_of
from kcap.output.escaping import html_text
from kcap.reports.text import UNLIMITED, Style
from kcap.reports.versions import digest
from kcap.reports.versions.pages import brokers_of, features, releases, software
from kcap.reports.versions.report import report
from tests.reports.talking import of, profile, whole

OFFER = {3: (0, 13), 18: (0, 4)}


def html(made: dict[str, object]) -> str:
    """The page of a report."""
    return report_formats.html(document(made))


def markdown(made: dict[str, object]) -> str:
    """The report as Markdown."""
    return report_formats.markdown(document(made))


class Tags(HTMLParser):
    """Counts tags and what they load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.loads += [name for name, value in attrs if name in ("src", "href") and not str(value).startswith("#")]
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["raw-frames.pcap", "java-transactions.pcap", "fallback-0.9.pcap"])
def test_a_page_is_whole_and_loads_nothing(name: str) -> None:
    tags = Tags()
    text = html(report(of(name), [name], "4.4"))
    tags.feed(text)
    assert tags.open == []
    assert tags.loads == []
    assert "script" not in tags.names
    assert "http://" not in text.replace("http_on_kafka", "")


@given(st.text(max_size=30))
def test_names_from_the_wire_stay_text(name: str) -> None:
    made = report(whole(profile([(3, 1)], probe=0, offer=OFFER, client=name)), [name], "4.4")
    tags = Tags()
    tags.feed(html(made))
    assert tags.open == []
    assert tags.names <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table", "thead", "tbody", "tr", "th", "td",
        "a", "h3", "pre", "wbr",
    }  # fmt: skip
    for line in markdown(made).splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) >= 3


def test_tables_of_markdown_have_their_columns() -> None:
    lines = markdown(report(of("raw-frames.pcap"), ["raw-frames.pcap"], "4.4")).splitlines()
    width = 0
    for line in lines:
        if re.fullmatch(r"\|(---:?\|)+", line):
            width = line.count("---")
        elif line.startswith("|") and width:
            assert len(re.split(r"(?<!\\)\|", line)) - 2 == width
        elif not line:
            width = 0
    assert any("ApiVersions" in line for line in lines)


def plain(text: str) -> str:
    """Characters of a form without its markup and line breaks."""
    return re.sub(r"[\\\s]+", "", unescape(re.sub(r"<[^>]*>", " ", text)))


@pytest.mark.parametrize(
    "name",
    ["raw-frames.pcap", "old-java-new-broker.pcap", "sasl-raw-tokens.pcap", "java-transactions.pcap", "fallback-0.9.pcap",
     "kafka-0.8-clients.pcap"],
)  # fmt: skip
def test_every_form_says_what_the_json_has(name: str) -> None:
    """The answer, each failure with its advice, each client with its verdict, what breaks, each broker, each fact."""
    made = report(of(name), [name], "4.4")
    said = [*made["answer"], digest.inner(made), digest.replaced(made)]
    said += [row[part] for row in made["diagnoses"] for part in ("kind", "sentence", "advice", "example")]
    said += [text for row in made["clients"] if not row["is_broker"] for text in (
        digest.client_text(row), digest.address_text(row), software(row), digest.outcome(row), brokers_of(row),
    )]  # fmt: skip
    said += [row[part] for row in digest.against(made)[0] for part in ("example", "why")]
    said += [text for row in made["brokers"] for text in (releases(row), features(row), row["why"])]
    said += [row["sentence"] for row in made["facts"][:FACTS_SHOWN]]
    forms = {"markdown": markdown(made), "html": html(made), "text": "\n".join(lines_of(made, Style(UNLIMITED, False, True)))}
    for form, text in forms.items():
        missing = [one for one in said if one and plain(html_text(one)) not in plain(text)]
        assert missing == [], form
