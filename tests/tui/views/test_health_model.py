"""The capture itself: the same evidence and verdict as `kcap health` gives."""

import pytest

import kcap
from kcap.reports.capture_quality import CaptureQuality, gather
from kcap.reports.health import judge
from kcap.tui.views import health_model as model
from tests.tui.views.laws import leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import PCAPS, StubBook

CAPTURES = sorted(path.name for path in PCAPS.iterdir() if path.suffix in (".pcap", ".pcapng"))


def tables_of(name: str) -> CaptureQuality:
    book = StubBook(name)
    captures, connections, weirds = (book.table(table) for table in ("captures", "connections", "weirds"))
    assert captures is not None
    assert connections is not None
    assert weirds is not None
    return model.evidence_of(captures, connections, weirds, book.exchanges(model.COLUMNS))


@pytest.mark.parametrize("name", CAPTURES)
def test_the_tables_say_what_a_pass_says(name: str) -> None:
    """Law: points, verdict and sentence equal those of `kcap health`."""
    read = gather(kcap.open(str(PCAPS / name)).read(keep_connections=True))
    assert judge(tables_of(name)) == judge(read)


@pytest.mark.parametrize("name", ["raw-frames.pcap", "rotated.pcap", "any-interface.pcap", "pipelined.pcap"])
def test_sheets(name: str) -> None:
    book = StubBook(name)
    captures, connections, weirds = (book.table(table) for table in ("captures", "connections", "weirds"))
    assert captures is not None
    assert connections is not None
    assert weirds is not None
    sheets = [
        model.points(tables_of(name)),
        model.oddities(weirds, connections),
        model.files(captures),
        model.ledger(connections),
    ]
    for sheet in sheets:
        assert sheet.rows or sheet.name == "oddities"
        sheet_holds(sheet, name)
        for row in sheet.rows:
            down = sheet.down(row)
            if down and (sheet.name != "verdict" or row["verdict"] != "good"):
                assert leads_somewhere(name, down), (sheet.name, down)
            if sheet.detail is not None:
                lines_hold(sheet.detail(row, 100), 110)
    counts = [row["count"] for row in sheets[1].rows]
    assert counts == sorted(counts, reverse=True)


def test_every_point_of_a_bad_capture_leads_somewhere_or_nowhere_on_purpose() -> None:
    row = {"name": "missing bytes", "verdict": "bad", "sentence": "x", "numbers": {"missing": 3, "captured": 9}}
    assert model.leads(row) == "flags == gap"
    assert model.leads(row | {"verdict": "good"}) is None
    assert model.leads(row | {"name": "kernel drops"}) is None
    reported = "".join(text for line in model.point_detail(row, 40) for text, _ in line)
    assert "missing: 3" in reported
    assert "BAD" in reported
