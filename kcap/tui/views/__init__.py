"""The views of the terminal UI: what a capture contains beside its list of exchanges.

In: a capture model, as far as it was read. Out: screens. Law: a view uses the capture only through its model; every number in
it leads to the exchanges that it counts.
"""

from importlib import import_module
from typing import Any, Final

VIEWS: Final[dict[str, tuple[str, str, str]]] = {
    "conversations": ("C", "Conversations", "kcap.tui.views.conversations:Conversations"),
    "ladder": ("L", "Ladder", "kcap.tui.views.ladder:Ladder"),
    "statistics": ("S", "Statistics", "kcap.tui.views.statistics:Statistics"),
    "versions": ("V", "Versions", "kcap.tui.views.versions:Versions"),
    "throttling": ("T", "Throttling", "kcap.tui.views.throttling:Throttling"),
    "errors": ("E", "Errors", "kcap.tui.views.errors:Errors"),
    "topics": ("O", "Topics and clients", "kcap.tui.views.topics:Topics"),
    "records": ("R", "Records", "kcap.tui.views.records:Records"),
    "health": ("H", "Capture health", "kcap.tui.views.health:Health"),
    "findings": ("P", "Problems: findings", "kcap.tui.views.concluded:Findings"),
    "groups": ("U", "Consumer groups", "kcap.tui.views.concluded:Groups"),
    "transactions": ("X", "Transactions", "kcap.tui.views.concluded:Transactions"),
    "differences": ("D", "Differences from another capture", "kcap.tui.views.differences:Differences"),
    "compare": ("=", "Compare two exchanges", "kcap.tui.views.compare:Comparison"),
}
"""Name -> its key, its title, `module:Class`. The class takes no arguments and is a Screen."""


def load(name: str) -> Any:
    module, _, found = VIEWS[name][2].partition(":")
    return getattr(import_module(module), found)
