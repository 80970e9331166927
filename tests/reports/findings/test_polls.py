"""Polls that something between closes while they wait for records."""

from tests.reports.findings.scenes.pipelines import closed_behind
from tests.reports.findings.tables import SECOND, found, observed


def said(times: list[float], step: float = 10.0, side: str = "server", wait_ms: int = 8000) -> list[str]:
    """Severities for a client whose connections one side closes these seconds behind a Fetch."""
    some = [closed_behind(after, at=step * at, wait_ms=wait_ms) for at, after in enumerate(times)]
    rows = [row | {"reason": "fin", "age_ns": int(after * SECOND)} for (row, _), after in zip(some, times, strict=True)]
    links = [link | {"closed_by": side} for _, link in some]
    return [row["severity"] for row in found("long-poll-misconfigured", observed(rows, connections=links), loud=False)]


def test_polls_that_are_cut_as_long_behind_their_request_have_a_time_out_in_their_way() -> None:
    assert said([3.0] * 5) == ["medium"]
    assert said([3.0, 3.0, 3.0, 5.0, 6.0]) == ["medium"], "other requests of the connection began the time anew"
    assert said([3.0, 3.0, 4.0, 5.0, 6.0]) == [], "no time is that of three"
    assert said([3.0] * 4) == []


def test_polls_that_end_for_other_reasons_are_none() -> None:
    assert said([0.5] * 5) == [], "a broker that refuses them"
    assert said([8.0] * 5) == [], "the broker is late, and nothing cut them"
    assert said([3.0] * 5, step=0.1) == [], "a broker that stops ends all at once"
    assert said([3.0] * 5, side="client") == said([3.0] * 5, side="client", wait_ms=9000) == []
