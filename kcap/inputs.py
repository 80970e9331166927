"""The files that are being read, and the rule that no output replaces one of them.

In: the paths of inputs, while a block runs; the path of an output. Out: nothing, or a UsageError. Law: two paths name the same
file if device and inode are equal (POSIX `stat`, links resolved). A path that does not exist is identified by its parent folder
and its name, and a URL by its scheme, host and path after normalisation (RFC 3986 section 6.2). Devices, pipes and sockets have
no content that could be replaced, so they never count.
"""

import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from kcap.errors import UsageError

STANDARD: Final = "-"
STDIN, STDOUT = 0, 1
URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)")
FILE_URL: Final = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)
SAME_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}
"""Scheme of a Hadoop connector -> scheme of the same store."""
Identity = tuple[object, ...]
Expand = Callable[[Sequence[str]], Iterable[str]]
"""Callable that expands globs and folders into the files that are read."""


def identity(path: str, standard: int = STDIN) -> Identity | None:
    """Returns the identity of what a path names; None for a device, a pipe or a socket. `-` is the descriptor `standard`."""
    remote = URL.fullmatch(path.partition("?")[0].partition("#")[0])
    if remote is not None and not FILE_URL.match(path) and not os.path.exists(path):
        scheme = remote[1].lower()
        return "url", SAME_SCHEMES.get(scheme, scheme), remote[2].lower(), posixpath.normpath("/" + remote[3].strip("/"))
    path = FILE_URL.sub("", path, count=1)
    try:
        state = os.fstat(standard) if path == STANDARD else _state(path)
    except (OSError, ValueError):
        return None if path == STANDARD else _absent(path)
    return (state.st_dev, state.st_ino) if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) else None


def _state(path: str) -> os.stat_result:
    """Returns the `stat` result of a path, also if `..` follows a folder that does not exist, as writers resolve such paths."""
    try:
        return os.stat(path)
    except OSError:
        return os.stat(os.path.realpath(path))


def _absent(path: str) -> Identity:
    """Returns the identity of a path that does not exist: its parent folder and its name."""
    resolved = os.path.realpath(path)
    try:
        parent = os.stat(os.path.dirname(resolved))
    except (OSError, ValueError):
        return ("path", resolved)
    return parent.st_dev, parent.st_ino, os.path.basename(resolved)


def parents(path: str) -> Iterator[Identity]:
    """Yields the identities of all folders above a path, the nearest first."""
    found = identity(path)
    if found is not None and found[0] == "url":
        _, scheme, host, inner = found
        for parent in _above(str(inner)):
            yield "url", scheme, host, parent
        return
    for parent in _above(os.path.realpath(FILE_URL.sub("", path, count=1))):
        above = identity(parent)
        if above is not None:
            yield above


def _above(path: str) -> Iterator[str]:
    while (parent := posixpath.dirname(path)) != path:
        yield parent
        path = parent


class Inputs:
    def __init__(self, paths: Iterable[str], expand: Expand | None = None) -> None:
        """`expand` turns globs and folders into files. It is called only if an existing output may be one of them."""
        self._paths = list(dict.fromkeys(paths))
        self._expand = expand

    @cached_property
    def _named(self) -> dict[Identity, str]:
        return {found: path for path in self._paths if (found := identity(path)) is not None}

    @cached_property
    def _files(self) -> list[str]:
        others = [path for path in self._paths if path != STANDARD]
        return list(self._expand(others)) if self._expand is not None and others else []

    @cached_property
    def _expanded(self) -> dict[Identity, str]:
        return {found: path for path in self._files if (found := identity(path)) is not None}

    def at(self, output: str) -> str | None:
        """Returns the input that an output would replace."""
        found = identity(output, STDOUT)
        if found is None:
            return None
        if found in self._named:
            return self._named[found]
        there = found[0] == "url" or (len(found) == 2 and found[0] != "path")  # a path that does not exist is in no folder
        return self._expanded.get(found) if there else None

    def inside(self, folder: str) -> str | None:
        """Returns an input that is the folder or lies in it at any depth."""
        found = identity(folder)
        same = self.at(folder)
        if same is not None or found is None:
            return same
        return next((path for path in [*self._paths, *self._files] if path != STANDARD and found in parents(path)), None)


_known: list[Inputs] = []
"""All inputs that this process is reading. They are a module's state because threads write outputs too."""


@contextmanager
def reading(paths: Iterable[str], expand: Expand | None = None) -> Iterator[None]:
    """Protects the inputs while the block runs."""
    inputs = Inputs(paths, expand)
    _known.append(inputs)
    try:
        yield
    finally:
        _known.remove(inputs)


def refuse_input(output: str, *, folder: bool = False) -> None:
    """Raises UsageError, which names both paths, if the output would replace an input. `-` is standard output.

    With `folder`, everything inside the output counts as replaced.
    """
    for inputs in _known:
        found = inputs.inside(output) if folder else inputs.at(output)
        if found is not None:
            shown = "standard output" if output == STANDARD else output
            read = "standard input" if found == STANDARD else found
            same = "an input itself" if shown == read else f"the same file as the input {read}"
            raise UsageError(f"{shown}: this output is {same if not folder else f'or holds the input {read}'}; write elsewhere")


def is_parquet(path: str) -> bool:
    """Whether a file begins with Parquet's magic bytes, as tables that were saved from captures do."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False
