"""Writes docs/architecture-states.md: the state tables of stream, framer and pairing as Mermaid diagrams.

usage: python docs/diagrams.py

In: the state tables in kcap. Out: the page. Law: a test compares the committed page with this output.
"""

from collections.abc import Iterable
from pathlib import Path

from kcap.kafka import framing, pairing
from kcap.model import Transition
from kcap.net import tcp

PAGE = Path(__file__).with_name("architecture-states.md")
MACHINES = (
    ("Stream", "kcap.net.tcp", "One direction of a TCP connection puts its bytes in order.", tcp.TRANSITIONS),
    ("Framer", "kcap.kafka.framing", "One direction's bytes become length-prefixed frames.", framing.TRANSITIONS),
    ("Pairing", "kcap.kafka.pairing", "An exchange, from its first frame to its outcome.", pairing.TRANSITIONS),
)
"""Title, module, what the machine does, state table. The first state of a table is the initial one."""


def diagram(table: Iterable[Transition]) -> str:
    """A Mermaid state diagram; events between the same two states share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, event, result in table:
        arrows.setdefault((state, result), []).append(event)
    sources = {state for state, _ in arrows}
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(arrows))[0]}"]
    lines += [f"    {state} --> {result}: {', '.join(events)}" for (state, result), events in arrows.items()]
    lines += [f"    {result} --> [*]" for result in dict.fromkeys(result for _, result in arrows) if result not in sources]
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    head = "Made by `docs/diagrams.py` from the tables in the code. Events that change no state are left out."
    parts = [f"# State machines\n\n{head}\n"]
    for title, module, purpose, table in MACHINES:
        parts.append(f"## {title}\n\n{purpose} `{module}.TRANSITIONS`\n\n```mermaid\n{diagram(table)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
