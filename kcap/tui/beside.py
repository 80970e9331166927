"""Runs slow work in a thread beside the screens, and hands its result to them.

In: a part of the screen, the work, what takes its result or its error. Out: nothing at once. Law: keys never wait for the work;
if the part is removed meanwhile, nothing takes the result; nothing here refers to the result after it was taken. The futures
of a thread form reference cycles, so that a result would remain in memory until the garbage collector examines old objects:
with each refresh of a list of 6 million rows that would be 24 MB.
"""

from asyncio import to_thread
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from textual.widget import Widget

from kcap.tui.faults import stumbled

T = TypeVar("T")


def beside(
    part: Widget, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[Exception], None] | None = None,
    *, group: str, exclusive: bool = False,
) -> None:  # fmt: skip
    """Runs `work` in a thread, and `then` with its result, or `failed` with its exception; without `failed` that is a fault of
    the part. `exclusive`: results of earlier work of the group are dropped."""
    run: Any = partial(_run, part, work, then, failed or partial(stumbled, part))
    part.run_worker(run, group=group, exclusive=exclusive, exit_on_error=False)


async def _run(
    part: Widget, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[Exception], None]
) -> None:  # fmt: skip
    try:
        held = await to_thread(lambda: [work()])
    except Exception as error:  # noqa: BLE001 - whatever the work raises, the screen shows it
        failed(error)
        return
    try:
        then(held.pop())
    except Exception as error:  # noqa: BLE001 - as with messages: a part that fails costs no other part
        stumbled(part, error)
