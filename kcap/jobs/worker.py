"""The process that analyzes a capture for another one: packets in, decided exchanges out.

In: one end of a socket, over which a `ReadOrder` comes. Out: `Step`s over it. Law: the steps are those of a pass in the
requesting process. The worker ends when the other end of the socket is closed, at the latest with the next packets.
"""

import os
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Final

from kcap.analyzer import RowBatch
from kcap.jobs.messages import ReadOrder, Step, Steps, project
from kcap.jobs.transport import Sender
from kcap.limits import CLOSED_TOGETHER
from kcap.model import PacketBatch
from kcap.runtime import PageRelease, collect_rarely, keep_heap, start_quickly

if TYPE_CHECKING:
    from kcap.capture_pass import CapturePass

EVERY_SECONDS: Final = 0.1
"""Time between two steps without rows, which report progress, seconds."""


class Worker:
    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._sent_s = monotonic()
        self._pages = PageRelease()

    def run(self, order: ReadOrder) -> None:
        """Reads to the end, and sends the error that stops it. Raises EOFError or OSError if the other process is gone."""
        try:
            reading = opened(order)
        except Exception as error:  # noqa: BLE001 - it is raised in the other process
            self._sender.send(Step(error=error))
            return
        reading.analyzer.bodies.shared = self._sender.arena
        reading.analyzer.weirds_most = sys.maxsize  # the other process bounds them, because it has all of them
        reading.analyzer.take_sightings()  # the other process has seen the same when it opened the files
        self._steps, self._reading = Steps(reading), reading
        packets = reading.files.batches
        reading.files.batches = lambda: self._noted(packets())  # type: ignore[method-assign]
        reading.watch = self._look
        with closing(reading.files):
            self._follow(reading.batches())

    def _follow(self, batches: Iterator[RowBatch]) -> None:
        while True:
            try:
                batch = next(batches, None)
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:  # noqa: BLE001 - it is raised in the other process
                error.add_note("".join(traceback.format_tb(error.__traceback__)))
                self._sender.send(Step(error=error))
                return
            if batch is not None and self._has_time():
                project(batch, self._reading.analyzer)
            self._send(self._steps.step(batch, over=batch is None))
            if batch is None:
                return
            del batch  # the batch need not remain while the next one is gathered

    def _noted(self, batches: Iterator[PacketBatch]) -> Iterator[PacketBatch]:
        for packets in batches:
            self._steps.packets(packets.file)
            yield packets

    def _look(self) -> None:
        """Called after each piece of the capture: checks whether the other process still exists, and reports progress to it."""
        self._sender.listen()
        self._pages.step()
        reading = self._reading
        many = len(reading.connections) + reading.analyzer.sighted >= CLOSED_TOGETHER
        if many or monotonic() - self._sent_s >= EVERY_SECONDS:
            self._send(self._steps.step())

    def _has_time(self) -> bool:
        """Whether this process projects the bodies of a batch. The process that would otherwise wait does so."""
        self._sender.listen()
        return self._sender.waits_more

    def _send(self, step: Step) -> None:
        self._sent_s = monotonic()
        self._sender.send(step)


def opened(order: ReadOrder) -> "CapturePass":
    """Opens the pass of an order. Raises CaptureError if nothing can be read."""
    from kcap.capture_pass import CapturePass

    if order.options.secrets is not None:
        order.options.secrets.growing = order.growing
    reading = CapturePass(order.paths, order.options, keep_connections=order.keep_connections)
    bodies = reading.analyzer.bodies
    bodies.keep, bodies.records, bodies.partitions = order.keep_bodies, order.keep_records, order.project_partitions
    reading.analyzer.infer_turns = order.infer_turns
    reading.patient = order.patient
    if order.pushed is not None:
        from kcap.table.push_down import PushDown

        reading.unwanted = PushDown(*order.pushed, reading).unwanted
    return reading


def main(words: Sequence[str]) -> None:
    """Runs the process. `words` is its command line: the number of its end of the socket."""
    start_quickly()
    sender = Sender(socket.socket(fileno=int(words[0])))
    prepare()
    try:
        Worker(sender).run(sender.order())
        while True:  # a socket that is closed with unread bytes loses what was sent last
            sender.listen(wait=True)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the other process is gone
    os._exit(0)  # nothing is left to do, and taking down modules takes longer than ending the process


def prepare() -> None:
    """Imports modules that a pass needs, while the other process does the same."""
    import kcap.capture_pass
    from kcap import kernels

    if kernels.usable():
        import kcap.capture.record_kernels
        import kcap.fastpath.engine
        import kcap.net.segment_kernels  # noqa: F401

        keep_heap()
    collect_rarely()
