"""The committed page of state diagrams is what its script writes."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "docs" / "diagrams.py"


def test_the_committed_diagrams_are_those_of_the_state_tables() -> None:
    names = runpy.run_path(str(SCRIPT))
    assert names["PAGE"].read_text(encoding="utf-8") == names["page"](), "run: python docs/diagrams.py"


def test_arrows_join_events_and_ends_are_marked() -> None:
    diagram = runpy.run_path(str(SCRIPT))["diagram"]
    table = [("a", "x", "b"), ("a", "y", "b"), ("b", "z", "done")]
    assert diagram(table).split("\n") == [
        "stateDiagram-v2", "    [*] --> a", "    a --> b: x, y", "    b --> done: z", "    done --> [*]",
    ]  # fmt: skip
