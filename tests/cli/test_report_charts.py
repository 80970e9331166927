"""Charts: whole without a library."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kcap.cli import report_charts
from kcap.cli.report_charts import drawer, svg
from kcap.errors import MissingExtraError, UsageError
from tests.cli.reporting import json_of


def test_svg_is_well_formed_and_has_a_bar_for_each_class(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    reported = json_of(capsys, "latency", "aiokafka.pcap")
    root = ET.fromstring(svg(reported))
    bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if len(element)]
    assert len(bars) == len(reported["histogram_edges_ns"]) + 1
    counts = [int((bar[0].text or "").rpartition(" ")[2].replace(",", "")) for bar in bars]
    assert sum(counts) == sum(row["count"] for row in reported["rows"])
    for name in ("x.svg", "x.html"):
        drawer(name)(str(tmp_path / name), reported, "<!DOCTYPE html>" + svg(reported))
        assert (tmp_path / name).stat().st_size > 1000


def test_no_rows() -> None:
    reported = {"rows": [], "histogram_edges_ns": [1000], "over_time": None}
    assert ET.fromstring(svg(reported)).tag.endswith("svg")


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"\.svg"):
        drawer("x.gif")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(report_charts, "import_module", missing)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        drawer("x.png")
