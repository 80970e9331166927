"""Reads capture files on a local disk, or behind a URI that pyarrow supports (s3, gs, abfs, hdfs).

In: paths, folders, patterns and URIs. Out: the files that they name, and reads of them by offset. Law: a local file is read
only through the operating system; credentials come from the environment, never from a URI.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from typing import Any, BinaryIO, Final
from weakref import finalize

from kcap.capture.paths import expand
from kcap.capture.source import why_no_capture
from kcap.capture.window import Read
from kcap.errors import CaptureError, OutputError
from kcap.inputs import SAME_SCHEMES, refuse_input
from kcap.limits import TASK_FILES_OPEN_MAX
from kcap.output.formats import format_of
from kcap.output.sink import new_file

SUFFIXES: Final = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
"""Suffix of a report's file -> its format."""
DONE: Final = "_KCAP"
"""Marker file in a folder that `ingest` has finished."""


def is_remote(path: str) -> bool:
    """Whether a path is a URI that is not a local file."""
    return "://" in path and not path.startswith("file://")


def local(path: str) -> str:
    """A path without the scheme `file://`."""
    return path.removeprefix("file://")


def place_of(path: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it.

    Raises CaptureError if there is no such file system.
    """
    from pyarrow import fs

    scheme, _, rest = path.partition("://")
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(f"{SAME_SCHEMES.get(scheme, scheme)}://{rest}")
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: {first_line(error)}") from None
    return found


def found(paths: Sequence[str]) -> list[str]:
    """The files that some paths name, each once.

    Raises CaptureError for a folder that cannot be read.
    """
    out: dict[str, None] = {}
    for path in paths:
        if is_remote(path):
            out.update(dict.fromkeys(remote(path)))
        else:
            out.update(dict.fromkeys(expand([local(path)])))
    return list(out)


def remote(path: str) -> list[str]:
    """The captures that a URI names: one file, those of a folder, or those that match a pattern in its last part."""
    from pyarrow import fs

    scheme = path.partition("://")[0]
    folder, _, name = path.rstrip("/").rpartition("/")
    pattern = any(sign in name for sign in "*?[")
    system, inner = place_of(folder if pattern else path)
    try:
        info = system.get_file_info(inner)
        if info.type != fs.FileType.Directory:
            return [path]
        entries = system.get_file_info(fs.FileSelector(inner))
        files = sorted(entry.path for entry in entries if entry.type == fs.FileType.File)
        if pattern:
            kept = [entry for entry in files if fnmatch(entry.rpartition("/")[2], name)]
        else:
            kept = [entry for entry in files if not entry.rpartition("/")[2].startswith(".") and is_capture(system, entry)]
    except OSError as error:
        raise CaptureError(f"{path}: {first_line(error)}") from None
    return [f"{scheme}://{entry.lstrip('/') if scheme != 'hdfs' else entry}" for entry in kept] or ([path] if pattern else [])


def is_capture(system: Any, path: str) -> bool:
    """Whether the file behind a URI begins like a capture."""
    with system.open_input_file(path) as file:
        try:
            return why_no_capture(file.read) is None
        except CaptureError:
            return False


def first_line(error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(said).splitlines()[0].lower()


def read_of(paths: Sequence[str]) -> list[str]:
    """All files that are read for some paths: captures, and every file of a folder that `ingest` wrote."""
    saved = [
        os.path.join(folder, name)
        for path in paths
        if is_ingested(path)
        for folder, _, names in os.walk(local(path))
        for name in names
    ]
    return [*found(paths), *saved]


def is_ingested(path: str) -> bool:
    """Whether `ingest` wrote this folder."""
    return not is_remote(path) and os.path.exists(os.path.join(local(path), DONE))


def form_of(output: str, form: str | None) -> str:
    """The format of a report's file: the chosen one, or that of the suffix of its name, or JSON.

    Raises UsageError for a name that implies another format, or one that reports do not have.
    """
    return format_of(form, output.rstrip("/"), SUFFIXES, default="json", text=())


@contextmanager
def sink_at(path: str) -> Iterator[BinaryIO]:
    """Opens an output for writing: a local file, which appears once it is complete, or a URI.

    Raises UsageError for an input, OutputError if the output cannot be written.
    """
    if not is_remote(path):
        with new_file(local(path)) as file:
            yield file
        return
    refuse_input(path)
    system, inner = place_of(path)
    try:
        with system.open_output_stream(inner) as sink:
            yield sink
    except OSError as error:
        raise OutputError(f"{path}: {first_line(error)}") from None


class Files:
    """Files that are read by offset."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._open: dict[int, Any] = {}
        finalize(self, close_all, self._open)

    def size(self, file: int) -> int:
        """Size of a file in bytes.

        Raises CaptureError if it cannot be opened.
        """
        try:
            opened = self._opened(file)
            return os.fstat(opened).st_size if isinstance(opened, int) else int(opened.size())
        except OSError as error:
            raise CaptureError(f"{self.paths[file]}: {first_line(error)}") from None

    def read_at(self, file: int, offset: int, size: int) -> bytes:
        """Bytes of a file, fewer only at its end.

        Raises CaptureError if they cannot be read.
        """
        try:
            opened = self._opened(file)
            if not isinstance(opened, int):
                return bytes(opened.read_at(size, offset))
            data = os.pread(opened, size, offset)
            while data and len(data) < size and (more := os.pread(opened, size - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise CaptureError(f"{self.paths[file]}: {first_line(error)}") from None
        return data

    def reading(self, file: int, offset: int, end: int) -> Read:
        """A sequential reader of the bytes between two offsets."""

        def read(size: int) -> bytes:
            nonlocal offset
            data = self.read_at(file, offset, min(size, end - offset)) if offset < end else b""
            offset += len(data)
            return data

        return read

    def _opened(self, file: int) -> Any:
        opened = self._open.pop(file, None)
        if opened is None:
            if len(self._open) >= TASK_FILES_OPEN_MAX:
                first = next(iter(self._open))
                close_all({first: self._open.pop(first)})
            path = self.paths[file]
            if is_remote(path):
                system, inner = place_of(path)
                opened = system.open_input_file(inner)
            else:
                opened = os.open(local(path), os.O_RDONLY)
        self._open[file] = opened
        return opened


def close_all(files: dict[int, Any]) -> None:
    for opened in files.values():
        if isinstance(opened, int):
            os.close(opened)
        else:
            opened.close()
    files.clear()
