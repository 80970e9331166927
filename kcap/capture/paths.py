"""Paths as people give them: files, globs and folders, to the files that are meant, each once and with a name of its own.

In: what was typed. Out: paths in that order. Law: a folder's members are known by their first bytes, not by their names; hidden
files and files of other kinds in it are passed over in silence, what was named outright never is.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from kcap.errors import CaptureError, said
from kcap.inputs import STANDARD as STANDARD_INPUT

if TYPE_CHECKING:
    from kcap.capture.window import Read


def expand(paths: Iterable[str]) -> list[str]:
    """The files that are meant, none of them twice."""
    found: dict[str, str] = {}
    for given in paths:
        matches = [given]
        if given != STANDARD_INPUT and not os.path.lexists(given) and glob.has_magic(given):
            matches = sorted(glob.glob(given, recursive=True)) or [given]
        for path in matches:
            for member in members(path) if path != STANDARD_INPUT and os.path.isdir(path) else [path]:
                found.setdefault(path if path == STANDARD_INPUT else os.path.realpath(member), member)
    return list(found.values())


def members(folder: str) -> list[str]:
    """The captures in a folder, by name."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise CaptureError(f"{folder}: {said(error)}") from None
    paths = [os.path.join(folder, name) for name in names if not name.startswith(".")]
    return [path for path in paths if os.path.isfile(path) and looks_like_capture(path)]


def looks_like_capture(path: str) -> bool:
    """Whether a file begins like one, looking through its compression."""
    from kcap.capture.source import Source

    try:
        with closing(Source(path)) as source:
            return begins_like_capture(source.read)
    except CaptureError:
        return False


def begins_like_capture(read: "Read") -> bool:
    """Whether the stream is pcap, pcapng or snoop, perhaps compressed."""
    from kcap.capture.beginnings import SNOOP, compression  # the terminal UI names files before it reads any
    from kcap.capture.pcap import byte_order
    from kcap.capture.sections import MAGIC
    from kcap.capture.source import again, read_head

    head = read_head(read)
    name = compression(head)
    if name is not None:
        from kcap.capture.compressed import Decompressed

        head = read_head(Decompressed(again(head, read), name, lambda _detail, _position: None).read)
    return byte_order(head) is not None or head.startswith((MAGIC, SNOOP)) or compression(head) is not None


def unique_names(paths: Sequence[str]) -> list[str]:
    """Base names, extended by as much of the path's tail as makes them unique."""
    parts = [[path] if path == STANDARD_INPUT else os.path.abspath(path).split(os.sep) for path in paths]
    depth = [1] * len(paths)
    while True:
        names = ["/".join(part[-count:]) for part, count in zip(parts, depth)]
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            groups.setdefault(name, []).append(index)
        again_needed = False
        for group in groups.values():
            for index in group if len(group) > 1 else ():
                if depth[index] < len(parts[index]):
                    depth[index] += 1
                    again_needed = True
        if not again_needed:
            return list(map(readable, names))


def readable(path: str) -> str:
    """A path as text: bytes of it that are no UTF-8 become escapes, as tables hold nothing else."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")
