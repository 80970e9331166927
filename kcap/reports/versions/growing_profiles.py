"""Profiles that may still grow, as rows of columns: what batches show of connections, until the profiles are stored.

In: one row for each use and step of a connection in a batch; other facts of a connection. Out: `Folded`, the content of each
connection as bytes: what it may have in common with others, its figures, and its client ids. Law: the bytes of a connection do
not depend on how its rows were spread over batches; equal content gives equal bytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from kcap.arrays.vectors import grouped
from kcap.facts.api_versions import Offer, Software
from kcap.reports.versions.deflated_pieces import ValueNumbers
from kcap.reports.versions.profile import ApiVersionsResponse, ConnectionProfile, ProfiledCall, Trait

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.identities import Identity

NEVER: Final = -(1 << 63)
"""Stands for a missing time, exchange or error."""
LATE: Final = 1 << 62
"""A value above all times and exchanges."""
(
    NUMBER, CLIENT, CALL, KIND, OF_KIND, COUNT, FIRST, LAST, EXAMPLE, REFUSED, SERVED, DIED, LOST, CODECS,
) = range(14)  # fmt: skip
"""Columns of a use: the connection, the client id, API and version as one number, a verdict and its count, and the fields of
`profile.Use`. `LOST` is the example of the uses that died, `LATE` if there is none."""
FIGURES: Final = (COUNT, FIRST, LAST, EXAMPLE, REFUSED, SERVED, DIED, LOST)
NO_KIND: Final = -2
"""Stands for the verdict in rows of a use without one."""
KIND_BITS: Final = 3
KINDS: Final = 1 << KIND_BITS
"""Exceeds the number of verdicts, including `NO_KIND`."""
SUMMED: Final = {
    OF_KIND: np.add, COUNT: np.add, FIRST: np.minimum, LAST: np.maximum, EXAMPLE: np.minimum, REFUSED: np.add, SERVED: np.add,
    DIED: np.add, LOST: np.minimum, CODECS: np.bitwise_or,
}  # fmt: skip
"""How the columns of several rows of one use are combined."""
STEP_NUMBER, BEHIND, EXCHANGE, KEY, VERSION, WORDS, ERROR, ANSWER, REQUESTED, RESPONDED, BEGINS = range(11)
"""Columns of a step: the connection, whether it is an ApiVersions request after the opening, the fields of
`profile.ProfiledCall`, the response to an ApiVersions request, and where correlation ids begin as far as the step shows it,
else `LATE`."""
NO_PROBE, NO_RESPONSE = -2, -1
"""`ANSWER` of a step that is no stored ApiVersions request; and of one without a response."""
STEP_WIDTH: Final = ANSWER + 1 - BEHIND
USE_WIDTH: Final = 5
"""Numbers per step and per use in what connections have in common."""
HEAD: Final = 2
"""Numbers before them: that of the traits and names, and the number of steps."""


Number = TypeVar("Number", int, "Int64s")


def call_numbers(keys: Number, versions: Number) -> Number:
    """Each API and version as one number; the numbers have the same order."""
    return (keys + (1 << 15)) << 16 | (versions + (1 << 15))


def call_of(number: int) -> tuple[int, int]:
    """API and version of a number."""
    return (number >> 16) - (1 << 15), (number & 0xFFFF) - (1 << 15)


@dataclass(slots=True)
class GrowingProfile:
    """The facts of a connection beside its rows; the fields are those of `ConnectionProfile`."""

    identity: "Identity"
    software: Software | None = None
    principal: str | None = None
    offer: Offer | None = None
    mechanism: str | None = None
    mechanisms: tuple[str, ...] = ()
    ids_from: int = LATE
    traits: frozenset[Trait] = frozenset()
    errors: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(key, error code) of the two SASL requests -> count and example."""
    probe_count: int = 0
    probes_kept: int = 0
    line: int = 0
    """Number of the form of its row of `connections`."""
    line_figures: tuple[int, ...] = ()

    def failed(self, key: int, error: int, exchange: int) -> None:
        """Counts an error of SASL."""
        count, example = self.errors.get((key, error), (0, exchange))
        self.errors[key, error] = count + 1, example


