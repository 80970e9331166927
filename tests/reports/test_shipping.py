"""The SQL that comes with kcap is that of its rules."""

import re
from pathlib import Path

import pytest

from kcap.reports import plans, shipping
from kcap.reports.source import Engine

CAPTURES = ("java-transactions.pcap", "old-java-new-broker.pcap", "problems/rebalance-slow.pcap", "problems/broker-stall.pcap")


@pytest.mark.parametrize("name", CAPTURES)
def test_rules_compile_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pcaps: Path, name: str) -> None:
    """A rule that was changed compiles its SQL in each first run, until the file is written again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Engine, "sql", None)
    assert [len(sql) > 0 for _, sql in shipping.needed(str(pcaps / name))] == [True] * 4


def test_it_is_what_expressions_compile_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pcaps: Path) -> None:
    """Law: the SQL of an expression that comes with kcap is the SQL to which it compiles now, but for the order of columns that
    are left out: for Ibis they are a set."""

    def ordered(sql: str) -> str:
        return re.sub(r"EXCLUDE \(([^)]*)\)", lambda found: f"EXCLUDE {sorted(found[1].split(', '))}", sql)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shipped = plans.shipped()
    monkeypatch.setattr(plans, "shipped", dict)
    for digest, compiled in shipping.needed(str(pcaps / "java-transactions.pcap")):
        assert {name: ordered(sql) for name, sql in compiled.items()} == {
            name: ordered(shipped[digest].get(name, "")) for name in compiled
        }


def test_the_file_has_what_reports_on_the_captures_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pcaps: Path) -> None:
    path = str(pcaps / "java-transactions.pcap")
    expected = dict(shipping.needed(path))
    monkeypatch.setattr(plans, "SHIPPED", tmp_path / "new.z")
    shipping.main([path])
    plans.shipped.cache_clear()
    try:
        assert plans.shipped() == expected
    finally:
        plans.shipped.cache_clear()


def test_without_a_file_there_is_no_sql(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plans, "SHIPPED", tmp_path / "none.z")
    assert plans.shipped.__wrapped__() == {}
