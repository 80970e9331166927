"""Rows of a comparison: each difference with its evidence, its test and a sentence.

In: the summaries of two captures. Out: rows in the order in which people should read them. Law: a measured difference counts
(`significant`) if its p-value, corrected by Holm's method for all tests of the comparison, is below `ALPHA` and the effect is
large enough to matter. A difference of names or settings is a fact and needs no test. Every test has a row, whatever its
result.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, Final

import numpy as np

from kcap.output.grid import duration
from kcap.reports.definition import Row, nearest_ns, sort_value
from kcap.reports.diff.statistics import Compared, Counts, fisher, holm, mann_whitney, rates
from kcap.reports.diff.summaries import SCOPES, SLICES, STEP, Name, Side
from kcap.reports.text import size

ALPHA: Final = 0.01
"""Probability that a comparison of two equal captures reports any difference."""
VALUES_LEAST: Final = 20
"""Minimum number of values in each capture for a test of times or sizes."""
EVENTS_LEAST: Final = 30
"""Minimum number of exchanges in both captures together for a test of rates."""
DELTA: Final = 0.33
"""Cliff's delta above which an effect is more than small (Romano et al. 2006)."""
RATIO: Final = 1.5
"""Minimum ratio of rates or sizes that matters to people."""
SLOWER: Final = 1.25
"""Minimum ratio of medians that counts as a difference of times."""
SLOWER_NS: Final = 1_000_000
"""Minimum difference of medians in ns. Captures of one unchanged system differed by up to 0.75 ms."""
SHARE: Final = 0.01
"""Minimum difference of error shares that matters."""
RARE: Final = 0.05
"""Share of a setting's exchanges below which a value may have been missed by chance."""
FAILURES: Final = 3
"""Minimum number of errors to report without a test, if their class exists in one capture only."""
ORDER: Final = (
    "new-error", "errors", "unanswered", "client-software", "new-client", "gone-client", "new-broker", "gone-broker",
    "new-topic", "gone-topic", "codec", "acks", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "versions",
    "latency", "size", "count",
)  # fmt: skip
"""Kinds of differences in the order of the report: failures, changed settings, then what these may have made slower
or faster."""
PARTS: Final = {
    "service_ns": "time at the broker", "queue_ns": "waiting behind earlier requests", "rtt_ns": "the network's round trip",
    "throttle_ns": "throttling", "muted_ns": "the muted time after a throttle",
}  # fmt: skip
"""Part of a latency -> its words."""
WAITED_FOR: Final = {
    "Fetch": "for records", "ShareFetch": "for records", "JoinGroup": "for the group's members", "SyncGroup": "for the leader",
}  # fmt: skip
"""API -> what its requests wait for at the broker, apart from known long polls."""
WORDS: Final = {
    "codec": "compresses with", "acks": "writes with acks", "max_wait_ms": "fetches with fetch.max.wait.ms",
    "min_bytes": "fetches with fetch.min.bytes", "max_bytes": "fetches with fetch.max.bytes",
    "isolation_level": "fetches with isolation level", "client-software": "runs",
}  # fmt: skip
"""Setting -> its verb and name in sentences."""


def compared(before: Side, after: Side) -> list[Row]:
    """All comparisons as rows with corrected p-values, differences first."""
    rows = [
        *presence(before, after), *settings(before, after), *versions(before, after), *errors(before, after),
        *unanswered(before, after), *times(before, after), *sizes(before, after), *counts(before, after),
    ]  # fmt: skip
    tested = [row for row in rows if row["p_value"] is not None]
    for row, adjusted in zip(tested, holm([row["p_value"] for row in tested])):
        row["p_adjusted"] = adjusted
        row["significant"] = row["significant"] and adjusted < ALPHA
    for row in rows:
        row["sentence"] = row["sentence"] if row["significant"] else f"no difference: {row['sentence']}"
    places = {scope: place for place, scope in enumerate(SCOPES)}
    rows.sort(
        key=lambda row: (
            not row["significant"], ORDER.index(row["what"]), places.get(row["scope"], -1), -abs(row["effect"] or 0),
            *(sort_value(str(value)) for value in row["who"].values()),
        )
    )  # fmt: skip
    return rows


