"""What the versions report gathers of captures, read once; and connections made up of requests."""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from kcap.facts.api_versions import Offer
from kcap.facts.tracker import MetadataTracker
from kcap.facts.version_verdicts import ABOVE, BELOW, OK
from kcap.identities import Identities, Identity
from kcap.net.tcp import ACK, FIN, MASK
from kcap.reports.versions.growing_profiles import LATE, call_numbers
from kcap.reports.versions.profile import ApiVersionsRequest, ApiVersionsResponse, ConnectionProfile, ProfiledCall, Use
from kcap.reports.versions.profile_store import ProfileStore, StoredProfile
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.reports.versions.report import report
from kcap.schema.quirks import API_VERSIONS
from kcap.session import Capture
from tests.support.messages import saved
from tests.support.wire import Tap

ROOT = Path(__file__).resolve().parents[2]
PCAPS = ROOT / "pcaps"
SHARED = ROOT.parent / "shared" / "captures"
SERVER = "10.0.0.2", 9092


@cache
def gathered(path: Path) -> ConnectionProfiles:
    """A capture's connections."""
    return gather(Capture([str(path)]).read(keep_connections=True))


def of(name: str) -> ConnectionProfiles:
    """One of the small captures."""
    return gathered(PCAPS / name)


def step(exchange: int, key: int, version: int, *, outcome: str = "answered", error: int | None = 0) -> ProfiledCall:
    """A request."""
    reason = "fin" if outcome == "unanswered" else None
    answered = exchange * 1000 + 500 if outcome == "answered" else None
    return ProfiledCall(exchange, key, version, outcome, reason, error if answered else None, exchange * 1000, answered)


def profile(
    calls: list[tuple[int, int]], *, probe: int | None = None, offer: dict[int, tuple[int, int]] | None = None, uid: str = "C1",
    client: str | None = "app", ends: str = "fin", died: bool = False,
) -> ConnectionProfile:  # fmt: skip
    """A connection that asks (or not) and then sends these; with `died`, the last costs the connection."""
    made = ConnectionProfile(Identity(uid, "10.0.0.1", 40000, *SERVER))
    steps = [(API_VERSIONS, probe), *calls] if probe is not None else list(calls)
    for number, (key, version) in enumerate(steps, 1):
        lost = died and number == len(steps)
        made.opening.append(step(number, key, version, outcome="unanswered" if lost else "answered"))
        use = made.uses.setdefault((client, key, version), Use(example=number, first_ns=number, last_ns=number))
        use.count += 1
        use.served += not lost
        low, high = (offer or {}).get(key, (1 << 15, -1) if offer else (0, 1 << 15))
        use.verdicts += Counter({ABOVE if version > high else BELOW if version < low else OK: 1})
        if lost:
            use.died, use.died_example = 1, number
    if offer is not None:
        made.offer = Offer(offer)
    if probe is not None:
        answer = ApiVersionsResponse(0, probe, len(offer or ()), {}, made.offer)
        made.probes.append(ApiVersionsRequest(made.opening[0], answer))
        made.probe_count = 1
    made.line = {
        "connection": uid, "client_ip": "10.0.0.1", "server_ip": SERVER[0], "server_port": SERVER[1], "began": "syn",
        ""
        "ended": ends, "closed_by": "server" if died else "client",
        "client_packets": 4, "server_packets": 4, "client_missing": 0, "server_missing": 0, "first_ns": 0,
        "server_captured": 100, "server_framed": 100, "client_captured": 100, "phase": "kafka", "detail": None, "packets": 8,
    }  # fmt: skip
    return made


def whole(*profiles: ConnectionProfile) -> ConnectionProfiles:
    """A capture of these."""
    made = ConnectionProfiles(MetadataTracker())
    for one in profiles:
        made.profiles[one.uid] = one
        if one.offer is not None:
            made.tracker.offers.add(one.server, 0, one.offer)
            made.offers.setdefault(one.server, {})[id(one.offer)] = one.offer, f"{one.uid}.1"
    return made


def line(
    phase: str, *, server_captured: int = 0, ended: str = "rst", detail: str | None = None, **more: object
) -> dict[str, object]:
    """A connection without an exchange."""
    return {
        "connection": "C9", "client_ip": "10.0.0.1", "server_ip": SERVER[0], "server_port": SERVER[1], "phase": phase,
        "detail": detail, "began": "syn", "ended": ended, "packets": 8, "client_packets": 4, "server_packets": 4,
        "client_captured": 100, "server_captured": server_captured, "client_missing": 0, "server_missing": 0,
        "closed_by": "server", "alerts": None, "hello_bytes": 0, "first_ns": 0,
    } | more  # fmt: skip


def closed_by_server(story: Tap) -> Tap:
    """The server finishes first, as a broker does that does not take a request."""
    for side in (1, 0):
        story.add(side, FIN | ACK)
        story.next[side] = (story.next[side] + 1) & MASK
    story.add(1, ACK)
    return story


def of_stories(path: Path, *stories: Tap) -> ConnectionProfiles:
    """What is gathered of a capture of these."""
    return gather(Capture([str(saved(path / "made.pcap", *stories))]).read(keep_connections=True))


def reported(made: ConnectionProfiles, target: str = "4.4") -> dict[str, dict[str, object]]:
    """Kind of diagnosis -> its row; of several the first."""
    found: dict[str, dict[str, object]] = {}
    for row in report(made, ["made.pcap"], target)["diagnoses"]:
        found.setdefault(row["kind"], row)
    return found


def stored(made: ConnectionProfile, shelf: ProfileStore | None = None) -> StoredProfile:
    """A connection as it is stored."""
    shelf = ProfileStore() if shelf is None else shelf
    shelf[made.uid] = made
    return next(one for one in shelf.stored() if one.uid == made.uid)


UIDS = [f"C{number:016x}" for number in range(5)]
"""As connections are called in captures."""


def used(shelf: ProfileStore, uid: str) -> None:
    """Adds an exchange, Fetch in version 4, to a connection."""
    growing, number = shelf.growing, shelf.number(Identities([profile([], uid=uid).identity]), 0)
    growing.add(
        uses=[np.array([number]), growing.clients[None], call_numbers(1, 4), OK, 1, 1, 5, 5, 9, 0, 0, 0, LATE, 0]
    )  # fmt: skip
