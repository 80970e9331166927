"""A scene: tables made by hand in which a rule of `kcap check` speaks, all that it says, and the edges of its limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kcap.reports.findings.observed import Observed
from kcap.reports.findings.report import check
from tests.reports.findings.tables import SECOND, START, Row


@dataclass(frozen=True)
class Scene:
    """Tables, what a rule says of them, and for each limit of the rule the value at which it still says so."""

    rule: str
    seen: Callable[[], Observed]
    says: str
    """The findings as `text_of` gives them, in the order of the report, with lines broken anywhere."""
    least: Mapping[str, float] = field(default_factory=dict)
    """Limits that what was seen has to reach: the largest value that it reaches."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Limits that what was seen must not exceed: the smallest value that it does not exceed."""
    kind: str = ""
    """What tells it from other scenes of the same rule."""

    @property
    def name(self) -> str:
        """The rule, and the kind of scene where there are several."""
        return f"{self.rule}: {self.kind}" if self.kind else self.rule

    def judge(self) -> Callable[..., list[Row]]:
        """What gives the findings of the rule over the tables, with limits (keywords) in place of its own. What the rules of a
        capture share is computed once, however often it is called."""
        mine = self.seen().of_clients()
        mine.of_clients = lambda: mine  # type: ignore[method-assign]

        def said(**limits: float) -> list[Row]:
            rows: list[Row] = check(mine, only=[self.rule], thresholds={self.rule: limits})["rows"]
            return rows

        return said


def text_of(finding: Row) -> str:
    """All that a finding says; its times are seconds from the beginning of the capture."""
    first, last = ((finding[name] - START) / SECOND for name in ("first_ns", "last_ns"))
    lost, times = finding["lost_ns"] / SECOND, "once" if finding["count"] == 1 else f"{finding['count']} times"
    who, evidence = (", ".join(f"{name} {value}" for name, value in finding[of].items()) for of in ("who", "evidence"))
    return (
        f"{finding['severity']} {finding['confidence']}: {finding['sentence']}. Seen {times} from {first:.9g} s to "
        f"{last:.9g} s, {lost:.9g} s lost. Who: {who}. Filter: {finding['filter'] or 'none'}. Evidence: {evidence}."
    )


def weight(findings: list[Row]) -> list[tuple[Any, ...]]:
    """What limits decide of findings: which there are, of whom, how often, how bad and how sure."""
    return [(row["severity"], row["confidence"], row["who"], row["count"]) for row in findings]


def beyond(value: float, step: int) -> float:
    """The next value of a limit, upwards (1) or downwards (-1): whole numbers count things, others measure."""
    return value + step if isinstance(value, int) else value + step * max(abs(value) / 10_000, 1e-6)