def row_of(
    what: str, scope: str, who: Row, sides: Sequence[object], sentence: str, test: Compared | None = None,
    matters: bool = True,
) -> Row:  # fmt: skip
    """A row. `sides` are the values before and after; `matters` says whether the effect is large enough."""
    before, after = sides
    return {
        "what": what, "scope": scope, "who": {name: value for name, value in who.items() if value is not None},
        "before": before, "after": after, "effect": round(test.effect, 4) if test else None,
        "p_value": test.p_value if test else None, "p_adjusted": None, "significant": matters, "sentence": sentence,
    }  # fmt: skip


def class_words(who: Row) -> str:
    api, rest = who.get("api"), {name: value for name, value in who.items() if name != "api"}
    place = f"{rest.pop('server_ip')}:{rest.pop('server_port')}" if "server_ip" in rest else None
    words = [f"client {rest['client_id']}"] if rest.get("client_id") is not None else []
    words += ["clients without a client id"] if "client_id" in rest and rest["client_id"] is None else []
    words += [f"topic {rest['topic']}"] if rest.get("topic") is not None else []
    words += [f"broker {place}"] if place else []
    return " of ".join(([str(api)] if api else []) + words)


# -- facts: names and settings ----------------------------------------------------------------------------------------
def presence(before: Side, after: Side) -> Iterator[Row]:
    """Clients, brokers and topics that have exchanges in only one of the captures."""
    kinds: tuple[tuple[str, str, Callable[[Name], Any], Callable[[Any], Row]], ...] = (
        ("client", "client", lambda name: name[0], lambda one: {"client_id": one}),
        ("broker", "broker", lambda name: name[:2], lambda one: {"server_ip": one[0], "server_port": one[1]}),
        ("topic", "topic", lambda name: name[0], lambda one: {"topic": one}),
    )
    for kind, scope, of, who in kinds:
        old, new = (exchanges_of(side, scope, of) for side in (before, after))
        for what, side, mine, others, words, when in (
            (f"new-{kind}", after, new, old, "is new", "after"), (f"gone-{kind}", before, old, new, "is gone", "before"),
        ):  # fmt: skip
            unlike = mine.keys() - others.keys()
            if kind == "topic":
                unlike -= undecided(side, before if side is after else after, unlike, others.keys())
            for one in sorted(unlike, key=str):
                number = mine[one]
                numbers = (None, {"count": number}) if side is after else ({"count": number}, None)
                text = f"{class_words(who(one))} {words}: {number:,} exchanges {when}, none in the other capture"
                if kind == "client":
                    software = side.settings.get(("client-software", one, None))
                    text += f"; it runs {', '.join(software)}" if software else ""
                yield row_of(what, scope, who(one), numbers, text)


def undecided(mine: Side, other: Side, unlike: Set[Any], others: Set[Any]) -> set[Any]:
    """Of the topics `unlike`, which only `mine` has, those that may be among the topics `others` of the other capture.

    A topic known only by its id in one capture may be a topic known only by its name in the other; nothing shows which.
    """

    def nameless(side: Side, topics: Iterable[Any]) -> set[Any]:
        return {topic for topic in topics if side.topics.get(topic, "") is None}

    def without_id(side: Side, topics: Iterable[Any]) -> set[Any]:
        return set(topics) - nameless(side, topics) - set(side.topics.values())

    ids = nameless(mine, unlike) if without_id(other, others) else set()
    names = without_id(mine, unlike) if nameless(other, others) else set()
    return ids | names | {topic for topic in unlike if mine.topics.get(topic) in others}


def exchanges_of(side: Side, scope: str, of: Callable[[Name], Any]) -> Counter[Any]:
    """Name of each class of a scope except None -> number of exchanges."""
    found: Counter[Any] = Counter()
    for (there, name), row in side.classes.items():
        if there == scope and of(name) is not None:
            found[of(name)] += row["count"]
    return found


def usual(values: dict[str, int]) -> set[str]:
    """Values that are not rare."""
    least = RARE * sum(values.values())
    return {value for value, n in values.items() if n >= least}


def changed(before: dict[str, int], after: dict[str, int]) -> bool:
    """Whether a usual value of one capture never occurs in the other."""
    return bool(usual(after) - before.keys() or usual(before) - after.keys())


def settings(before: Side, after: Side) -> Iterator[Row]:
    """Settings that clients of both captures changed, including their software."""
    for key, old in before.settings.items():
        name, client, api = key
        new = after.settings.get(key)
        if name in WORDS and new and api is None and changed(old, new):
            said = [", ".join(sorted(usual(values))) for values in (old, new)]
            text = f"{class_words({'client_id': client})} {WORDS[name]} {said[1]}; before: {said[0]}"
            yield row_of(name, "client", {"client_id": client}, said, text)


