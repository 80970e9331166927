"""Laws of `kcap versions`: one command to the reason, an exit status for machines."""

import json
from pathlib import Path
from unittest.mock import patch

import pytest

from kcap.cli.main import main
from tests.cli.running import PCAPS

OLD = str(PCAPS / "old-java-new-broker.pcap")


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The JSON form."""
    assert main(["versions", *arguments, "--format", "json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_json_is_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = reported(capsys, OLD, "--target", "4.0")
    assert found["report"] == "versions"
    assert found["captures"] == ["old-java-new-broker.pcap"]
    assert found["rows"] == found["clients"]
    assert found["target"] == "4.0"
    assert found.keys() >= {"brokers", "diagnoses", "readiness", "left_out"}


def test_the_table_says_what_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["versions", OLD, "--target", "4.4"]) == 0
    out = capsys.readouterr().out
    assert "advertised_but_removed" in out
    assert "works with 4.4" in out


@pytest.mark.parametrize(
    ("name", "target", "level", "code"),
    [
        ("old-java-new-broker", "4.4", "removed", 1), ("java-transactions", "4.4", "removed", 0),
        ("fallback-0.9", "4.0", "removed", 1), ("fallback-0.9", "3.9", "removed", 0), ("fallback-0.9", "3.9", "deprecated", 1),
    ],
)  # fmt: skip
def test_the_exit_status(name: str, target: str, level: str, code: int) -> None:
    assert main(["versions", str(PCAPS / f"{name}.pcap"), "--target", target, "--fail-on", level]) == code


def test_a_filter_narrows_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = reported(capsys, str(PCAPS / "java-transactions.pcap"), "-Y", "api == Metadata")
    apis = {api["api"] for row in found["clients"] for api in row["apis"]}  # type: ignore[attr-defined]
    assert apis == {"Metadata"}


def test_pages(tmp_path: Path) -> None:
    for name, start in (("out.html", "<!DOCTYPE html>"), ("out.md", "# versions"), ("out.json", '{"report"')):
        assert main(["versions", OLD, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert main(["versions", OLD, "-o", str(tmp_path / "out.csv")]) == 2
    assert not (tmp_path / "out.csv").exists()


def test_the_story_of_a_connection(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(row["example"] for row in reported(capsys, OLD)["diagnoses"])  # type: ignore[attr-defined]
    uid = example.partition(".")[0]
    assert main(["versions", OLD, "--connection", uid]) == 0
    out = capsys.readouterr().out
    assert uid in out
    assert "the client requests the versions with ApiVersions v0" in out
    assert main(["versions", OLD, "--connection", uid, "--format", "html"]) == 2


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["versions", OLD, "--target", "9.9"]) == 2
    assert "there are 0.10.0" in capsys.readouterr().err
    assert main(["versions", OLD, "--connection", "Cnone"]) == 2
    assert main(["versions"]) == 2


def test_a_client_is_explained_with_and_without_a_capture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same words on the screen and in a file; json has what they are made of."""
    assert main(["versions", "--explain", "librdkafka 1.9.2", "--target", "4.0"]) == 0
    said = capsys.readouterr().out
    assert "librdkafka 1.9.2" in said
    place = tmp_path / "why.txt"
    assert main(["versions", "--explain", "librdkafka 1.9.2", "--target", "4.0", "-o", str(place)]) == 0
    assert place.read_text() == said
    made = reported(capsys, "--explain", "librdkafka 1.9.2", "--target", "3.9,4.0")
    assert len(json.dumps(made)) > 100
    assert main(["versions", OLD, "--explain", "librdkafka 1.9.2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--explain", "librdkafka 1.9.2", "--format", "html"], "--explain writes table or json"),
        ([OLD, "--target", "3.9,4.0"], "need --explain CLIENT"),
        ([OLD, "--connection", "C1", "--format", "html"], "--connection writes table or json"),
    ],
)
def test_what_does_not_go_together_is_said(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["versions", *words]) == 2
    assert said in capsys.readouterr().err


def test_saved_tables_stand_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "tables"
    with patch("kcap.reports.versions.saved.is_saved", lambda path: path == str(saved)):
        saved.mkdir()
        assert main(["versions", str(saved), OLD]) == 2
        assert "holds saved tables and" in capsys.readouterr().err
        assert main(["versions", str(saved), "-Y", "api == Fetch"]) == 2
        assert "a filter applies while captures are read" in capsys.readouterr().err
