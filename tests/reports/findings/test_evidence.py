"""Evidence in words."""

import ast
from pathlib import Path

import kcap.reports.findings
from kcap.reports.findings.evidence import WORDS, evidence_line


def test_words_are_of_names_that_rules_give_and_are_not_said_twice() -> None:
    given = set[object]()
    for path in Path(kcap.reports.findings.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                names = [key for part in ast.walk(node) if isinstance(part, ast.Dict) for key in part.keys]
                given |= {name.value for name in names if isinstance(name, ast.Constant)}
    assert set(WORDS) <= given
    assert all(words == words.strip() and len(words) < 50 for words in WORDS.values())
    repeated = {words for words in WORDS.values() if list(WORDS.values()).count(words) > 1}
    assert repeated == {WORDS["muting"]}, "one thing under two names"


def test_a_line_says_what_the_numbers_are() -> None:
    assert evidence_line({"quiet_ns": 10_300_000_000, "stood_ns": 4_020_000_000, "requests": 1160}) == (
        "no request for 10.3s; last stable offset stood still for 4.02s; requests 1,160"
    )
