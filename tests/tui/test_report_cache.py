"""A report over a whole capture is made once, and what is stored is what would be made again."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcap.reports.definition import ReportRequest, report_of
from kcap.reports.source import Engine
from kcap.tui import reader_main, report_cache
from kcap.tui.capture_model import CaptureModel, read_whole
from tests.tui.driving import PCAPS

NAMES = ("latency", "errors", "throttle")


def refused(_self: Engine, _folder: str) -> None:
    raise AssertionError("the report is made again")


def reports(book: CaptureModel) -> list[dict[str, Any]]:
    while book.table("partitions") is None:
        time.sleep(0.01)
    return [book.report(report_of(name), asked) for name in NAMES for asked in (ReportRequest(), ReportRequest(("client_id",)))]


def test_a_report_is_made_once_and_each_caller_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with read_whole(str(PCAPS / "quota-3.9.pcap")) as book:
        made = reports(book)
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "__init__", refused)
            assert reports(book) == made
            for result in reports(book):
                result.clear()
            assert reports(book) == made
        book.narrow("api == Fetch")
        while book.looking:
            time.sleep(0.01)
        assert reports(book) != made, "under a filter it is another"
        book.narrow("")
        assert reports(book) == made


def test_the_next_opening_has_the_reports_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_main, "INDEXED_LEAST_BYTES", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = str(tmp_path / "a.pcap")
    shutil.copy(PCAPS / "quota-3.9.pcap", path)
    os.utime(path, (time.time() - 3600,) * 2)
    made: list[list[dict[str, Any]]] = []
    for opening in range(3):
        with read_whole(path) as book:
            if opening == 0:
                made.append([book.report(report_of("latency"), ReportRequest())])
            elif opening == 1:
                made.append(reports(book))
            else:
                monkeypatch.setattr(Engine, "__init__", refused)
                assert book.index
                assert [book.report(report_of("latency"), ReportRequest())] == made[0]
                assert reports(book) == made[1]


def test_reports_and_what_is_asked_of_them_are_told_apart() -> None:
    latency = report_of("latency")
    others = (report_of("errors"), replace(latency, name="other"), replace(latency, build=report_of("errors").build))
    names = [report_cache.name_of(report, ReportRequest(), partitions=False) for report in (latency, *others)]
    names += [report_cache.name_of(latency, ReportRequest(("api",)), partitions=False)]
    names += [report_cache.name_of(latency, ReportRequest(), partitions=True)]
    assert len(set(names)) == len(names)


def test_no_room_is_no_fault(tmp_path: Path) -> None:
    report_cache.store(str(tmp_path / "gone"), "a", {})
    report_cache.add(str(tmp_path / "gone"), str(tmp_path))
    assert report_cache.find([str(tmp_path)], "a") is None
