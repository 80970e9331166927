"""A temporary place for files that are being made: beside the output, or among temporary files; removed when the block ends.

In: the output's path, input paths. Out: a path to write to, and paths that can be read more than once. Law: nothing remains,
however the block ends.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from kcap.capture.source import STANDARD_INPUT, Source
from kcap.capture.writer import PacketStream
from kcap.limits import READ_WINDOW_BYTES
from kcap.output.sink import output_errors

PREFIX: Final = ".kcap-"


@contextmanager
def scratch(output: str | None) -> Iterator[str]:
    """A temporary folder, on the output's own file system if the output is a file.

    Raises OutputError if it cannot be made or written.
    """
    near = None
    if output is not None and (os.path.isfile(output) or not os.path.exists(output)):
        near = os.path.dirname(os.path.realpath(output))
    with output_errors(output or "standard output"):
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=near)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def kept(paths: Sequence[str], folder: str) -> list[str]:
    """The same paths, with standard input and other pipes first stored in the folder, since they are read more than once."""
    found = []
    for number, path in enumerate(paths):
        if path != STANDARD_INPUT and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)):
            found.append(path)
            continue
        held = os.path.join(folder, f"input-{number}")
        with closing(Source(path)) as source, open(held, "wb") as stream:
            while data := source.read(READ_WINDOW_BYTES):
                stream.write(data)
        found.append(held)
    return found


def hand_over(path: str, stream: PacketStream) -> None:
    """Writes the result to its destination."""
    with open(path, "rb") as made:
        while data := made.read(READ_WINDOW_BYTES):
            stream.write(data)
