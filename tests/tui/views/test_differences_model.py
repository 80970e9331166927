"""Differences as sheets lead to the exchanges of the capture after."""

from kcap.tui.views import differences_model as model
from kcap.tui.views.column_help import explained
from tests.tui.views.laws import sheet_holds
from tests.tui.views.stub import PCAPS, differences_of

AFTER = "quota-3.9.pcap"


def test_every_section_and_every_cell() -> None:
    result = differences_of(str(PCAPS / "quota-0.10.pcap"), AFTER)
    found = model.sheets(result)
    assert found[0].name == "differences"
    assert found[0].rows == [row for row in result["rows"] if row["significant"]]
    for sheet in found:
        assert sheet.rows
        heads = [field.head for field in sheet.fields]
        assert [head for head, _ in explained("differences", sheet)] == heads, "each once, and each is explained"
        assert all(
            any(field.text(row) for row in sheet.rows) for field in sheet.fields if field.head in ("api", *sheet.name.split())
        )
        sheet_holds(sheet, AFTER, counts=False)
    assert sum(len(sheet.rows) for sheet in found[1:]) == len(result["classes"])


def test_the_figures_of_a_difference_have_their_units() -> None:
    """They were nanoseconds: `p50 ns 3340000`."""
    sides = {"count": 1170, "p50_ns": 3_340_000, "service_p50_ns": 3_322_000}
    row = {"sentence": "Produce is slower", "p_adjusted": None, "before": sides, "after": None}
    said = ["".join(text for text, _ in line) for line in model.detail(row, 200)]
    assert said[1:] == ["before: count 1,170; p50 3.34ms; broker p50 3.32ms", "after: none"]


def test_what_is_gone_leads_nowhere() -> None:
    result = differences_of(str(PCAPS / AFTER), "quota-0.10.pcap")
    gone = [row for row in result["classes"] if row["after"] is None]
    assert gone
    assert {model.down(row) for row in gone} == {None}


def test_a_capture_does_not_differ_from_itself() -> None:
    (first, *_) = model.sheets(differences_of(str(PCAPS / AFTER), AFTER))
    assert first.rows == []