class Common(NamedTuple):
    """What several connections may have in common beside their rows."""

    software: Software | None
    offer: Offer | None
    mechanism: str | None
    mechanisms: tuple[str, ...]
    ids_from: int | None
    traits: frozenset[Trait]
    errors: tuple[tuple[int, int], ...]


class Folded(NamedTuple):
    """A connection as bytes."""

    growing: GrowingProfile
    common: bytes
    """Numbers of 8 bytes: the number of a `Common`, the number of steps, the steps, the uses."""
    clients: bytes
    """Numbers of its client ids; the uses refer to them by position."""
    figures: bytes
    """Numbers of 8 bytes: ApiVersions requests, times of the steps, uses."""


@dataclass(slots=True)
class Rows:
    """Rows as columns, in parts that are concatenated when they are read."""

    width: int
    parts: "list[Int64s]" = field(default_factory=list)
    size: int = 0

    def add(self, rows: "Int64s") -> None:
        """Adds rows; each line of the array is a column."""
        if rows.shape[1]:
            self.parts.append(rows)
            self.size += rows.shape[1]

    def all(self) -> "Int64s":
        if len(self.parts) != 1:
            self.parts = [np.concatenate(self.parts, axis=1) if self.parts else np.zeros((self.width, 0), np.int64)]
        return self.parts[0]

    def put(self, rows: "Int64s") -> None:
        self.parts, self.size = [rows], rows.shape[1]


