"""Timelines of groups and transactions in HTML pages."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kcap.cli.timelines import Bar, of_groups, of_transactions, picture
from kcap.limits import BARS_MAX, LINES_MAX
from kcap.reports.groups.report import groups
from kcap.reports.source import ReportInput
from kcap.reports.transactions.report import transactions
from tests.cli.running import kcap

PROBLEMS = Path(__file__).resolve().parents[2] / "pcaps" / "problems"


def rectangles(svg: str) -> list[ET.Element]:
    """Those of bars and marks, which say what they are; the legend's say nothing."""
    return [one for one in ET.fromstring(svg).iter() if one.tag == "rect" and one.find("title") is not None]


def test_a_group_has_a_bar_a_member_and_a_mark_a_rebalance() -> None:
    result = groups(ReportInput([str(PROBLEMS / "static-member-fenced.pcap")]))
    for row, svg in zip(result["rows"], of_groups(result), strict=True):
        assert len(rectangles(svg)) == len(row["members"]) + len(row["rebalances"])
        assert row["group_id"] in svg


def test_transactions_have_a_bar_each() -> None:
    result = transactions(ReportInput([str(PROBLEMS / "aborted-transactions.pcap")]))
    (svg,) = of_transactions(result)
    assert len(rectangles(svg)) == len(result["rows"])


def test_every_color_of_a_picture_is_named() -> None:
    for name, make in (("static-member-fenced", groups), ("aborted-transactions", transactions)):
        result = make(ReportInput([str(PROBLEMS / f"{name}.pcap")]))
        for svg in of_groups(result) if make is groups else of_transactions(result):
            shapes = [one for one in ET.fromstring(svg).iter() if one.tag in ("rect", "text")]
            named = {one.get("fill") for one, text in pairwise(shapes) if one.find("title") is None and text.text}
            assert {one.get("fill") for one in rectangles(svg)} == named - {None}


def test_names_are_escaped_and_nothing_is_drawn_of_nothing() -> None:
    hostile = Bar(0, 1, 5, "member", "<script>")
    assert "<script>" not in picture("<b>", ["<i>&"], [hostile])
    ET.fromstring(picture("<b>", ["<i>&"], [hostile]))
    assert picture("t", [], []) == ""
    assert len(rectangles(picture("t", ["a"], [hostile] * (BARS_MAX + 9)))) == BARS_MAX
    assert LINES_MAX < BARS_MAX


@pytest.mark.parametrize(("command", "name"), [("groups", "static-member-fenced"), ("transactions", "aborted-transactions")])
def test_the_page_has_the_picture_and_no_script(command: str, name: str) -> None:
    page = kcap(command, str(PROBLEMS / f"{name}.pcap"), "--format", "html").stdout.decode()
    assert "<svg" in page
    assert "<script" not in page
