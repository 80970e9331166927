"""Stores the settings of the terminal UI between sessions: layout, columns, theme, rules, filters. Users may edit the file.

In: `tui.toml` in kcap's configuration folder, for a profile `profiles/NAME.toml` there. Out: a `UiSettings`,
and back. Law: a file that cannot be read is reported and left unchanged; an invalid setting is ignored.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kcap.errors import said
from kcap.folders import config_folder, write_whole
from kcap.tui.list_columns import DEFAULTS, HEADS, TIME_FORMS
from kcap.tui.list_model import ListModel
from kcap.tui.notes import entries

LAYOUTS: Final = ("rows", "columns")
PROFILE: Final = re.compile(r"[\w][\w .-]{0,39}")
"""Valid names of profiles, which become names of files."""


def sized(default: int, least: int, most: int, words: str) -> Any:
    """A setting that is a size, with its minimum, its maximum and its meaning."""
    return field(default=default, metadata={"bounds": (least, most), "words": words})


@dataclass(slots=True)
class UiSettings:
    columns: list[str] = field(default_factory=list)
    """Columns of the list; empty for those that fit."""
    widths: dict[str, int] = field(default_factory=dict)
    time: str = "clock"
    layout: str = "rows"
    share: int = sized(45, 15, 85, "height of the list in per cent")
    bytes_share: int = sized(40, 10, 90, "height of the bytes below the tree, in per cent of both")
    bytes_width: int = sized(85, 20, 400, "columns of the bytes beside the tree")
    beside_width: int = sized(87, 30, 400, "columns of tree and bytes beside the list")
    view_width: int = sized(0, 0, 80, "details of a view beside its table, in per cent; 0: the view's own")
    view_height: int = sized(0, 0, 80, "details of a view below its table, in per cent; 0: the view's own")
    bytes: bool = True
    detail: bool = True
    theme: str = ""
    rules: list[dict[str, Any]] = field(default_factory=list)
    """The user's own rules."""
    filters: list[dict[str, str]] = field(default_factory=list)
    """Saved display filters, each with `name` and `filter`."""
    profile: str = ""
    """Name of the profile of these settings; empty for `tui.toml`."""
    readable: bool = True
    """Whether the file could be read; otherwise it is not overwritten."""

    def give(self, view: ListModel) -> None:
        if self.columns:
            view.names, view.chosen = list(self.columns), True
        view.widths, view.form = dict(self.widths), self.time

    def take(self, view: ListModel) -> None:
        self.columns = list(view.names) if view.chosen else []
        self.widths, self.time = dict(view.widths), view.form


SIZES: Final = {one.name: one.metadata["bounds"] for one in fields(UiSettings) if one.metadata}
"""Setting -> its minimum and maximum."""


def config_path(profile: str = "") -> Path:
    return config_folder() / "profiles" / f"{profile}.toml" if profile else config_folder() / "tui.toml"


def profile_names() -> list[str]:
    return sorted(path.stem for path in (config_folder() / "profiles").glob("*.toml") if PROFILE.fullmatch(path.stem))


def read_config(profile: str = "") -> tuple[UiSettings, list[str]]:
    """The settings of a profile, or of none, and the errors in them."""
    path, look = config_path(profile), UiSettings(profile=profile)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return look, []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        look.readable = False
        return look, [f"{path}: {said(error)}"]
    look.columns = [name for name in entries(given, "columns", str) if name in HEADS]
    widths = given.get("widths")
    if isinstance(widths, dict):
        look.widths = {name: width for name, width in widths.items() if name in HEADS and isinstance(width, int) and width > 2}
    for name, forms in (("time", TIME_FORMS), ("layout", LAYOUTS)):
        if given.get(name) in forms:
            setattr(look, name, given[name])
    for name, (least, most) in SIZES.items():
        size = given.get(name)
        if isinstance(size, int) and least <= size <= most:
            setattr(look, name, size)
    look.bytes, look.detail = given.get("bytes") is not False, given.get("detail") is not False
    theme = given.get("theme")
    look.theme = theme if isinstance(theme, str) else ""
    look.rules = entries(given, "rules", dict)
    look.filters = [
        {"name": str(one["name"]), "filter": str(one["filter"])}
        for one in entries(given, "filters", dict)
        if {"name", "filter"} <= one.keys()
    ]
    return look, []


def text_of(look: UiSettings) -> str:
    """The settings as TOML; JSON's strings and lists of strings are valid TOML."""
    lines = [
        "# Settings of kcap's terminal UI. kcap writes them, and reads your edits at the next start.",
        f"# Columns: any column of the table exchanges, or {', '.join(DEFAULTS)}; an empty list shows those that fit.",
        f"columns = {json.dumps(look.columns)}",
        f'time = "{look.time}"   # {", ".join(TIME_FORMS)}',
        f'layout = "{look.layout}"   # {", ".join(LAYOUTS)}',
        *(f"{one.name} = {getattr(look, one.name)}   # {one.metadata['words']}" for one in fields(look) if one.metadata),
        f"bytes = {'true' if look.bytes else 'false'}",
        f"detail = {'true' if look.detail else 'false'}",
        f"theme = {json.dumps(look.theme)}",
        "",
        "[widths]",
        *(f"{name} = {width}" for name, width in look.widths.items()),
        "",
        "# Coloring rules; the first rule that matches applies, before kcap's own rules.",
        '# [[rules]]\n# name = "billing"\n# filter = "client_id == billing"\n# sign = "b"\n# tone = "key"',
    ]
    for rule in look.rules:
        lines += ["", "[[rules]]", *(f"{name} = {json.dumps(str(value))}" for name, value in rule.items())]
    for one in look.filters:
        lines += ["", "[[filters]]", *(f"{name} = {json.dumps(one[name])}" for name in ("name", "filter"))]
    return "\n".join(lines) + "\n"


def write_config(look: UiSettings) -> None:
    """Saves the settings, if the file is writable; errors are ignored."""
    if not look.readable:
        return
    path = config_path(look.profile)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text_of(look).encode())
    except OSError:
        return
