"""`kcap --version`: true of what is installed, and quick to say that something is not."""

from importlib import metadata

import pytest

from kcap import __version__
from kcap.cli import version_text
from tests.cli.running import kcap


def test_versions_are_those_that_run() -> None:
    lines = kcap("--version").stdout.decode().splitlines()
    assert lines[0] == f"kcap {__version__}"
    assert lines[1].startswith("Kafka 0.8 to 4.4, ")
    for name in ("pyarrow", "numpy"):
        assert f"{name} {metadata.version(name)}" in lines


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_text, "version_of", lambda name: None if name == "pyspark" else "1")
    assert "pyspark is not installed: spark_jobs" in version_text.version_text().splitlines()
    assert version_text.version_of("pyarrow") == "1"
