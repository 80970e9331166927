"""A report is written in each of its formats from one document."""

import json

import pytest

from kcap.cli.report_formats import Document, Sentences
from kcap.cli.report_output import FORMS, SUFFIXES, formatted

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
