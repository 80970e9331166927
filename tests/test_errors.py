"""What the messages of kcap's exceptions suggest."""

import pytest

from kcap.errors import did_you_mean

KNOWN = ["latency_ns", "request_packets", "response_packets", "api"]


@pytest.mark.parametrize(
    ("name", "known", "said"),
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
def test_what_looks_like_a_name_that_does_not_exist_is_suggested(name: str, known: list[str], said: str) -> None:
    assert did_you_mean(name, known) == said
