"""Templates: what the profiles of many connections have in common, stored once.

In: connections as bytes (`growing_profiles`), and their rows of `connections`. Out: `ProfileTemplate`. Law: two profiles of one
template differ only in addresses, client ids, times and counts. Everything else that rules test of counts (whether one is zero,
whether all died, whether one is the size of an alert) is the same for all profiles of one template. Equal templates are one
object.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import accumulate, repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap.facts.api_versions import Offer, Software
from kcap.reports.versions.deflated_pieces import ValueNumbers
from kcap.reports.versions.growing_profiles import (
    FIGURES,
    HEAD,
    KIND_BITS,
    KINDS,
    NEVER,
    NO_KIND,
    NO_PROBE,
    NO_RESPONSE,
    STEP_WIDTH,
    USE_WIDTH,
    Common,
    Folded,
    GrowingProfiles,
    call_of,
)
from kcap.reports.versions.profile import ApiVersionsResponse, Trait, is_proven

if TYPE_CHECKING:
    from kcap.identities import Identity

ALERT_BYTES: Final = 7
"""A TLS alert record: 5 bytes of header, 2 of alert."""
SIGNS: Final = {0: 0, ALERT_BYTES: ALERT_BYTES}
"""The numbers that rules may distinguish, by their sign; all other numbers share one sign."""
ONES: Final = repeat(1)


class Placeholder(Enum):
    """What a template has in place of a value of a row."""

    NUMBER = "a figure"
    OWN = "what the identity says"


USE_FIGURES: Final = len(FIGURES)
"""Numbers of a use before those of its verdicts: count, first, last, example, refused, served, died, example of these."""
OF_IDENTITY: Final = {
    "connection": "uid", "client_ip": "client_ip", "client_port": "client_port", "server_ip": "server_ip",
    "server_port": "server_port",
}  # fmt: skip
"""Columns of a row whose values the identity has as well."""
CHECKED: Final = frozenset(
    {"client_packets", "server_packets", "client_missing", "server_missing", "client_captured", "server_captured",
     "server_framed"}
)  # fmt: skip
"""Numbers of a row that rules test."""

OWN: Final = {name: (name, Placeholder.OWN) for name in OF_IDENTITY}

Line = tuple[tuple[str, Any], ...]
"""A row of `connections`, with placeholders for the values that a template does not have."""
Signs = tuple[int, ...]
"""One sign for each number that rules test: 0, 7 for the size of an alert, 1 for others."""
First = tuple[int, int, int, str, str | None, int | None]
"""A step without its times: exchange, key, version, outcome, reason, error."""


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """One version of one API in a template."""

    client: int
    """Number of the client id among those of the connection."""
    key: int
    version: int
    codecs: int
    kinds: tuple[int, ...]
    """Verdicts."""
    spared: bool
    """Whether more requests were sent than died with the connection."""
    served: bool
    """Whether some got a response other than a refusal."""
    refused: bool
    died: bool

    @property
    def width(self) -> int:
        """Number of its figures."""
        return USE_FIGURES + len(self.kinds)


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTemplate:
    """What the profiles of several connections have in common."""

    software: Software | None
    principal: str | None
    offer: Offer | None
    midstream: bool
    opening: tuple[First, ...]
    probes: tuple[tuple[int | First, ApiVersionsResponse | None], ...]
    """ApiVersions requests: the position of a request within the opening, or the request itself."""
    uses: tuple[TemplateUse, ...]
    errors: tuple[tuple[int, int], ...]
    mechanism: str | None
    mechanisms: tuple[str, ...]
    ids_from: int | None
    traits: frozenset[Trait]
    line: Line
    signs: Signs

    @property
    def first_use(self) -> int:
        """Positions at which the figures of the uses begin; they follow each other."""
        return 1 + 2 * (len(self.opening) + sum(not isinstance(which, int) for which, _ in self.probes))


Uses = list[tuple[int, TemplateUse]]
"""Uses, each with the position at which its figures begin."""


class TemplateLayout(NamedTuple):
    """Positions of the figures of a template's uses: a connection may have thousands of client ids, which are read
    one by one."""

    starts: "array[int]"
    """Position at which the figures of each use begin, and the end of the last."""
    order: "array[int]"
    """Positions of the uses, grouped by client id."""
    clients: "array[int]"
    """Number of a client id -> where its uses begin in the order, and the end."""


@lru_cache(maxsize=4096)
def layout_of(template: ProfileTemplate) -> TemplateLayout:
    uses = template.uses
    starts = array("I", accumulate((use.width for use in uses), initial=template.first_use))
    order = array("I", sorted(range(len(uses)), key=lambda place: uses[place].client))
    counts = Counter(use.client for use in uses)
    clients = array("I", accumulate((counts[client] for client in range(len(counts))), initial=0))
    return TemplateLayout(starts, order, clients)


def uses_of(template: ProfileTemplate, client: int) -> Uses:
    """The uses of one of a template's client ids, by its number."""
    starts, order, clients = layout_of(template)
    return [(starts[place], template.uses[place]) for place in order[clients[client] : clients[client + 1]]]


