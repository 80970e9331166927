"""Simple TLS 1.3 handshakes, which nearly all connections have, read without the objects of a session, in half the time.

In: the records of many well-ordered handshakes. Out: the state of both sides after each, and what was read, from which a
session is made if one is needed. Law: that session is as if it had read the records itself; anything that is not simple is left
to a session.
"""

from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from kcap import limits
from kcap.tls import flight_kernels as at
from kcap.tls import handshake as messages
from kcap.tls.direction import EARLY, LABELS, Direction, Epoch, opens13
from kcap.tls.hello_kernels import MESSAGE_HEADER, R_AT
from kcap.tls.many_records import decrypted, rows_of, traffic_table
from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.record_kernels import KEYS_WIDTH
from kcap.tls.records import APPLICATION, HEADER, RecordPiece
from kcap.tls.secrets import Secrets
from kcap.tls.session import TlsSession
from kcap.tls.suites import Suite, suite_of
from kcap.tls.turns import Hidden

SECRETS: Final = tuple(labels[which] for which in (-2, -1) for labels in LABELS)
"""The labels of the secrets of client and server for the handshake, then for application data."""
RANDOM: Final = slice(HEADER + 6, HEADER + 38)
"""Position of the random in the record of a hello."""
MESSAGE: Final = Struct(f"={at.MESSAGE_WIDTH}q")
"""Layout of a message in `flight_kernels`."""


class FlightContents(NamedTuple):
    """The messages of a handshake. It holds no lists, because the garbage collector traverses each one, and there are tens of
    thousands of connections.
    """

    kept: bytes
    """The messages that a session needs, concatenated."""
    rows: bytes
    """The description of each, packed as `MESSAGE`."""
    chains: tuple[bytes, ...]
    """The messages with certificates."""


class SimpleSide:
    """One side after a handshake, as long as its records are well-ordered: the values from which its `Direction` is made."""

    __slots__ = ("_finished_ns", "_label", "_secret", "_suite", "budget", "held", "number", "packed")

    over = True

    def __init__(
        self, label: str, secret: bytes, packed: bytes, suite: Suite, finished_ns: int, offset: int, budget: int
    ) -> None:
        """`offset`: where its handshake ends; `budget`: that of a `Direction` at this point."""
        self._label, self._secret, self._suite, self._finished_ns = label, secret, suite, finished_ns
        self.packed = packed
        """As `RecordOpener.packed`."""
        self.held: tuple[int, bytes, list[RecordPiece] | tuple[()]] = (offset, b"", ())
        """As `RecordReader.held`."""
        self.number = 0
        """Number of the next record."""
        self.budget = budget

    @property
    def opener(self) -> RecordOpener:
        """Opens its records, one at a time."""
        return RecordOpener.unpacked(self.packed, self._suite)

    def passed(self, records: int, size: int) -> None:
        """As `Direction.passed`."""
        self.number += records
        self.budget += (limits.TLS_TRIAL_FACTOR - 1) * size - limits.TLS_TRIAL_COST * records

    def restart(self, offset: int, data: bytes, pieces: list[RecordPiece] | tuple[()]) -> None:
        """As `RecordReader.restart`."""
        self.held = offset, data, pieces

    def direction(self) -> Direction:
        """The same for a session."""
        found = Direction(
            epochs=[Epoch(self._label, None, self._secret, self._suite)], number=self.number, sealed=True, over=True,
            ready=True, finished_ns=self._finished_ns, budget=self.budget,
        )  # fmt: skip
        found.reader.restart(*self.held)
        return found


class SimpleHandshake(NamedTuple):
    """A handshake that was read."""

    secrets: Secrets
    sides: tuple[SimpleSide, SimpleSide]
    read: list[int]
    """Stream offsets of client and server after its records."""
    opened: int
    """Number of encrypted records among these."""
    contents: FlightContents

    @property
    def decrypted(self) -> int:
        """Number of records that have been opened."""
        return self.opened + self.sides[0].number + self.sides[1].number

    def session(self) -> TlsSession:
        """The session in its current state."""
        session = replayed(self.contents, self.decrypted, self.secrets)
        session.sides = self.sides[0].direction(), self.sides[1].direction()
        return session


def replayed(contents: FlightContents, decrypted: int, secrets: Secrets) -> TlsSession:
    """A session that took these messages. Without secrets, it knows the same of the connection."""
    session, top, chains = TlsSession(secrets, whole=True), 0, iter(contents.chains)
    for side, kept, size, time_ns in MESSAGE.iter_unpack(contents.rows):
        message = next(chains) if kept < 0 else contents.kept[top : top + kept]
        top += max(kept, 0)
        session.replay(side, APPLICATION, message, size, time_ns)
    session.facts.decrypted = decrypted
    return session


