"""Kept SQL is what the expressions compile to, and only what this user wrote is believed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kcap
from kcap import limits
from kcap.filter.parse import parse
from kcap.reports import latency, plans
from kcap.reports.definition import ReportRequest
from kcap.reports.plans import CompiledPlan, plan_folder, planned
from kcap.reports.run import run
from kcap.reports.source import ReportInput


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plans._sources.cache_clear()
    return tmp_path / "cache" / "kcap" / "plans"


def never() -> dict[str, str]:
    raise AssertionError("it was kept")


def test_what_was_made_once_is_not_made_again(own_cache: Path) -> None:
    made = {"rows": "SELECT 1"}
    assert planned(("a", 1), lambda: made) == made
    assert planned(("a", 1), never) == made
    assert planned(("a", 2), lambda: {"rows": "SELECT 2"}) != made
    assert own_cache.stat().st_mode & 0o077 == 0
    assert len(list(own_cache.iterdir())) == 2


def test_what_two_processes_add_to_one_plan_is_kept_of_both() -> None:
    first, second = CompiledPlan(("a",)), CompiledPlan(("a",))
    assert first.sql("one", lambda: "SELECT 1") == "SELECT 1"
    assert second.sql("two", lambda: "SELECT 2") == "SELECT 2"
    first.keep()
    second.keep()
    assert planned(("a",), never) == {"one": "SELECT 1", "two": "SELECT 2"}


def test_a_plan_of_too_many_statements_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PLAN_STATEMENTS_MAX", 2)
    assert len(planned(("a",), lambda: {"one": "1", "two": "2", "three": "3"})) == 3
    plan = CompiledPlan(("a",))
    assert plan.sql("one", lambda: "new") == "new"
    plan.keep()
    assert planned(("a",), never) == {"one": "new"}


def test_a_changed_source_or_another_version_of_ibis_makes_it_worthless(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "package" / "reports" / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1")
    monkeypatch.setattr(plans, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(kcap, "LOADED_NS", 1 << 62)
    plans._sources.cache_clear()
    seen = [planned(("a",), lambda: {"n": "1"})]
    at, written_at = source.stat().st_mtime_ns, source.stat().st_ctime_ns
    plans._sources.cache_clear()  # another process looks anew
    while source.stat().st_ctime_ns == written_at:  # file systems have clocks of some milliseconds
        source.write_text("a = 2")
        os.utime(source, ns=(at, at))  # as large, and as old by the time that can be set
    seen.append(planned(("a",), lambda: {"n": "2"}))
    plans._sources.cache_clear()
    monkeypatch.setattr(plans, "_versions", lambda: ["ibis_framework-99.dist-info"])
    seen.append(planned(("a",), lambda: {"n": "3"}))
    plans._sources.cache_clear()
    (tmp_path / "package" / "data.json").write_text("{}")
    seen.append(planned(("a",), lambda: {"n": "4"}))
    assert [one["n"] for one in seen] == ["1", "2", "3", "4"]
    assert planned(("a",), never) == {"n": "4"}


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_process_that_outlives_an_upgrade_keeps_and_believes_nothing(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    """Its SQL would be kept as that of the new sources, whose reports read other columns."""
    assert planned(("a",), lambda: {"n": "1"}) == {"n": "1"}
    newest = max(written for *_, written in plans._files(str(plans.PACKAGE)))
    plans._sources.cache_clear()
    with monkeypatch.context() as upgraded:
        upgraded.setattr(kcap, "LOADED_NS", newest)
        assert plan_folder() is None
        assert planned(("a",), lambda: {"n": "old"}) == {"n": "old"}
        plans._sources.cache_clear()
    assert planned(("a",), never) == {"n": "1"}


def test_a_folder_that_others_can_write_is_not_believed(own_cache: Path) -> None:
    planned(("a",), lambda: {"n": "1"})
    own_cache.chmod(0o777)
    assert plan_folder() is None
    assert planned(("a",), lambda: {"n": "2"}) == {"n": "2"}
    own_cache.chmod(0o700)
    target = own_cache.rename(own_cache.with_name("elsewhere"))
    own_cache.symlink_to(target)
    assert plan_folder() is None, "a link is no folder of one's own"


def test_what_cannot_be_read_or_written_is_made_each_time(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, tmp_path: Path
) -> None:
    planned(("a",), lambda: {"n": "1"})
    for damage in ("", "[]", '{"n": 1}', '{"n": "1'):
        next(own_cache.iterdir()).write_text(damage)
        assert planned(("a",), lambda: {"n": "2"}) == {"n": "2"}
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert planned(("a",), lambda: {"n": "3"}) == {"n": "3"}


def test_the_oldest_files_of_too_many_go(own_cache: Path) -> None:
    planned(("first",), lambda: {"n": "1"})
    first = next(own_cache.iterdir())
    os.utime(first, (1, 1))
    for number in range(limits.PLANS_KEPT):
        (own_cache / f"{number}.json").write_text("{}")
    planned(("last",), lambda: {"n": "1"})
    assert len(list(own_cache.iterdir())) == limits.PLANS_KEPT
    assert not first.exists()


def test_a_kept_plan_gives_the_report_that_the_expressions_give(pcaps: Path, own_cache: Path) -> None:
    path = str(pcaps / "quota-3.9.pcap")
    requests = [ReportRequest(), ReportRequest(by=("client",)), ReportRequest(long_polls=True)]
    for only in (None, "api == Produce", "api == Fetch", "request.acks == 1"):
        for request in requests if only is None else requests[:1]:
            made, kept = (run(latency.REPORT, ReportInput([path], only=parse(only or "")), request) for _ in range(2))
            assert made == kept
            assert made["rows"]
    assert len(list(own_cache.iterdir())) == 6


def test_a_kept_plan_is_run_without_ibis(pcaps: Path, own_cache: Path) -> None:
    """Law: the second run of a report imports neither Ibis nor pandas nor the parser of filters, which take a second."""
    call = f"""
import sys
from kcap.cli.main import main
code = main(["latency", {str(pcaps / "aiokafka.pcap")!r}])
print(sorted({{"ibis", "sqlglot", "pandas", "lark", "numba"}} & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
    first, second = (subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert "ibis" in first.stderr
    assert second.stderr == "[]\n"
