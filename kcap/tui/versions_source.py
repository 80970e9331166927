"""Computes the view of versions from the profiles of connections; for large captures in a separate process.

In: the file of profiles that the reading process wrote. Out: plain values: the report, rows of connections, stories. Law: both
forms give the same. Keys never wait while profiles of a large capture are loaded, and their memory is freed with the view.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any, Final, Protocol

from kcap.limits import PROFILES_INSIDE_BYTES
from kcap.tui.spill import unpickled

if TYPE_CHECKING:
    from kcap.reports.definition import Row
    from kcap.reports.versions.identity import Clients
    from kcap.reports.versions.profiles import ConnectionProfiles

START: Final = "import sys; from kcap.tui.versions_source import main; main(sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class VersionsRequest:
    """A request of the view."""

    files: Sequence[str]
    target: str
    """The release of Kafka that clients are checked against."""
    text: str = ""
    """The display filter."""
    connections: Collection[str | None] = ()
    """Connections with an exchange that passes the filter, if there is a filter."""


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """The data of all sections."""

    made: "Row"
    """The report."""
    rows: "list[Row]"
    """Rows of connections; if there are too many, those with the most trouble."""
    connections: int
    """Number of connections."""
    spoke: frozenset[str]
    """Of the connections that diagnoses name, those with exchanges."""


class VersionsSource(Protocol):
    """Gives pages and stories."""

    def page(self, request: VersionsRequest) -> VersionsPage: ...

    def story(self, uid: str) -> "Row | None":
        """How a connection of the last page negotiated versions; None if that is not available at once."""

    def close(self) -> None: ...


class VersionsInside:
    """Computes in this process."""

    def __init__(self, profiles: "ConnectionProfiles") -> None:
        self._all = profiles
        self._known: tuple[str, ConnectionProfiles, Clients, list[Row]] | None = None
        """What does not depend on the release: the filter, the profiles of its connections, their clients and rows."""
        self._diagnoses: list[Row] = []

    def page(self, request: VersionsRequest) -> VersionsPage:
        """Computes what all sections are made of."""
        from kcap.reports.versions.identity import identify
        from kcap.reports.versions.report import report
        from kcap.tui.views.stories_model import rows_of

        if self._known is None or self._known[0] != request.text:
            some = self._all.only(request.connections) if request.text else self._all
            known = identify(some)
            self._known = request.text, some, known, rows_of(some, known)
        _, some, known, rows = self._known
        made = report(some, list(request.files), request.target, known)
        self._diagnoses = made["diagnoses"]
        spoke = frozenset(uid for row in self._diagnoses for uid in row["connections"] if uid in some.profiles)
        return VersionsPage(made, rows, len(some.profiles) + len(some.others), spoke)

    def story(self, uid: str) -> "Row | None":
        """How a connection negotiated versions."""
        from kcap.reports.versions.story import of as story_of

        if self._known is None:
            return None
        _, some, known, _ = self._known
        return story_of(some, uid, known, self._diagnoses)

    def close(self) -> None:
        """Has nothing to end."""


class VersionsProcess:
    """Computes in a separate process, which ends with `close`, or with this process."""

    def __init__(self, path: str) -> None:
        self._line, theirs = Pipe()
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, path, str(theirs.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
            start_new_session=True,
        )  # fmt: skip
        theirs.close()

    def page(self, request: VersionsRequest) -> VersionsPage:
        """The data of all sections. Slow. Raises the exceptions of the other process, EOFError if it was ended."""
        with self._turn:
            found = self._answer_to(request)
        assert isinstance(found, VersionsPage)
        return found

    def story(self, uid: str) -> "Row | None":
        """How a connection negotiated versions; None while a page is computed."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            found: Row | None = self._answer_to(uid)
            return found
        finally:
            self._turn.release()

    def _answer_to(self, what: VersionsRequest | str) -> Any:
        self._line.send(what)
        found = self._line.recv()
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Ends the process; a caller that waits for a page gets EOFError."""
        self._process.kill()
        self._process.wait()


def source_of(path: str) -> VersionsSource:
    """The source: in this process if there are few profiles."""
    return VersionsInside(unpickled(path)) if os.path.getsize(path) <= PROFILES_INSIDE_BYTES else VersionsProcess(path)


def main(words: Sequence[str]) -> None:
    """Runs the process: serves requests until the other end of the connection closes."""
    from kcap.runtime import for_tables, give_way
    from kcap.tui.reader_main import NICER

    give_way(NICER)
    for_tables()
    path, line = words[0], Connection(int(words[1]))
    try:
        source = VersionsInside(unpickled(path))
        while True:
            requested = line.recv()
            try:
                line.send(source.story(requested) if isinstance(requested, str) else source.page(requested))
            except Exception as error:  # noqa: BLE001 - the view shows it, and asks again
                line.send(RuntimeError(f"{type(error).__name__}: {error}"))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