def simple_handshakes(secrets: Secrets, suites: Any, data: bytes, records: Any, cuts: Any) -> list[SimpleHandshake | None]:
    """Reads the handshakes in the first records of connections, which are between `cuts`: from hellos that agreed on the suite
    with this number (as in `hello_kernels`) up to the Finished of both sides. None for one that is not simple: its secrets are
    not known, it continues after the records, or it holds a part of a message or data before its end.
    """
    simple: list[SimpleHandshake | None] = [None] * len(suites)
    chosen: list[int] = []
    lengths: list[list[int]] = []
    of_suites: dict[int, list[int]] = {}
    given: list[bytes] = []
    simple_ones = (suites >= 0).nonzero()[0]
    each = simple_ones.tolist(), suites[simple_ones].tolist(), records[cuts[simple_ones], R_AT].tolist()
    for place, number, hello in zip(*each):
        agreed = _agreed(number)
        if agreed is None:
            continue
        suite, of_records = agreed
        traffic = secrets.traffic(data[hello + RANDOM.start : hello + RANDOM.stop])
        known = [traffic.get(label, b"") for label in SECRETS]
        if EARLY in traffic or {suite.hash_bytes} != set(map(len, known)):
            continue
        of_suites.setdefault(number, []).append(len(chosen))
        chosen.append(place)
        lengths.append(of_records)
        given += known
    if not chosen:
        return simple
    places, wire = np.array(chosen), np.frombuffer(data, np.uint8)
    keys, suites_of = _keys(of_suites, given)
    bounds = np.empty((len(records), 3), np.int64)
    bounds = bounds[: at.attempts(records, cuts, places, np.array(lengths), bounds)]
    begin = np.ascontiguousarray(keys[:, :2]).reshape(-1, KEYS_WIDTH)
    plain, sizes, counts, *_ = decrypted(
        data, bounds, begin, [0] * len(begin), lambda k: RecordOpener.unpacked(begin[k].tobytes(), suites_of[k >> 1])
    )
    highs, size = sizes.cumsum(), int(sizes.sum())
    found = np.empty((len(chosen), at.READ_WIDTH), np.int64)
    kept, rows, chains = _room(len(chosen), len(wire), size)
    firsts = np.concatenate([[0], counts.cumsum()])
    at.read_flights(wire, records, cuts, places, plain, firsts, highs, found, kept, rows, chains)
    low, row, chain = 0, 0, 0
    high, next_row, next_chain = found[-1, at.F_TOP :].tolist()
    of_kept, of_rows, of_chains = kept[:high].tobytes(), rows[:next_row].tobytes(), chains[:next_chain].tolist()
    then = rows_of(np.ascontiguousarray(keys[:, 2:]).reshape(-1, 2 * KEYS_WIDTH))
    for k, (place, packed, (*both, high, next_row, next_chain)) in enumerate(zip(chosen, then, found.tolist())):
        if both[at.F_READ] >= 0:
            some = tuple([messages.same(plain[start:end].tobytes()) for start, end in of_chains[chain:next_chain]])
            of_messages = of_rows[row * MESSAGE.size : next_row * MESSAGE.size]
            contents = FlightContents(of_kept[low:high], of_messages, some)
            simple[place] = _simple(secrets, suites_of[k], given[4 * k + 2 : 4 * k + 4], packed, both, contents)
        low, row, chain = high, next_row, next_chain
    return simple


def _room(handshakes: int, wire: int, plain: int) -> tuple[Any, Any, Any]:
    """Arrays for what `read_flights` stores of so many handshakes and bytes."""
    most = at.HELLOS * handshakes + plain // MESSAGE_HEADER
    return np.empty(wire + plain, np.uint8), np.empty((most, at.MESSAGE_WIDTH), np.int64), np.empty((most, 2), np.int64)


def _keys(of_suites: dict[int, list[int]], given: list[bytes]) -> tuple[Any, list[Suite]]:
    """The keys of handshakes, four rows each, and their suites. `of_suites` has the indexes of each suite's handshakes, `given`
    four secrets for each.
    """
    keys = np.empty((len(given) // 4, 4, KEYS_WIDTH), np.uint8)
    found = np.empty(len(keys), object)
    for number, places in of_suites.items():
        found[places] = suite = suite_of(number)
        mine = given if len(of_suites) == 1 else [given[4 * k + which] for k in places for which in range(4)]
        keys[places] = traffic_table(suite, mine).reshape(-1, 4, KEYS_WIDTH)
    return keys, found.tolist()


def _simple(
    secrets: Secrets, suite: Suite, then: list[bytes], packed: bytes, found: list[int], contents: FlightContents
) -> SimpleHandshake:
    """Makes a handshake that `read_flights` found. `then`: the secrets of client and server for application data; `packed`:
    their keys.
    """
    sides = []
    for side, label in enumerate(SECRETS[2:]):
        offset, records, spent, finished_ns = found[side::2]
        budget = limits.TLS_TRIAL_BYTES - spent - records * limits.TLS_TRIAL_COST + limits.TLS_TRIAL_FACTOR * offset
        keys = packed[side * KEYS_WIDTH : (side + 1) * KEYS_WIDTH]
        sides.append(SimpleSide(label, then[side], keys, suite, finished_ns, offset, budget))
    opened = found[at.F_NUMBER] + found[at.F_NUMBER + 1]
    return SimpleHandshake(secrets, (sides[0], sides[1]), found[at.F_READ : at.F_READ + 2], opened, contents)


@cache
def _agreed(number: int) -> tuple[Suite, list[int]] | None:
    """A suite, and the lengths of records with a Finished and with an alert; None if its records cannot be opened."""
    suite = suite_of(number)
    if suite.cipher is None or not opens13(suite):
        return None
    hidden = Hidden.of(suite)
    return suite, [*sorted(hidden.finished), *sorted(hidden.handshake_alert)]
