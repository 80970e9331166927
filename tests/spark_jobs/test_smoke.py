"""The smoke test says where Spark gives other rows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kcap
from kcap.errors import UsageError
from spark_jobs import smoke
from tests.spark_jobs.jobs import on_spark


@on_spark
def test_all_the_same(spark: Any, pcaps: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(smoke, "session", lambda *_words, **_settings: Lasting(spark))
    assert smoke.main([str(pcaps / "node-platformatic.pcap")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in said[:3]] == ["exchanges", "connections", "latency"]
    assert said[-1].startswith("all the same after")


class Lasting:
    """The session of all tests, which no test stops."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Goes on."""


def test_a_row_that_differs_is_said(pcaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    rows = kcap.open(path).table("connections").to_arrow()

    def capture_of(table: pa.Table) -> Any:
        return SimpleNamespace(table=lambda _: SimpleNamespace(toArrow=lambda: table))

    assert smoke.same_rows(capture_of(rows), [path], "connections")
    assert smoke.same_rows(capture_of(rows.take(list(range(rows.num_rows))[::-1])), [path], "connections")
    assert not smoke.same_rows(capture_of(rows.slice(1)), [path], "connections")
    assert f"and kcap has others ({rows.num_rows})" in capsys.readouterr().out


def test_without_spark_it_fails_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none(*_words: Any, **_settings: Any) -> None:
        raise UsageError("no Java is installed")

    monkeypatch.setattr(smoke, "session", none)
    assert smoke.main([]) == 1
    assert capsys.readouterr().err == "no Java is installed\n"
