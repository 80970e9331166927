"""A report is written in each of its formats from one document."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kcap
from kcap.cli.diff import COLUMNS, SIDES
from kcap.cli.groups import commits, rebalance
from kcap.cli.report_formats import Document, Sentences
from kcap.cli.report_output import FORMS, SUFFIXES, formatted
from kcap.cli.transactions import written
from kcap.filter.parse import parse
from kcap.reports.diff.report import diff
from kcap.reports.findings.report import check
from kcap.reports.findings.source import observed
from kcap.reports.groups.report import groups
from kcap.reports.source import ReportInput
from kcap.reports.text import Aim
from kcap.reports.transactions.report import transactions
from kcap.table.arrow_filter import mask

RESULT = {"report": "any", "captures": ["a.pcap"], "rows": [{"name": "x<y", "count": 1}]}


def page(result: dict[str, object]) -> Document:
    return Document("any", [Sentences([f"{len(str(result['rows']))} x<y"])])


@pytest.mark.parametrize(
    ("form", "begin"), [("text", "29 x<y"), ("markdown", "# any"), ("html", "<!DOCTYPE"), ("csv", "section,")]
)
def test_each_form_begins_as_it_does(form: str, begin: str) -> None:
    assert formatted(RESULT, form, None, page).startswith(begin)


def test_json_is_the_result_itself() -> None:
    assert json.loads(formatted(RESULT, "json", None, page)) == RESULT


def test_every_suffix_has_a_form() -> None:
    assert set(SUFFIXES.values()) == set(FORMS)


PROBLEMS = Path(__file__).parents[2] / "pcaps" / "problems"


@cache
def exchanges(path: str) -> pa.Table:
    """All exchanges of a capture."""
    return kcap.open(path).table("exchanges").to_arrow()


def passing(path: str, text: str) -> Any:
    """Those that pass a display filter."""
    batches = exchanges(path).to_batches()
    return pa.Table.from_batches([batch.filter(pa.array(mask(parse(text), batch))) for batch in batches])


def test_numbers_lead_to_the_exchanges_that_they_count() -> None:
    """Law: the rows of a number's display filter are what it counts; of records and bytes, their sum is."""
    fenced, loop = (str(PROBLEMS / name) for name in ("zombie-fenced.pcap", "rebalance-loop-848.pcap"))
    with observed(ReportInput([loop])) as seen:
        found = check(seen)["rows"]
    assert [passing(loop, row["filter"]).num_rows for row in found] == [sum(row["course"]) for row in found] != []
    (group,) = groups(ReportInput([loop]))["rows"]
    assert passing(loop, commits(group)).num_rows == group["commits"] > 0
    times = [passing(loop, rebalance(group["group_id"], row) or "").num_rows for row in group["rebalances"]]
    assert times
    assert all(times)
    rows = transactions(ReportInput([fenced]))["rows"]
    for row in rows:
        written_ = passing(fenced, written(row) or "")
        assert [sum(written_[name].to_pylist()) for name in ("record_count", "records_bytes")] == [row["records"], row["bytes"]]
    for row in diff(ReportInput([fenced]), ReportInput([loop]))["classes"]:
        for column in COLUMNS:
            aim = column.down(row) if column.down is not None and column.head.startswith("count") else None
            if isinstance(aim, Aim) and row[SIDES[aim.at]]:
                assert passing((fenced, loop)[aim.at], aim.filter).num_rows == row[SIDES[aim.at]]["count"]
