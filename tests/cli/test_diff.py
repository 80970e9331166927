"""`kcap diff` as people and pipelines run it."""

import json
from typing import Any

import pytest

from kcap.cli.diff import document
from kcap.cli.report_output import formatted
from tests.cli.running import PCAPS, kcap
from tests.reports.diff.pairs import capture, diff

HEALTHY, FENCED = PCAPS / "problems" / "healthy-1.pcap", PCAPS / "problems" / "zombie-fenced.pcap"


def test_two_captures_are_compared_as_json() -> None:
    done = kcap("diff", HEALTHY, FENCED, "--format", "json", "--fail-on", "new-client")
    assert done.returncode == 1
    made: dict[str, Any] = json.loads(done.stdout)
    assert (made["report"], made["captures"]) == ("diff", [HEALTHY.name, FENCED.name])
    assert {row["who"]["client_id"] for row in made["rows"] if row["what"] == "new-client"} == {"room-a", "room-b"}
    assert {row["who"]["error"] for row in made["rows"] if row["what"] == "new-error"} >= {"INVALID_PRODUCER_EPOCH"}


def test_equal_captures_pass() -> None:
    done = kcap("diff", HEALTHY, HEALTHY, "--fail-on", "any")
    assert done.returncode == 0
    assert done.stdout.decode().startswith("no difference (")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((HEALTHY,), "BEFORE and AFTER; 1 given"),
        ((HEALTHY, FENCED, "--fail-on", "latencies"), "did you mean latency"),
        ((HEALTHY, FENCED, "--fail-on", "xyz"), "there are any, new-error, "),
        ((HEALTHY, "missing.pcap"), "missing.pcap"),
    ],
)
def test_wrong_use_is_said(words: tuple[Any, ...], said: str) -> None:
    done = kcap("diff", *words)
    assert done.returncode in (2, 3)
    assert said in done.stderr.decode()


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_each_form_says_each_difference_and_each_class(form: str) -> None:
    made = diff(capture(1), capture(2, slower_ms=20, codecs=["zstd"]))
    out = " ".join(formatted(made, form, None, document).replace("\\", "").split())
    for row in made["rows"]:
        assert (row["sentence"].split(": median")[0] in out) == row["significant"]
    assert "Cliff" in out
    assert "by topic" in out


def test_csv_has_every_row() -> None:
    made = diff(capture(1), capture(2, slower_ms=20))
    lines = formatted(made, "csv", None, document).splitlines()
    assert sum(line.startswith("rows,") for line in lines) == len(made["rows"])