def versions(before: Side, after: Side) -> Iterator[Row]:
    """API versions that clients of both captures changed, one row per client."""
    found: dict[Any, list[tuple[str, str, str]]] = {}
    for key, old in before.settings.items():
        name, client, api = key
        new = after.settings.get(key)
        if name == "versions" and new and changed(old, new):
            said = [" ".join(sorted(usual(values), key=int)) for values in (old, new)]
            found.setdefault(client, []).append((api, *said))
    for client, apis in found.items():
        apis.sort()
        text = ", ".join(f"{api} v{new} (before v{old})" for api, old, new in apis)
        sides = [{api: one[side] for api, *one in apis} for side in (0, 1)]
        who = {"client_id": client}
        yield row_of("versions", "client", who, sides, f"{class_words(who)} uses other versions: {text}")


# -- measurements -----------------------------------------------------------------------------------------------------
def errors(before: Side, after: Side) -> Iterator[Row]:
    """Errors by client, API and name."""
    for key in sorted(before.errors.keys() | after.errors.keys(), key=str):
        client, api, error = key
        who = {"client_id": client, "api": api, "error": error}
        found = [side.errors.get(key, {"n": 0, "topic": None}) for side in (before, after)]
        who["topic"] = found[1]["topic"] or found[0]["topic"]
        counts_ = found[0]["n"], found[1]["n"]
        totals = tuple(side.classes.get(("client", (client, api)), {"count": 0})["count"] for side in (before, after))
        said = [f"{count:,} of {whole:,} requests" for count, whole in zip(counts_, totals)]
        what = "errors" if counts_[0] else "new-error"
        text = f"{error} to {class_words({'client_id': client, 'api': api})}" + (
            f" on topic {who['topic']}" if who["topic"] else ""
        )
        sides = [{"count": count, "exchanges": whole} for count, whole in zip(counts_, totals)]
        if all(totals):
            test = fisher(counts_, (totals[0], totals[1]))
            yield row_of(what, "client", who, sides, f"{text}: {said[0]} before, {said[1]} after", test,
                abs(test.effect) >= SHARE)  # fmt: skip
        elif totals[1]:
            sentence = f"{text}: {said[1]} after; it made no such request before"
            yield row_of(what, "client", who, sides, sentence, None, counts_[1] >= FAILURES)


def unanswered(before: Side, after: Side) -> Iterator[Row]:
    """Requests of a client's API whose connection was closed without a response, if both captures have requests of this class.

    Requests cut off by the end of the capture do not count. A consumer that ends during a Fetch has one such request too.
    """
    for key in sorted(before.classes.keys() & after.classes.keys(), key=str):
        scope, name = key
        sides = [{"count": side.classes[key]["cut_short"], "exchanges": side.classes[key]["count"]} for side in (before, after)]
        (old, whole), (new, of) = ((side["count"], side["exchanges"]) for side in sides)
        if scope == "client" and (old or new):
            who, test = dict(zip(SCOPES[scope], name)), fisher((old, new), (whole, of))
            text = (
                f"{class_words(who)} got no response before the connection was closed: {old:,} of {whole:,} requests before, "
                f"{new:,} of {of:,} requests after"
            )
            yield row_of("unanswered", scope, who, sides, text, test, abs(test.effect) >= SHARE)


def table_of(rows: list[Row], steps: list[int]) -> Counts:
    """Counts of values as an array: time slices by classes of value."""
    places = {step: at for at, step in enumerate(steps)}
    out = np.zeros((SLICES, len(steps)), np.int64)
    for row in rows:
        out[row["slice_"], places[row["step"]]] += row["n"]
    return out


def tested(old: list[Row], new: list[Row]) -> Compared | None:
    """The test of two samples; None if one is too small."""
    if min(sum(row["n"] for row in rows) for rows in (old, new)) < VALUES_LEAST:
        return None
    steps = sorted({row["step"] for row in (*old, *new)})
    return mann_whitney(table_of(old, steps), table_of(new, steps))


