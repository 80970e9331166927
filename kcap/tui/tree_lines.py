"""A tree as lines that expand and collapse. Free of widgets.

In: items whose children are built on expansion. Out: the visible lines. Law: the lines are a walk through the expanded items; a
long list shows its first entries and a line for the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from kcap.decode.nodes import Node

CAP: Final = 200
"""Number of entries shown at once; the rest on demand."""


@dataclass(slots=True)
class Item:
    line: Line
    name: str
    """Name by which the line is found again in the next exchange."""
    make: Callable[[], Sequence["Item"]] | None = None
    """Builds its children; None if it has none."""
    open: bool = False
    filter: str | None = None
    """Its display filter."""
    value: str = ""
    """The text to copy."""
    side: str = ""
    """`request` or `response`, if it concerns bytes."""
    node: "Node | None" = None
    depth: int = 0
    more: bool = False
    """Whether it is the line for the rest of a long list."""
    secret: bool = False


@dataclass(slots=True)
class Outline:
    """The lines of a tree, and the one under the cursor."""

    roots: list[Item] = field(default_factory=list)
    lines: list[Item] = field(default_factory=list)
    cursor: int = 0

    def show(self, roots: Sequence[Item]) -> None:
        self.roots = list(roots)
        self.lines = []
        for root in self.roots:
            self.lines.append(root)
            if root.open:
                self.lines += self._inside(root)
        self.cursor = max(0, min(self.cursor, len(self.lines) - 1))

    def _inside(self, item: Item, skip: int = 0) -> list[Item]:
        """The lines below an expanded item."""
        made = list(item.make()) if item.make is not None else []
        out: list[Item] = []
        for child in made[skip : skip + CAP]:
            child.depth = item.depth + 1
            out.append(child)
            if child.open:
                out += self._inside(child)
        left = len(made) - skip - CAP
        if left > 0:
            rest = Item([(f"… {left:,} more", "dim")], "more", lambda: made[skip + CAP :], depth=item.depth + 1, more=True)
            out.append(rest)
        return out

    @property
    def current(self) -> Item | None:
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def _end(self, at: int) -> int:
        """The line after everything below a line."""
        end = at + 1
        while end < len(self.lines) and self.lines[end].depth > self.lines[at].depth:
            end += 1
        return end

    def set(self, at: int, *, wanted: bool) -> None:
        item = self.lines[at]
        if item.more:
            if wanted:
                item.depth -= 1
                self.lines[at : at + 1] = self._inside(item)
            return
        if item.make is None or item.open == wanted:
            return
        end = self._end(at)
        item.open = wanted
        self.lines[at + 1 : end] = self._inside(item) if wanted else []
        if at < self.cursor < end and not wanted:
            self.cursor = at

    def toggle(self, at: int) -> None:
        """Expands or collapses the line."""
        self.set(at, wanted=not self.lines[at].open)

    def left(self) -> None:
        """Collapses the line under the cursor, or moves to its parent."""
        item = self.current
        if item is not None and item.open and item.make is not None:
            self.set(self.cursor, wanted=False)
        else:
            self.up()

    def up(self) -> None:
        """Moves to the parent of the line under the cursor."""
        item = self.current
        if item is None or not item.depth:
            return
        at = self.cursor
        while at > 0 and self.lines[at].depth >= item.depth:
            at -= 1
        self.cursor = at

    def right(self) -> None:
        """Expands the line under the cursor, or moves to its first child."""
        item = self.current
        if item is None or (item.make is None and not item.more):
            return
        if item.open and not item.more:
            self.cursor = min(self.cursor + 1, len(self.lines) - 1)
        else:
            self.set(self.cursor, wanted=True)

    def set_all(self, at: int, *, wanted: bool, most: int = 2000) -> None:
        """Expands or collapses a line and everything below it, up to `most` lines."""
        if not wanted:
            for below in self.lines[at : self._end(at)]:
                below.open = below.open and below is self.lines[at]
            self.set(at, wanted=False)
            return
        depth = self.lines[at].depth
        here, opened = at, 0
        while here < len(self.lines) and (here == at or self.lines[here].depth > depth) and opened < most:
            item = self.lines[here]
            if item.make is not None and not item.more and not item.open:
                before = len(self.lines)
                self.set(here, wanted=True)
                opened += len(self.lines) - before
            here += 1

    def move(self, by: int) -> None:
        self.cursor = max(0, min(self.cursor + by, len(self.lines) - 1))

    # -- bytes --------------------------------------------------------------------------------------------------------
    def find(self, side: str, buffer: int, offset: int) -> bool:
        """Expands the lines that contain a byte and moves the cursor to the innermost one; returns whether there is one."""
        at = next((at for at, item in enumerate(self.lines) if item.side == side and item.node is not None), None)
        if at is None:
            return False
        found: int | None = None
        while at is not None:
            item = self.lines[at]
            if item.node is not None and _holds(item.node, buffer, offset):
                found = at
            if item.make is not None and not item.secret:
                self.set(at, wanted=True)
            at = self._step(at, side, buffer, offset)
        if found is None:
            return False
        self.cursor = found
        return True

    def _step(self, at: int, side: str, buffer: int, offset: int) -> int | None:
        """The line directly below that leads to a byte."""
        item, end = self.lines[at], self._end(at)
        below = at + 1
        while below < end:
            child = self.lines[below]
            if child.depth == item.depth + 1:
                if child.more:
                    if not self._rest_leads(child, buffer, offset):
                        return None
                    self.set(below, wanted=True)
                    end = self._end(at)
                    continue
                if child.side == side and child.node is not None and _leads(child.node, buffer, offset):
                    return below
            below += 1
        return None

    @staticmethod
    def _rest_leads(item: Item, buffer: int, offset: int) -> bool:
        return item.make is not None and any(
            child.node is not None and _leads(child.node, buffer, offset) for child in item.make()
        )

    # -- the next exchange --------------------------------------------------------------------------------------------
    def opened(self) -> dict[tuple[str, ...], bool]:
        """The names of the expanded lines, from the root down."""
        path: list[str] = []
        found: dict[tuple[str, ...], bool] = {}
        for item in self.lines:
            del path[item.depth :]
            path.append(item.name)
            if item.make is not None and not item.more:
                found[tuple(path)] = item.open
        return found

    def reopen(self, roots: Sequence[Item], opened: dict[tuple[str, ...], bool]) -> None:
        """Replaces the tree; lines with the same names as before are expanded as before."""
        self.show(roots)
        at = 0
        path: list[str] = []
        while at < len(self.lines) and at < 10 * CAP:
            item = self.lines[at]
            del path[item.depth :]
            path.append(item.name)
            wanted = opened.get(tuple(path))
            if wanted is not None and item.make is not None and not item.more:
                self.set(at, wanted=wanted)
            at += 1


def _holds(node: "Node", buffer: int, offset: int) -> bool:
    return node.buffer == buffer and node.start <= offset < node.end


def _leads(node: "Node", buffer: int, offset: int) -> bool:
    """Whether a node contains a byte, or the bytes from which the byte's buffer was made."""
    entries = node.buffers.entries
    while buffer != node.buffer:
        made = entries[buffer]
        if made.parent < 0:
            return False
        buffer, offset = made.parent, made.start
    return node.start <= offset < node.end
