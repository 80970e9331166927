"""Versions: the report's own verdicts, each count with its exchanges, a story for each connection."""

from functools import cache
from typing import Any

import pytest

from kcap.reports.versions.report import report
from kcap.schema.facts import releases
from kcap.tui.versions_source import VersionsInside, VersionsRequest
from kcap.tui.views import versions_model as model
from kcap.tui.views.sheet import Line, Sheet, widths_of
from tests.tui.views.laws import leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import talks_of

CAPTURES = (
    "java-transactions.pcap", "old-java-new-broker.pcap", "raw-frames.pcap", "fallback-0.9.pcap", "sasl-raw-tokens.pcap",
    "go-franz.pcap", "tls13.pcapng", "kafka-0.8-clients.pcap", "cluster-startup.pcap",
)  # fmt: skip


@cache
def made_of(name: str, target: str) -> dict[str, Any]:
    return report(talks_of(name), [name], target)


def sheets_of(name: str, target: str = releases()[-1]) -> dict[str, Sheet]:
    source = VersionsInside(talks_of(name))
    names = ("clients", "against", "diagnoses", "connections", "brokers", "ranges")
    return dict(zip(names, model.sheets(source.page(VersionsRequest([name], target)), source.story), strict=True))


def described(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_count_leads_to_as_many_exchanges(name: str) -> None:
    for sheet in sheets_of(name).values():
        sheet_holds(sheet, name)
        for row in sheet.rows:
            down = sheet.down(row)
            if down and sheet.name != "ranges":  # an advertised API may be unused
                assert leads_somewhere(name, down), (sheet.name, down)
            if sheet.detail is not None:
                for width in (48, 70):
                    lines_hold(sheet.detail(row, width), width)


@pytest.mark.parametrize("target", releases())
def test_any_release_may_be_the_target(target: str) -> None:
    sheets = sheets_of("raw-frames.pcap", target)
    assert sheets["clients"].fields[0].head == f"with {target}"
    verdict = sheets["clients"].fields[0]
    words = {"yes": "works", "no": "breaks", "unknown": "unknown"}
    for row in sheets["clients"].rows:
        assert verdict.text(row) == words[row["works_with_target"]]


def test_the_old_producer_breaks() -> None:
    sheets = sheets_of("old-java-new-broker.pcap")
    (row,) = sheets["clients"].rows
    texts = {field.head: field.text(row) for field in sheets["clients"].fields}
    assert texts["removed in"] == "4.0"
    assert texts["with 4.4"] == "breaks"
    detail = sheets["clients"].detail
    assert detail is not None
    assert "4.4 no longer takes Produce v2" in described(detail(row, 90))
    assert "error" in {row["level"] for row in sheets["diagnoses"].rows}


def test_brokers_that_differ_stand_out() -> None:
    apis = [{"api_key": 1, "api": "Fetch", "min": 4, "max": 18}]
    row = {"server_ip": "10.0.0.1", "server_port": 9092, "apis": apis}
    older = row | {"server_ip": "10.0.0.2", "apis": [apis[0] | {"max": 17}]}
    sheet = model.offers({"brokers": [row, older]})
    assert [field.text(sheet.rows[0]) for field in sheet.fields] == ["Fetch", "4-18", "4-17"]
    assert sheet.note == "1 API differs between nodes of one role"
    assert sheet.fields[1].tone is not None
    assert sheet.fields[1].tone(sheet.rows[0]) == "care"


def test_brokers_give_way_before_the_names_of_apis() -> None:
    apis = [
        {"api_key": key, "api": name, "min": 0, "max": 5} for key, name in ((15, "DescribeGroups"), (32, "DescribeConfigs"))
    ]
    sheet = model.offers({"brokers": [{"server_ip": f"10.0.0.{n}", "server_port": 19092, "apis": apis} for n in range(1, 9)]})
    widths = widths_of(sheet, sheet.rows, 78, all_columns=False)
    assert widths[0] >= len("DescribeConfigs")
    assert 2 <= sum(map(bool, widths[1:])) < 8


def test_a_controller_is_not_compared_with_brokers() -> None:
    """A KRaft controller has fewer APIs than a broker of the same release, and a guess without ApiVersions is a range."""
    broker = {"api_key": 0, "api": "Produce", "min": 0, "max": 13}
    both = {"api_key": 1, "api": "Fetch", "min": 4, "max": 18}
    row = {"server_ip": "10.0.0.1", "server_port": 9092, "role": "broker", "apis": [broker, both]}
    sheet = model.offers({"brokers": [row, row | {"server_port": 9093, "role": "controller", "apis": [both]}]})
    assert sheet.note == ""
    assert {sheet.fields[1].tone(one) for one in sheet.rows if sheet.fields[1].tone} == {""}
    found = model.brokers({"brokers": [
        row | {"release_min": release, "answers": answers} for release, answers in (("4.4", 2), ("4.1", 0))
    ]})  # fmt: skip
    assert found.note == "", "the release of the second is a guess from what it was sent"


def test_nothing_is_said_of_versions_that_were_not_seen() -> None:
    assert model.against(made_of("java-transactions.pcap", "4.4") | {"readiness": [], "clients": []}).empty == "no clients"


def test_many_connections_are_named_by_a_filter() -> None:
    assert model.connections_in(["C1"]) == 'connection == "C1"'
    assert model.connections_in(["C1", "C2"]) == 'connection in {"C1", "C2"}'


def test_the_ranges_of_brokers_of_several_releases_stand_beside_each_other() -> None:
    """A version that one broker offers and another does not is in none of two ranges alone."""
    row = dict(made_of("java-transactions.pcap", "4.4")["clients"][0])
    row["apis"] = [row["apis"][0] | {"min": 17, "max": 18, "offered": [0, 17], "offers": [[0, 17], [0, 18]]}]
    assert "17-18  0-17/0-18" in described(model.client_detail(row, 60))