def times(before: Side, after: Side) -> Iterator[Row]:
    """Times of each class that has enough exchanges in both captures."""
    sent_by = [clients_by_api(side) for side in (before, after)]
    for key, old in before.times.items():
        scope, name = key
        test = tested(old, after.times.get(key, []))
        if test is None:
            continue
        who = dict(zip(SCOPES[scope], name))
        sides = [percentiles(side.classes[key]) for side in (before, after)]
        medians = [side["p50_ns"] for side in sides]
        low, high = sorted(medians)
        matters = abs(test.effect) >= DELTA and high - low >= SLOWER_NS and high >= SLOWER * max(low, 1)
        matters = matters and (medians[1] > medians[0]) == (test.effect > 0)
        slower = "slower" if medians[1] > medians[0] else "faster"
        text = (
            f"{class_words(who)} is {slower}: median {duration(medians[0])} before, {duration(medians[1])} after; "
            f"p95 {duration(sides[0]['p95_ns'])} before, {duration(sides[1]['p95_ns'])} after"
        )
        apart = sent_by[0][who["api"]].isdisjoint(sent_by[1][who["api"]])
        text += (blamed(before, after, key) + "; its clients are not the same as before" * apart) if matters else ""
        yield row_of("latency", scope, who, sides, text, test, matters)


def clients_by_api(side: Side) -> dict[Any, set[Any]]:
    found: dict[Any, set[Any]] = {}
    for scope, name in side.classes:
        if scope == "client":
            found.setdefault(name[1], set()).add(name[0])
    return found


def percentiles(row: Row) -> Row:
    """Figures of a class as the report shows them."""
    numbers = {name: nearest_ns(value) for name, value in row.items() if name.endswith(("p50_ns", "p95_ns", "p99_ns"))}
    return {"count": row["count"], "answered": row["answered"], **numbers}


def blamed(before: Side, after: Side, key: tuple[str, Name]) -> str:
    """The part of the mean time that changed most, if it has most of the change."""
    parts = {name: (after.classes[key][f"mean_{name}"] or 0) - (before.classes[key][f"mean_{name}"] or 0) for name in PARTS}
    name = max(parts, key=lambda one: abs(parts[one]))
    whole = sum(abs(value) for value in parts.values())
    api = dict(zip(SCOPES[key[0]], key[1]))["api"]
    words = PARTS[name] + (f", where a {api} waits {WAITED_FOR[api]}" if name == "service_ns" and api in WAITED_FOR else "")
    return f"; most of the change is {words}" if whole and abs(parts[name]) > whole / 2 else ""


def sizes(before: Side, after: Side) -> Iterator[Row]:
    """Bytes of the batches that each client writes."""
    for key, old in before.sizes.items():
        new = after.sizes.get(key, [])
        test = tested(old, new)
        if test is None:
            continue
        middle = [median(rows) for rows in (old, new)]
        who = {"client_id": key[0]}
        low, high = sorted(middle)
        matters = abs(test.effect) >= DELTA and high >= RATIO * low
        kind = "larger" if middle[1] > middle[0] else "smaller"
        text = f"{class_words(who)} writes {kind} batches: median {size(middle[0])} before, {size(middle[1])} after"
        yield row_of("size", "client", who, [{"p50_bytes": value} for value in middle], text, test, matters)


def median(rows: list[Row]) -> int:
    """The median of values that are counted in classes; its precision is the width of a class."""
    rest = sum(row["n"] for row in rows) / 2
    for row in sorted(rows, key=lambda one: one["step"]):
        rest -= row["n"]
        if rest <= 0:
            return int(np.exp((row["step"] + 0.5) * STEP)) if row["step"] >= 0 else 0
    return 0


def counts(before: Side, after: Side) -> Iterator[Row]:
    """Exchanges per second for each API of the clients that both captures have."""
    old_clients, new_clients = ({name[0] for scope, name in side.classes if scope == "client"} for side in (before, after))
    clients = old_clients & new_clients
    nothing = {"count": 0, "slices": [0] * SLICES}
    for key in sorted(before.classes.keys() | after.classes.keys(), key=str):
        scope, name = key
        if scope != "client" or name[0] not in clients:
            continue
        old, new = before.classes.get(key, nothing), after.classes.get(key, nothing)
        if old["count"] + new["count"] < EVENTS_LEAST:
            continue
        test = rates(old["slices"], new["slices"], before.span_ns, after.span_ns)
        who = dict(zip(SCOPES[scope], name))
        sides = [
            {"count": row["count"], "a_second": round(row["count"] * 1e9 / side.span_ns, 3)}
            for row, side in ((old, before), (new, after))
        ]
        more = "more often" if test.effect > 1 else "less often"
        text = f"{class_words(who)} is sent {more}: {sides[0]['a_second']:,} a second before, {sides[1]['a_second']:,} after"
        yield row_of("count", scope, who, sides, text, test, max(test.effect, 1 / test.effect) >= RATIO)
