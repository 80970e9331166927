"""Display filters and commands that were entered, saved between sessions.

In: texts. Out: the same, the last one last, from `history.json` in kcap's state folder, which only this user can read. Law: a
text occurs once; a history that cannot be read or written is discarded without other effects.
"""

import json
from pathlib import Path
from typing import Final

from kcap.folders import state_folder, write_whole
from kcap.limits import HISTORY_MOST
from kcap.tui.notes import entries

LONGEST: Final = 4_000
"""Maximum number of characters of a saved text."""
KINDS: Final = ("filters", "commands")


def history_path() -> Path:
    return state_folder() / "history.json"


class History:
    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {kind: [] for kind in KINDS}
        try:
            given = json.loads(history_path().read_bytes())
        except (OSError, ValueError):
            given = None
        if isinstance(given, dict):
            for kind in KINDS:
                self._texts[kind] = entries(given, kind, str)[-HISTORY_MOST:]

    def of(self, kind: str) -> list[str]:
        """Texts of a kind, the last one last."""
        return list(self._texts[kind])

    def add(self, kind: str, text: str) -> None:
        if not text or len(text) > LONGEST or self._texts[kind][-1:] == [text]:
            return
        self._texts[kind] = [*(old for old in self._texts[kind] if old != text), text][-HISTORY_MOST:]
        path = history_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(self._texts, ensure_ascii=True).encode())
        except OSError:
            return
