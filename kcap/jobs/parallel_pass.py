"""A pass over a capture in which another process analyzes the packets, while this one makes tables of the decided exchanges.

In: the input of `CapturePass`. Out: its output: the other process runs a `CapturePass`, and this one follows it batch by batch.
Law: at each batch, every attribute has the value that it has in a pass that does everything itself; so rows, connections,
oddities and their order do not depend on the number of processes. What the other process cannot do is done here: searching for
packets, plaintext on request, and re-reading bodies of compressed files.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from kcap import kernels
from kcap.analyzer import Options, RowBatch
from kcap.batch.pieces import in_pieces
from kcap.capture.source import form_of
from kcap.capture_pass import CapturePass
from kcap.jobs import worker_process
from kcap.jobs.messages import ReadOrder, Step, follow
from kcap.runtime import give_back

if TYPE_CHECKING:
    from kcap.facts.tracker import Fact
    from kcap.filter.ast import Filter


class ParallelPass(CapturePass):
    """As `CapturePass`, in two processes."""

    processes = 2

    def another(self) -> CapturePass | None:
        again = super().another()
        return None if again is None else ParallelPass(*self._again)

    def batches(self) -> Iterator[RowBatch]:
        process = worker_process.take() if self._divisible() else None
        if process is None:
            yield from super().batches()
            return
        with closing(process):
            self.files.close()
            process.order(self._order())
            prepare()
            while True:
                step = process.receive()
                follow(self, step)
                if self.watch is not None:
                    self.watch()
                if step.over:
                    return
                if step.batch is not None:
                    yield from in_pieces(taken(step))  # nothing here refers to a batch while its rows are made

    def _order(self) -> ReadOrder:
        paths, options = self._again
        return ReadOrder(
            list(paths),
            options or Options(),
            keep_connections=self.keep_connections,
            keep_bodies=self.analyzer.bodies.keep,
            keep_records=self.analyzer.bodies.records,
            project_partitions=self.analyzer.bodies.partitions,
            infer_turns=self.analyzer.infer_turns,
            patient=self.patient,
            growing=[] if options is None or options.secrets is None else options.secrets.growing,
            pushed=self._pushed(),
        )

    def _pushed(self) -> "tuple[Filter, Fact] | None":
        """The parts from which `unwanted` is made; None if it is not set."""
        return getattr(getattr(self.unwanted, "__self__", None), "given", None)

    def _divisible(self) -> bool:
        """Whether another process can do what is requested of this pass."""
        analyzer = self.analyzer
        observed = self.noted or self.frame_lengths is not None or analyzer.plaintext is not None or analyzer.watch is not None
        if observed or (self.unwanted is not None and self._pushed() is None):
            return False
        return not self.files.keeps or all(is_plain(file.path) for file in self.capture_files)


def prepare() -> None:
    """Imports modules that steps and tables need, and releases memory that the imports touched, while the other process reads
    the first packets.
    """
    import kcap.fastpath.rows

    if kernels.usable():
        import kcap.batch.span_kernels
        import kcap.batch.topic_kernels
        import kcap.decode.projection_kernels
        import kcap.uid_kernels  # noqa: F401

        kernels.engine()
    give_back()


def taken(step: Step) -> RowBatch:
    """Returns the batch of a step and removes it from the step."""
    batch, step.batch = step.batch, None
    assert batch is not None
    return batch


def is_plain(path: str) -> bool:
    """Whether a file is an uncompressed pcap or pcapng file. The contents of a compressed file were spooled, if at all, by the
    process that read it.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except OSError:
        return True  # it is never opened
    return bool(form_of(head))
