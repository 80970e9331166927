"""Edges follow the mouse that holds them, and nothing else."""

import asyncio
from typing import Any

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from kcap.tui.splitters import Edges, SplitFrame


class Held(App[None]):
    """Two parts, the second with edges."""

    CSS = """
    Vertical { layout: horizontal; }
    Static { width: 20; }
    SplitFrame { border-left: solid red; border-top: solid red; width: 20; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[Any] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("left")
            with SplitFrame(id="frame"):
                yield Static("right")

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        self.reported.append((event.part.id, event.side, event.x, event.y))

    @on(Edges.Dropped)
    def dropped(self, _event: Edges.Dropped) -> None:
        self.reported.append("dropped")


def after(*moves: tuple[int, int], where: str = "#frame") -> list[Any]:
    async def run() -> list[Any]:
        app = Held()
        async with app.run_test(size=(60, 20)) as pilot:
            first, *rest = moves
            await pilot.mouse_down(where, offset=first)
            for x, y in rest:
                await pilot.hover(where, offset=(x, y))
            await pilot.mouse_up(where, offset=(rest or [first])[-1])
            await pilot.pause()
            return app.reported

    return asyncio.run(run())


def test_an_edge_goes_with_the_mouse() -> None:
    assert after((0, 5), (4, 6), (-3, 6))[:2] == [("frame", "left", 24, 6), ("frame", "left", 17, 6)]
    assert after((5, 0), (5, 3))[0] == ("frame", "top", 25, 3)
    assert after((0, 5), (4, 6))[-1] == "dropped"


def test_the_corner_is_of_the_left_edge() -> None:
    assert after((0, 0), (2, 0))[0] == ("frame", "left", 22, 0)


def test_a_press_inside_moves_nothing() -> None:
    assert after((5, 5), (8, 8)) == []
    assert after((3, 3), (0, 0), where="Static") == []
