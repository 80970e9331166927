"""Says how far a capture can be trusted: one sentence per point, and one for the whole.

In: `CaptureQuality`. Out: points in order of importance. Law: a sentence follows from its numbers, which accompany it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from kcap.output.grid import counts
from kcap.reports.capture_quality import SIDES, CaptureQuality
from kcap.reports.text import count
from kcap.weird import WeirdKind

GOOD, CARE, BAD = "good", "care", "bad"
ORDER: Final = (GOOD, CARE, BAD)
MISSING_BAD: Final = 0.01
"""Share of missing bytes above which so many exchanges have holes that sums are unreliable."""
DROPS_BAD: Final = 0.001
SKIPPED_CARE: Final = 0.01
UNDECODED_CARE: Final = 0.1
"""A single unreadable body may be damaged or a test. This share indicates another protocol, or an unknown release."""
COPIES_CARE: Final = 0.01
"""A stray copy is harmless. This share of copies indicates that the tap sees packets twice."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the account."""

    name: str
    verdict: str
    sentence: str
    numbers: dict[str, object] = field(default_factory=dict)


def share(part: int, whole: int) -> str:
    """A percentage that is not rounded down to zero."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f}%" if percent >= 0.1 or not part else "less than 0.1%"


def files(evidence: CaptureQuality) -> Point:
    """Whether the files could be read to their end."""
    cut = [file.name for file in evidence.files if not file.complete and file.packets]
    bad = [path for path, _ in evidence.failed]
    forms = ", ".join(sorted({file.format for file in evidence.files if file.format}))
    text = f"{count(len(evidence.files), 'file')} ({forms})"
    numbers: dict[str, object] = {"files": len(evidence.files), "unreadable": bad, "ends_early": cut}
    if bad:
        return Point("files", BAD, f"{text}; {len(bad)} could not be read: {', '.join(bad)}", numbers)
    if cut:
        return Point("files", CARE, f"{text}; {', '.join(cut)} ends early: everything before that was read", numbers)
    return Point("files", GOOD, f"{text}, read to the end", numbers)


def packets(evidence: CaptureQuality) -> Point:
    """Whether there are packets, and over what time."""
    number = evidence.packets
    starts = [file.first_ns for file in evidence.files if file.first_ns is not None]
    ends = [file.last_ns for file in evidence.files if file.last_ns is not None]
    if not number or not starts or not ends:
        return Point("packets", BAD, "there are no packets", {"packets": number})
    first, last = min(starts), max(ends)
    numbers: dict[str, object] = {
        "packets": number, "bytes": sum(file.packet_bytes for file in evidence.files), "first_ns": first, "last_ns": last,
    }  # fmt: skip
    begin = datetime.fromtimestamp(first // 1_000_000_000, UTC)
    return Point(
        "packets",
        GOOD,
        f"{count(number, 'packet')} in {(last - first) / 1e9:,.1f} s from {begin:%Y-%m-%d %H:%M:%S} UTC",
        numbers,
    )


def cuts(evidence: CaptureQuality) -> Point:
    """Whether packets were captured whole."""
    cut, number = sum(file.cut_packets for file in evidence.files), evidence.packets
    lengths = sorted({file.snaplen for file in evidence.files if file.snaplen is not None})
    numbers: dict[str, object] = {"snaplen": lengths, "cut_packets": cut}
    if not cut:
        return Point("snapshot length", GOOD, "every packet was captured whole", numbers)
    text = f"{count(cut, 'packet')} ({share(cut, number)}) were truncated: "
    text += "times, sizes and headers are right, truncated bodies are null"
    return Point("snapshot length", CARE, text, numbers)


def drops(evidence: CaptureQuality) -> Point:
    """Whether the capturing machine dropped packets."""
    known = [file.kernel_drops for file in evidence.files if file.kernel_drops is not None]
    if not known:
        return Point(
            "kernel drops", GOOD, "the files do not record drops; missing bytes (below) would show them", {"kernel_drops": None}
        )
    lost, numbers = sum(known), {"kernel_drops": sum(known)}
    if not lost:
        return Point("kernel drops", GOOD, "the capturing machine dropped nothing", dict(numbers))
    verdict = BAD if lost > DROPS_BAD * evidence.packets else CARE
    return Point("kernel drops", verdict, f"the capturing machine dropped {count(lost, 'packet')}", dict(numbers))


def clock(evidence: CaptureQuality) -> Point:
    """Whether timestamps are in order."""
    steps = evidence.weirds[str(WeirdKind.TIME_WENT_BACK)]
    if not steps:
        return Point("clock", GOOD, "timestamps never go back", {"steps_back": 0})
    seen = evidence.sightings[str(WeirdKind.TIME_WENT_BACK)]
    text = f"timestamps go back {count(steps, 'time')}, first by {seen}: latencies near these places are unreliable"
    return Point("clock", CARE, text, {"steps_back": steps})


PROTOCOLS: Final = {"tls": "TLS", "http": "HTTP"}
"""Phases of connections that are protocols, with their written form."""


def protocols(evidence: CaptureQuality) -> Point:
    """Whether the capture has Kafka traffic."""
    kafka, phases = evidence.phases["kafka"], evidence.phases
    others = counts(Counter({PROTOCOLS.get(name, name): number for name, number in phases.items() if name != "kafka"}))
    numbers: dict[str, object] = {"connections": dict(phases), "details": dict(evidence.details)}
    if not phases:
        return Point("connections", BAD, "there is no TCP connection", numbers)
    if not kafka:
        return Point("connections", BAD, f"none of {count(sum(phases.values()), 'connection')} is Kafka: {others}", numbers)
    text = f"{count(kafka, 'connection')} of Kafka" + (f"; others: {others}" if others else "")
    hidden = phases["tls"]
    if hidden:
        return Point("connections", CARE, f"{text}; TLS is not decrypted: there may be Kafka in it", numbers)
    return Point("connections", GOOD, text, numbers)


def midstream(evidence: CaptureQuality) -> Point:
    """Whether connections were open before the capture began."""
    number, kafka = evidence.connections["midstream"], evidence.connections["all"]
    if not number:
        return Point("beginnings", GOOD, "every Kafka connection is there from its first packet", {"midstream": 0})
    text = f"{number:,} of {count(kafka, 'Kafka connection')} had begun before the capture: their first bytes may be skipped"
    return Point("beginnings", CARE, text, {"midstream": number})


def sides(evidence: CaptureQuality) -> Point:
    """Whether both directions were captured."""
    number, kafka = evidence.connections["one_sided"], evidence.connections["all"]
    if not number:
        return Point("directions", GOOD, "both directions of every Kafka connection were captured", {"one_sided": 0})
    text = f"{number:,} of {count(kafka, 'Kafka connection')} show one direction only: they have no latencies and no pairs"
    return Point("directions", BAD if number * 2 > kafka else CARE, text, {"one_sided": number})


def copies(evidence: CaptureQuality) -> Point:
    """Whether packets were captured twice or retransmitted."""
    twice, again = evidence.connections["duplicated"], evidence.connections["retransmitted"]
    numbers: dict[str, object] = {
        "duplicated": twice,
        "retransmitted": again,
        "out_of_order": evidence.connections["out_of_order"],
    }
    repeated = f"{count(again, 'segment')} sent again"
    if not twice:
        return Point("copies", GOOD, f"no segment was captured twice; {repeated}", numbers)
    many = twice > COPIES_CARE * evidence.packets
    cause = "captured twice (several interfaces, or a mirror port)" if many else "captured twice, or sent again at once"
    return Point("copies", CARE if many else GOOD, f"{count(twice, 'segment')} {cause}, counted once; {repeated}", numbers)


def holes(evidence: CaptureQuality) -> Point:
    """Whether stream bytes are missing."""
    missing, captured = evidence.total("missing"), evidence.total("captured")
    numbers: dict[str, object] = {"missing": missing, "captured": captured}
    if not missing:
        return Point("missing bytes", GOOD, f"none of {count(captured, 'byte')} of Kafka streams is missing", numbers)
    whole = missing + captured
    text = (
        f"{count(missing, 'byte')} of {whole:,} ({share(missing, whole)}) were never captured: rows over holes are flagged gap"
    )
    return Point("missing bytes", BAD if missing > MISSING_BAD * whole else CARE, text, numbers)


def ledger(evidence: CaptureQuality) -> Point:
    """Whether every captured byte is accounted for."""
    numbers: dict[str, object] = {side: dict(evidence.ledger[side]) for side in SIDES} | {"unbalanced": evidence.unbalanced}
    skipped, captured = evidence.total("skipped"), evidence.total("captured")
    if evidence.unbalanced:
        text = f"the bytes of {count(evidence.unbalanced, 'stream')} do not add up: a fault of kcap, please report it"
        return Point("ledger", BAD, text, numbers)
    text = f"{captured:,} captured = {evidence.total('framed'):,} framed + {skipped:,} skipped + "
    text += f"{evidence.total('opaque'):,} opaque + {evidence.total('pending'):,} pending"
    if skipped > SKIPPED_CARE * captured:
        return Point(
            "ledger", CARE, f"{text}: {share(skipped, captured)} were skipped to find the next frame boundary", numbers
        )
    return Point("ledger", GOOD, text, numbers)


def exchanges(evidence: CaptureQuality) -> Point:
    """Whether requests have their responses, and whether messages can be decoded."""
    outcomes, rows = evidence.outcomes, sum(evidence.outcomes.values())
    lost = evidence.reasons["lost_in_capture"] + evidence.reasons["midstream"]
    parts = counts(outcomes).replace("_", " ")
    unread = evidence.weirds[str(WeirdKind.UNDECODED)]
    numbers: dict[str, object] = {
        "exchanges": rows, "outcomes": dict(outcomes), "reasons": dict(evidence.reasons), "undecoded": unread,
    }  # fmt: skip
    if not rows:
        return Point("exchanges", BAD, "there is no exchange", numbers)
    unreadable = unread > UNDECODED_CARE * rows
    text = f"{count(rows, 'exchange')}: {parts}"
    text += f"; {lost:,} without a counterpart in the capture" if lost else ""
    text += f"; {count(unread, 'message')} cannot be decoded as their API and version" if unreadable else ""
    return Point("exchanges", CARE if lost or unreadable else GOOD, text, numbers)


OF_KAFKA: Final = ("beginnings", "directions", "missing bytes", "ledger")
"""Points that concern Kafka connections only."""
POINTS: Final[tuple[Callable[[CaptureQuality], Point], ...]] = (
    files, packets, cuts, drops, clock, protocols, midstream, sides, copies, holes, ledger, exchanges,
)  # fmt: skip
SENTENCES: Final = {
    GOOD: "Good: the capture is complete, and results from it can be trusted.",
    CARE: "With care: rows that are not flagged can be trusted; look at {}.",
    BAD: "Bad: do not draw conclusions before looking at {}.",
}


def judge(evidence: CaptureQuality) -> tuple[str, str, list[Point]]:
    """The verdict, its sentence, and the points."""
    points = [point(evidence) for point in POINTS]
    if not evidence.connections["all"]:
        points = [
            replace(point, sentence="there is no Kafka connection")
            if point.name in OF_KAFKA and point.verdict == GOOD
            else point
            for point in points
        ]
    verdict = max((point.verdict for point in points), key=ORDER.index)
    named = ", ".join(point.name for point in points if point.verdict == verdict)
    return verdict, SENTENCES[verdict].format(named), points