class GrowingProfiles:
    """The connections whose profiles can still grow, by number, in the order in which they began."""

    def __init__(self) -> None:
        self.known: dict[int, GrowingProfile] = {}
        self._next = 0
        self._uses, self._steps = Rows(CODECS + 1), Rows(BEGINS + 1)
        self._compact_at = 0
        self.clients, self.words, self.commons = ValueNumbers(), ValueNumbers(), ValueNumbers()
        """Client ids, outcomes with reasons, and `Common`, each with its number."""
        self.answers: list[ApiVersionsResponse] = []
        self._answers: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Number of rows of uses."""
        return self._uses.size

    def begin(self, identity: "Identity") -> int:
        """Begins a connection; returns its number."""
        self._next += 1
        self.known[self._next] = GrowingProfile(identity)
        return self._next

    def answer(self, said: ApiVersionsResponse | None) -> int:
        """The number of a response."""
        if said is None:
            return NO_RESPONSE
        found = self._answers.get(id(said))  # the key is valid as long as the response lives, which is kept here
        if found is None:
            found = self._answers[id(said)] = len(self.answers)
            self.answers.append(said)
        return found

    def add(self, uses: "Iterable[Int64s | int]" = (), steps: "Iterable[Int64s | int]" = ()) -> None:
        """Adds rows given as columns; a scalar applies to all rows."""
        for rows, columns in ((self._uses, [*uses]), (self._steps, [*steps])):
            if columns:
                made = np.empty((rows.width, len(columns[0])), np.int64)  # type: ignore[arg-type]
                for at, column in enumerate(columns):
                    made[at] = column
                rows.add(made)

    def add_profile(self, profile: ConnectionProfile, line: int, line_figures: tuple[int, ...]) -> int:
        """Adds a profile that exists as an object; returns its number."""
        number = self.begin(profile.identity)
        self.known[number] = GrowingProfile(
            profile.identity, profile.software, profile.principal, profile.offer, profile.mechanism, profile.mechanisms,
            LATE if profile.ids_from is None else profile.ids_from, frozenset(profile.traits),
            {error: (count, profile.error_example[error]) for error, count in profile.errors.items()}, profile.probe_count,
            len(profile.probes), line, line_figures,
        )  # fmt: skip
        steps = [[number, 0, *self._step(step), NO_PROBE, *_times(step), LATE] for step in profile.opening]
        places = {id(step): place for place, step in enumerate(profile.opening)}
        for probe in profile.probes:
            place, answer = places.pop(id(probe.step), None), self.answer(probe.answer)
            if place is not None:
                steps[place][ANSWER] = answer
            else:
                steps.append([number, 1, *self._step(probe.step), answer, *_times(probe.step), LATE])
        uses = []
        for (client, key, version), use in profile.uses.items():
            lost = LATE if use.died_example is None else use.died_example
            row = [number, self.clients[client], call_numbers(key, version), NO_KIND, 0, use.count, use.first_ns, use.last_ns,
                   use.example, use.refused, use.served, use.died, lost, use.codecs]  # fmt: skip
            nothing = [*row[:COUNT], 0, LATE, NEVER, LATE, 0, 0, 0, LATE, 0]
            uses.append(row)
            uses += [[*nothing[:KIND], kind, count, *nothing[COUNT:]] for kind, count in use.verdicts.items()]
        for rows, made in ((self._uses, uses), (self._steps, steps)):
            if made:
                rows.add(np.array(made, np.int64).T)
        return number

    def _step(self, step: ProfiledCall) -> tuple[int, ...]:
        error = NEVER if step.error is None else step.error
        return step.exchange, step.key, step.version, self.words[step.outcome, step.reason], error

    def compact(self, least: int) -> None:
        """Combines rows of the same use, if there are twice as many rows as after the last time and more than `least`."""
        if self._uses.size > max(least, self._compact_at):
            self._uses.put(together(self._uses.all(), self._codes(self._uses.all())))
            self._compact_at = 2 * self._uses.size

    def _codes(self, uses: "Int64s") -> "Int64s":
        """One number for each combination of connection, client id, call and verdict."""
        calls, _, call = grouped(uses[CALL])
        uses_of = (uses[NUMBER] * len(self.clients) + uses[CLIENT]) * len(calls) + call
        codes: Int64s = uses_of * KINDS + uses[KIND] - NO_KIND
        return codes

    def _taken(self, rows: Rows, numbers: "Int64s") -> "Int64s":
        """Removes and returns the rows of some connections; each connection is renumbered by its position among these."""
        every = rows.all()
        place = np.searchsorted(numbers, every[0])
        mine = numbers[np.minimum(place, len(numbers) - 1)] == every[0]
        found = every[:, mine]
        found[0] = place[mine]
        rows.put(every[:, ~mine])
        return found

    def forget(self, number: int) -> None:
        """Drops a connection."""
        del self.known[number]
        for rows in (self._uses, self._steps):
            self._taken(rows, np.array([number]))

    def fold(self, some: list[int]) -> Iterator[Folded]:
        """Removes and returns connections by their numbers, which are in order."""
        if not some:
            return
        known = [self.known.pop(number) for number in some]
        numbers, size = np.array(some), len(some)
        steps = self._taken(self._steps, numbers)
        steps = steps[:, np.lexsort((steps[EXCHANGE], steps[BEHIND], steps[0]))]
        uses, kinds, clients = self._used(self._taken(self._uses, numbers))
        begins = np.full(size, LATE)
        np.minimum.at(begins, steps[0], steps[BEGINS])
        commons = [self._common(one, ids) for one, ids in zip(known, begins.tolist())]
        step_counts = np.bincount(steps[0], minlength=size)
        # what connections have in common
        ends = np.cumsum(HEAD + STEP_WIDTH * step_counts + USE_WIDTH * np.bincount(uses[0], minlength=size))
        starts = np.append(0, ends)[:-1]
        common = np.empty(ends[-1], np.int64)
        common[starts], common[starts + 1] = commons, step_counts
        scatter(common, (starts + HEAD)[steps[0]] + STEP_WIDTH * ranks(steps[0]), steps[BEHIND : ANSWER + 1])
        behind = (starts + HEAD + STEP_WIDTH * step_counts)[uses[0]] + USE_WIDTH * ranks(uses[0])
        scatter(common, behind, uses[1 + len(FIGURES) :])
        # figures
        of_kinds = np.bincount(kinds[0], minlength=uses.shape[1])
        widths = len(FIGURES) + of_kinds
        before = np.append(0, np.cumsum(widths))
        first_use = np.searchsorted(uses[0], np.arange(size + 1))
        figure_ends = np.cumsum(1 + 2 * step_counts) + before[first_use[1:]]
        figure_starts = np.append(0, figure_ends)[:-1]
        figures = np.empty(figure_ends[-1], np.int64)
        figures[figure_starts] = [one.probe_count for one in known]
        scatter(figures, (figure_starts + 1)[steps[0]] + 2 * ranks(steps[0]), steps[REQUESTED : RESPONDED + 1])
        at = (figure_starts + 1 + 2 * step_counts - before[first_use[:-1]])[uses[0]] + before[:-1]
        scatter(figures, at, uses[1 : 1 + len(FIGURES)])
        scatter(figures, at[kinds[0]] + len(FIGURES) + ranks(kinds[0]), kinds[1:])
        client_ends = np.cumsum(np.bincount(clients[0], minlength=size))
        yield from map(
            Folded, known, pieces(common, ends), pieces(np.ascontiguousarray(clients[1]), client_ends),
            pieces(figures, figure_ends),
        )  # fmt: skip

    def _common(self, one: GrowingProfile, begins: int) -> int:
        ids = min(one.ids_from, begins)
        return self.commons[
            Common(
                one.software,
                one.offer,
                one.mechanism,
                one.mechanisms,
                None if ids == LATE else ids,
                one.traits,
                tuple(one.errors),
            )
        ]

    def _used(self, rows: "Int64s") -> "tuple[Int64s, Int64s, Int64s]":
        """Uses of connections: the connection, the figures, and what may be in common with others. For each verdict: the use,
        and its count. For each client id: the connection and its number. All are ordered by connection, and those of one
        connection by their arrival."""
        verdicts = together(rows, self._codes(rows))
        codes = self._codes(verdicts) // KINDS
        uses = together(verdicts, codes)
        uses = uses[:, np.argsort(uses[NUMBER], kind="stable")]
        mine = self._codes(uses) // KINDS  # the calls are the same, so the codes are too
        order = np.argsort(mine)
        of_use = order[np.searchsorted(mine[order], codes)] if len(codes) else codes
        some = np.flatnonzero(verdicts[KIND] != NO_KIND)
        some = some[np.argsort(of_use[some], kind="stable")]
        kinds = np.stack([of_use[some], verdicts[OF_KIND][some]])
        packed = np.zeros(uses.shape[1], np.int64)
        np.add.at(packed, kinds[0], (verdicts[KIND][some] - NO_KIND) << KIND_BITS * ranks(kinds[0]))
        known, first, client = grouped(uses[NUMBER] * len(self.clients) + uses[CLIENT])
        order = np.argsort(first)
        number, name = np.divmod(known[order], max(len(self.clients), 1))
        local = np.empty(len(known), np.int64)
        local[order] = ranks(number)
        flags = (uses[COUNT] > uses[DIED]) + 2 * (uses[SERVED] > 0) + 4 * (uses[REFUSED] > 0) + 8 * (uses[DIED] > 0)
        figures = uses[list(FIGURES)]
        figures[-1][figures[-1] == LATE] = NEVER
        return (
            np.concatenate([uses[:1], figures, [local[client], uses[CALL], uses[CODECS], packed, flags]]),
            kinds, np.stack([number, name]),
        )  # fmt: skip


def _times(step: ProfiledCall) -> tuple[int, int]:
    return NEVER if step.requested_ns is None else step.requested_ns, NEVER if step.responded_ns is None else step.responded_ns


def together(rows: "Int64s", codes: "Int64s") -> "Int64s":
    """Combines uses with equal codes, in the order of their arrival."""
    if not len(codes):
        return rows
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) == len(codes):
        return rows
    firsts = order[starts]
    made = rows[:, firsts]
    for column, reduce in SUMMED.items():
        made[column] = reduce.reduceat(rows[column][order], starts)
    return made[:, np.argsort(firsts)]


def ranks(numbers: "Int64s") -> "Int64s":
    """The position of each entry among those with its number; equal numbers are adjacent."""
    places = np.arange(len(numbers))
    new = np.ones(len(numbers), np.bool_)
    new[1:] = numbers[1:] != numbers[:-1]
    return places - np.maximum.accumulate(np.where(new, places, 0))


def scatter(into: "Int64s", places: "Int64s", columns: "Int64s") -> None:
    """Writes the columns of rows one after the other, those of each row from its offset on."""
    for at, column in enumerate(columns):
        into[places + at] = column


def pieces(numbers: "Int64s", ends: "Int64s") -> Iterator[bytes]:
    """The numbers as bytes, split at the end of each part."""
    data, start = numbers.tobytes(), 0
    for end in (8 * ends).tolist():
        yield data[start:end]
        start = end
