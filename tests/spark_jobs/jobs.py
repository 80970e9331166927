"""Jobs as the tests start them."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kcap.analyzer import Options
from kcap.cli.main import main as command_line
from spark_jobs import ingest
from spark_jobs.job import JobInput, carried_out

ROOT = Path(__file__).resolve().parent.parent.parent
JOBS = (
    "ingest", "latency", "throttle", "versions", "errors", "topics", "digest", "check", "groups", "transactions", "diff",
)  # fmt: skip


def on_spark(test: Any) -> Any:
    """Marks a test that starts a JVM."""
    return pytest.mark.spark(pytest.mark.slow(pytest.mark.filterwarnings("ignore")(test)))


def command_of(name: str) -> Any:
    module = import_module(f"spark_jobs.{name}")
    return getattr(module, "command", module.run)


def run_of(name: str) -> Any:
    """What a job does in a session: the function behind its command."""
    answer = command_of(name).callback
    while not any(variable == "run" for variable in answer.__code__.co_freevars):
        answer = answer.__wrapped__
    return answer.__closure__[answer.__code__.co_freevars.index("run")].cell_contents


def job_input(*paths: str, output: str | None = None, only: str | None = None) -> JobInput:
    """The options that every job takes, for small captures."""
    return JobInput(list(paths), output, None, only, (), False, 20_000, 2, "auto", Options())


def saved(spark: Any, folder: Path, path: str) -> str:
    """The folder with all tables of a capture."""
    out = str(folder / "lake")
    assert carried_out(spark, ingest.run, job_input(path, output=out), {"records": False, "name": "one"}) == 0
    return out


def reported(arguments: list[str], tmp_path: Path) -> Any:
    """What kcap's own command says, as JSON."""
    out = tmp_path / "cli.json"
    assert command_line([*arguments, "--format", "json", "-o", str(out)]) == 0
    return json.loads(out.read_text(encoding="utf-8"))
