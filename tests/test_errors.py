"""What the messages of kcap's exceptions suggest."""

from pathlib import Path

import pytest

from kcap.errors import did_you_mean, said

KNOWN = ["latency_ns", "request_packets", "response_packets", "api"]


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("latancy_ns", KNOWN, "; did you mean latency_ns?"),
        ("LATENCY", KNOWN, "; did you mean latency_ns?"),
        ("packets", KNOWN, "; did you mean request_packets or response_packets?"),
        ("chek", ["check", "schema"], "; did you mean check?"),
        ("topic", ["topics", "topix", "clients"], "; did you mean topics or topix?"),
        ("a", KNOWN, ""),
        ("quite different", KNOWN, ""),
        ("", KNOWN, ""),
        ("fetsh", {"fetch": "Fetch", "1": "Fetch"}, "; did you mean Fetch?"),
        ("fetsh", {"fetch": 1}, "; did you mean fetch?"),
    ],
)
def test_what_looks_like_a_name_that_does_not_exist_is_suggested(name: str, known: list[str], words: str) -> None:
    assert did_you_mean(name, known) == words


def test_an_error_of_the_system_is_its_words() -> None:
    with pytest.raises(OSError, match="No such") as caught:
        Path("/nowhere/at all").read_bytes()
    assert said(caught.value) == "no such file or directory"
    assert said(OSError("a reason of its own")) == "a reason of its own"
    assert said(ValueError("Line 3")) == "Line 3"
