"""`kcap check` as people and pipelines run it."""

import json
import shutil
import string
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kcap.cli.check import PROSE_WIDTH
from tests.cli.running import ENVIRONMENT, kcap

PROBLEMS = Path(__file__).resolve().parents[2] / "pcaps" / "problems"
CONFUSED, HEALTHY = str(PROBLEMS / "tls-plaintext-confusion.pcap"), str(PROBLEMS / "healthy-1.pcap")


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(*words: str) -> Done:
    done = kcap(*words)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def report(*words: str) -> dict[str, Any]:
    done = run("check", *words, "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_finding_says_who_when_why_and_what_to_do() -> None:
    found = report(CONFUSED)
    assert (found["report"], found["captures"]) == ("check", ["tls-plaintext-confusion.pcap"])
    assert found["not_judged"].keys() == {"slow-broker", "hot-broker"}, "there is one broker"
    row = next(row for row in found["rows"] if row["who"].get("client_id") == "old-app")
    assert row["id"] == "tls-plaintext-confusion"
    assert row["count"] == 12
    assert row["first_ns"] < row["last_ns"]
    assert {"severity", "confidence", "sentence", "advice", "evidence", "instead", "filter", "lost_ns"} <= row.keys()


def test_the_filter_of_a_finding_passes_its_exchanges() -> None:
    row = next(row for row in report(CONFUSED)["rows"] if row["filter"])
    done = run("rows", CONFUSED, "-Y", row["filter"], "--format", "jsonl")
    assert len(done.out.splitlines()) == row["count"]


def test_text_markdown_and_html_say_each_sentence() -> None:
    sentences = [row["sentence"] for row in report(CONFUSED)["rows"]]
    for form in ("text", "markdown", "html"):
        out = " ".join(run("check", CONFUSED, "--format", form).out.replace("\\", "").split())
        for sentence in sentences:
            assert sentence.split(" (")[0] in out, form


def test_healthy_traffic_has_no_finding() -> None:
    assert "no problem was found" in run("check", HEALTHY).out


def test_a_capture_without_kafka_is_not_called_healthy() -> None:
    rows = run("rows", HEALTHY, "--columns", "server_port", "--format", "csv").out.split()[1:]
    ports = [word for port in sorted({*rows}) for word in ("--not-kafka", port)]
    done = run("check", HEALTHY, *ports)
    assert "no problem" not in done.out
    assert done.out.startswith("nothing could be judged: the capture holds no Kafka exchange")
    assert "no problem" not in run("stats", HEALTHY, *ports).out


@pytest.mark.parametrize(("level", "capture", "code"), [("high", CONFUSED, 1), ("critical", CONFUSED, 0), ("low", HEALTHY, 0)])
def test_a_pipeline_fails_where_it_was_told_to(level: str, capture: str, code: int) -> None:
    assert run("check", capture, "--fail-on", level).code == code


def test_sarif_names_rules_and_results() -> None:
    (one,) = json.loads(run("check", CONFUSED, "--format", "sarif").out)["runs"]
    assert not [rule for rule in one["tool"]["driver"]["rules"] if "\n " in rule["shortDescription"]["text"]]
    rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    assert {result["ruleId"] for result in one["results"]} == set(rules)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in one["results"])
    assert {result["level"] for result in one["results"]} <= {"error", "warning", "note"}


def test_rules_can_be_explained_listed_chosen_and_mistyped() -> None:
    assert "KIP-219" in run("check", "--explain", "throttled-disobedient").out
    stall = run("check", "--explain", "broker-stall").out
    assert "\n\n" in stall.partition("\nseverity")[0], "paragraphs stay apart"
    assert not [line for line in stall.partition("\nseverity")[0].splitlines()[1:] if line.startswith("    ")]
    assert max(map(len, stall.splitlines())) <= PROSE_WIDTH, "prose is wrapped without a terminal, too"
    assert "zombie-fenced" in run("check", "--list").out
    assert report(CONFUSED, "--skip", "tls-plaintext-confusion")["rows"] == []
    wrong = run("check", CONFUSED, "--only", "tls-plaintext-confusio")
    assert wrong.code == 2
    assert "did you mean tls-plaintext-confusion" in wrong.err


def test_without_a_capture_it_is_a_usage_error_and_a_wrong_file_is_named() -> None:
    assert run("check").code == 2
    assert run("check", __file__).code == 3


def test_thresholds_of_the_configuration_count_and_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    monkeypatch.setitem(ENVIRONMENT, "KCAP_CONFIG", str(config))
    config.write_text("[check.tls-plaintext-confusion]\nconnections = 1000\nalerts = 1000\n", encoding="utf-8")
    assert report(CONFUSED, "--only", "tls-plaintext-confusion")["rows"] == []
    said = run("check", "--explain", "tls-plaintext-confusion").out
    assert "connections = 1000 (default 2)" in said
    config.write_text("[check.tls-plaintext-confusion]\nconections = 9\n", encoding="utf-8")
    done = run("check", HEALTHY)
    assert done.code == 2
    assert "did you mean connections" in done.err


def test_a_finding_shows_its_course_over_the_capture() -> None:
    capture = str(PROBLEMS / "offset-out-of-range.pcap")
    rows = report(capture)["rows"]
    assert all(len(row["course"]) == 24 and sum(row["course"]) > 0 for row in rows if row["filter"])
    for form in ("text", "markdown", "html"):
        assert "over the capture: " in run("check", capture, "--format", form).out
    (one,) = json.loads(run("check", capture, "--format", "sarif").out)["runs"]
    assert [result["properties"]["course"] for result in one["results"]] == [row["course"] for row in rows]


@pytest.mark.parametrize("name", ["a b.pcap", "50%.pcap", "a#b?c.pcap", "\u00fc:x.pcap", "[1]|{2}.pcap"])
def test_sarif_names_files_as_uris(name: str, tmp_path: Path) -> None:
    """RFC 3986: a URI reference has none of the characters that have a meaning in it, and says which file is meant."""
    from urllib.parse import unquote, urlsplit

    shutil.copy(CONFUSED, tmp_path / name)
    (one,) = json.loads(run("check", str(tmp_path / name), "--format", "sarif").out)["runs"]
    uri = one["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert set(uri) <= set(string.ascii_letters + string.digits + "-._~/%")
    assert unquote(urlsplit(uri).path) == name
