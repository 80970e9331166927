"""Connections and their stories: all of them, those with trouble first where they are too many."""

import pytest

from kcap import limits
from kcap.schema.facts import releases
from kcap.tui.versions_source import VersionsInside, VersionsRequest
from kcap.tui.views import stories_model as model
from kcap.tui.views.sheet import Line, Sheet
from tests.tui.views.laws import lines_hold, sheet_holds
from tests.tui.views.stub import talks_of

CAPTURES = ("java-transactions.pcap", "go-franz.pcap", "raw-frames.pcap", "sasl-raw-tokens.pcap", "fallback-0.9.pcap")


def sheet_of(name: str) -> Sheet:
    source = VersionsInside(talks_of(name))
    page = source.page(VersionsRequest([name], releases()[-1]))
    return model.connections(page.rows, page.connections, source.story)


def described(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_connection_has_a_line_and_a_story(name: str) -> None:
    sheet, profiles = sheet_of(name), talks_of(name)
    assert {row["connection"] for row in sheet.rows} == {*profiles.profiles, *(line["connection"] for line in profiles.others)}
    assert [row["first_ns"] for row in sheet.rows] == sorted(row["first_ns"] for row in sheet.rows)
    sheet_holds(sheet, name)
    assert sheet.detail is not None
    for row in sheet.rows:
        for width in (48, 70):
            lines_hold(sheet.detail(row, width), width)


def test_columns_of_apis_fit() -> None:
    """The verdict is in sight however long the names are."""
    rows = [("DescribeUserScramCredentials", "0(1) 1(2) 2(3) 3(4)", "0-4", [("ok", "good"), ("  removed in 4.0", "bad")])]
    for width in (48, 60, 100):
        head, line = model.apis(rows, width)
        lines_hold([head, line], width)
        assert described([line]).endswith("ok  removed in 4.0")
    assert model.apis([], 50) == []


def test_of_many_those_with_trouble_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sheet_of("raw-frames.pcap")
    monkeypatch.setattr(limits, "VIEW_ROWS", 6)
    some = sheet_of("raw-frames.pcap")
    assert len(some.rows) == 6
    assert {row["verdict"] for row in some.rows} <= set(model.WRONG) | {"", "unnegotiated", "ok"}
    wrong = [row["connection"] for row in whole.rows if row["verdict"] in model.WRONG]
    assert set(wrong[:6]) <= {row["connection"] for row in some.rows}
    assert some.foot == f"6 of {len(whole.rows)} connections, worst first"


def test_a_refused_question_is_told_and_asked_again() -> None:
    sheet = sheet_of("go-franz.pcap")
    asked = {row["api_versions"]: row["api_versions_tone"] for row in sheet.rows}
    assert any("refused" in text and " ok" in text and tone == "care" for text, tone in asked.items())
    row = next(row for row in sheet.rows if "refused" in row["api_versions"])
    assert sheet.detail is not None
    reported = described(sheet.detail(row, 100))
    assert "UNSUPPORTED_VERSION (35)" in reported
    assert "tries again" in reported
    assert row["lost_ns"] > 0


def test_connections_that_speak_no_kafka_have_a_story_too() -> None:
    sheet = sheet_of("raw-frames.pcap")
    http = [row for row in sheet.rows if "http" in row["protocol"]]
    assert "protocol" in [field.head for field in sheet.fields]
    assert {row["api_versions"] for row in sheet.rows if row["protocol"]} == {""}
    assert http
    assert sheet.detail is not None
    assert "no Kafka request" in described(sheet.detail(http[0], 100))
    assert sheet.down(http[0]) is None