def sign(number: int) -> int:
    """The sign of a number, which is all that rules may test of it."""
    return SIGNS.get(number, 1)


class LineForm(NamedTuple):
    """What the rows of several connections have in common, and how these ended."""

    line: Line
    signs: Signs
    midstream: bool
    is_over: bool
    """Whether the connection has ended, so that its login must be proven by now."""


class LinePlan(NamedTuple):
    """How the values of rows with the same names and types are split."""

    own: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    identity: Callable[["Identity"], tuple[Any, ...]]
    """Computes, from the identity, the values that the columns `OF_IDENTITY` have if they agree with it."""
    numbers: Callable[[tuple[Any, ...]], tuple[int, ...]]
    checked: Callable[[tuple[Any, ...]], tuple[int, ...]]
    others: Callable[[tuple[Any, ...]], tuple[Any, ...]]


def _several(of: Callable[..., Any], parts: list[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A getter of `operator` that returns a tuple for any number of parts."""
    if len(parts) > 1:
        return of(*parts)  # type: ignore[no-any-return]
    return lambda value: tuple(of(part)(value) for part in parts)


def _plan_of(names: tuple[str, ...], types: tuple[type, ...]) -> LinePlan:
    places = [place for place, name in enumerate(names) if name not in OF_IDENTITY]
    numbers = [place for place in places if types[place] is int]
    return LinePlan(
        _several(itemgetter, [place for place, name in enumerate(names) if name in OF_IDENTITY]),
        _several(attrgetter, [OF_IDENTITY[name] for name in names if name in OF_IDENTITY]),
        _several(itemgetter, numbers), _several(itemgetter, [place for place in numbers if names[place] in CHECKED]),
        _several(itemgetter, [place for place in places if types[place] is not int]),
    )  # fmt: skip


class ProfileDeduplicator:
    """The templates of profiles; equal ones are one object."""

    def __init__(self) -> None:
        self.forms = ValueNumbers()
        """`LineForm`s; number 0 is that of a connection without a row."""
        self._no_line = self.forms[LineForm((), (), False, False)]
        self._plans: dict[tuple[tuple[str, ...], tuple[type, ...]], LinePlan] = {}
        self._forms: dict[tuple[Any, ...], int] = {}
        self._bodies: dict[bytes, ProfileTemplate] = {}
        """The common part of a `Folded` -> a template without principal and row."""
        self._body_of: dict[ProfileTemplate, ProfileTemplate] = {}
        self._made: dict[tuple[ProfileTemplate, str | None, int], ProfileTemplate] = {}
        self._templates: dict[tuple[Any, ...], ProfileTemplate] = {}

    def form(
        self, values: Mapping[str, Any], identity: "Identity", *, midstream: bool, is_over: bool
    ) -> tuple[int, tuple[int, ...]]:
        """The number of a row's form, and its figures. Among rows with the same names and types, forms differ in the values
        that are neither figures nor those of the identity, and in the signs."""
        names, parts = tuple(values), tuple(values.values())
        types = tuple(map(type, parts))
        plan = self._plans.get((names, types))
        if plan is None:
            plan = self._plans[names, types] = _plan_of(names, types)
        if plan.own(parts) != plan.identity(identity):
            line, signs, numbers = _line_of(values, identity)
            return self.forms[LineForm(line, signs, midstream, is_over)], tuple(numbers)
        short = id(plan), plan.others(parts), tuple(map(SIGNS.get, plan.checked(parts), ONES)), midstream, is_over
        found = self._forms.get(short)
        if found is None:
            line, signs, _ = _line_of(values, identity)
            found = self._forms[short] = self.forms[LineForm(line, signs, midstream, is_over)]
        return found, plan.numbers(parts)

    def template(self, folded: Folded, growing: GrowingProfiles) -> ProfileTemplate:
        body = self._bodies.get(folded.common)
        if body is None:
            body = self._bodies[folded.common] = _body_of(folded.common, growing)
        return self._with_line(body, folded.growing.principal, folded.growing.line)

    def __contains__(self, template: ProfileTemplate) -> bool:
        return template in self._body_of

    def ended(self, template: ProfileTemplate, form: int) -> ProfileTemplate:
        """The template with a row, made of one without."""
        return self._with_line(self._body_of[template], template.principal, form)

    def _with_line(self, body: ProfileTemplate, principal: str | None, form: int) -> ProfileTemplate:
        made = self._made.get((body, principal, form))
        if made is None:
            line, signs, midstream, is_over = self.forms.known[form]
            proven = not is_over or is_proven(body.errors, ((use.key, use.served) for use in body.uses))
            whole = body, principal if proven else None, midstream, line, signs
            made = self._templates.get(whole)
            if made is None:
                made = self._templates[whole] = replace(
                    body, principal=whole[1], midstream=midstream, line=line, signs=signs
                )  # fmt: skip
                self._body_of[made] = body
            self._made[body, principal, form] = made
        return made


def _body_of(common: bytes, growing: GrowingProfiles) -> ProfileTemplate:
    """The template of what connections have in common, without principal and row."""
    numbers = memoryview(common).cast("q")
    known: Common = growing.commons.known[numbers[0]]
    at = HEAD + STEP_WIDTH * numbers[1]
    steps = [numbers[start : start + STEP_WIDTH].tolist() for start in range(HEAD, at, STEP_WIDTH)]
    opening: list[First] = []
    probes: list[tuple[int, int | First, ApiVersionsResponse | None]] = []
    for behind, exchange, key, version, words, error, answer in steps:
        outcome, reason = growing.words.known[words]
        first = exchange, key, version, outcome, reason, None if error == NEVER else error
        if answer != NO_PROBE:
            said = None if answer == NO_RESPONSE else growing.answers[answer]
            probes.append((exchange, first if behind else len(opening), said))
        if not behind:
            opening.append(first)
    uses = []
    for start in range(at, len(numbers), USE_WIDTH):
        client, call, codecs, packed, flags = numbers[start : start + USE_WIDTH].tolist()
        kinds = []
        while packed:
            kinds.append((packed & KINDS - 1) + NO_KIND)
            packed >>= KIND_BITS
        uses.append(TemplateUse(client, *call_of(call), codecs, tuple(kinds), *(bool(flags >> bit & 1) for bit in range(4))))
    probes.sort(key=lambda probe: probe[0])
    return ProfileTemplate(
        known.software, None, known.offer, False, tuple(opening), tuple(probe[1:] for probe in probes), tuple(uses),
        known.errors, known.mechanism, known.mechanisms, known.ids_from, known.traits, (), (),
    )  # fmt: skip


def _line_of(values: Mapping[str, Any], identity: "Identity") -> tuple[Line, Signs, list[int]]:
    """The row of a template, its signs, and the numbers that are figures."""
    line: list[tuple[str, Any]] = []
    signs: list[int] = []
    numbers: list[int] = []
    for name, value in values.items():
        if name in OF_IDENTITY and value == getattr(identity, OF_IDENTITY[name]):
            line.append(OWN[name])
        elif type(value) is int:
            line.append((name, Placeholder.NUMBER))
            numbers.append(value)
            if name in CHECKED:
                signs.append(sign(value))
        else:
            line.append((name, value))
    return tuple(line), tuple(signs), numbers
