"""How the reading layers tell of an oddity: a call, so that counting stays with the caller and costs what he makes of it."""

from collections.abc import Callable

from kcap.weird import WeirdKind

Report = Callable[[WeirdKind, str, int, int, int], None]
"""Kind, detail, file, packet, position: the fields of `Weird` that a file's oddity has, in its order."""
