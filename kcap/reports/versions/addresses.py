"""Diagnoses of addresses: advertised addresses that clients cannot use, and listeners that are not for clients.

In: a `DiagnosisContext`. Out: troubles added to it. Law: an address is wrong for a client only if a broker gave it to that
client. In a capture whose clients run on the broker's own machine, loopback addresses are not reported.

Sources: advertised.listeners and controller.listener.names of Kafka, KIP-919 (clients of controllers), RFC 6890 (addresses).
"""

from bisect import bisect_right
from collections.abc import Callable
from ipaddress import ip_address
from itertools import accumulate, islice
from typing import Final

from kcap.facts.brokers import Server
from kcap.limits import ADVERTISED_JUDGED
from kcap.reports.definition import uid
from kcap.reports.versions.diagnosis import (
    ERROR,
    WARNING,
    Diagnosis,
    DiagnosisContext,
    Row,
    of_template,
    place,
    server_of,
    subject,
    whole_line,
)
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.readiness import BEGINNING
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_key

METADATA: Final = api_key("Metadata")
STUCK: Final = 5
"""Number of Metadata requests of a client that reaches no broker of the list; administrators' tools send fewer."""
LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def is_loopback(host: str) -> bool:
    """Whether a host name or address means the machine on which it is used."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOCAL_NAMES


def why_unroutable(host: str) -> str | None:
    """Why no other machine can reach a host; None if nothing indicates that."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if address.is_unspecified:
        return "not the address of a machine"
    return "a link-local address" if address.is_link_local else None


def given(case: DiagnosisContext) -> dict[Server, list[tuple[StoredProfile, str | None]]]:
    """Server -> connections of clients that received its list of brokers."""
    out: dict[Server, list[tuple[StoredProfile, str | None]]] = {}
    got = of_template(lambda stored: any(use.key == METADATA and use.served for use in stored.template.uses))
    for stored, client, _ in case.clients:
        if got(stored):
            out.setdefault(stored.server, []).append((stored, client))
    return out


def advertised(case: DiagnosisContext) -> None:
    """Loopback and unroutable addresses that brokers give to clients of other machines."""
    own = case.whole.tracker.brokers.own
    for server, some in given(case).items():
        wrong = (
            (host, port, loopback, reason)
            for _, host, port in sorted(own.get(server, ()))
            for loopback, reason in [(is_loopback(host), why_unroutable(host))]
            if loopback or reason is not None
        )
        remote = [one for one in some if one[0].address != server[0] and not is_loopback(one[0].address)]
        for host, port, loopback, reason in islice(wrong, ADVERTISED_JUDGED):
            what = "the client's own machine" if loopback else reason
            for stored, client in remote:
                case.add((host, port), stored.uid, uid(stored.uid, 1), Diagnosis(
                    "advertised_localhost" if loopback else "advertised_unroutable", ERROR,
                    f"{{servers}} give{{vs}} {{who}} the address {host}:{port}, which is {what}, on {{n}}",
                    "Set advertised.listeners of that listener to a name or address that clients reach. The bootstrap "
                    "connection works, but connections to the advertised address do not reach the broker.",
                    {"client_ip": stored.address, "client_id": client, "server": place(server)},
                ))  # fmt: skip


def unused(case: DiagnosisContext) -> None:
    """Clients that request the list of brokers repeatedly and connect to none of the brokers in it."""
    brokers = case.whole.tracker.brokers
    tried: dict[str, dict[int, set[Server]]] = {}
    """Address of a client -> port -> servers with that port to which it connected."""
    works = of_template(lambda stored: any(use.served and use.key not in BEGINNING for use in stored.template.uses))
    for address, server in dict.fromkeys((stored.address, stored.server) for stored in case.every):
        tried.setdefault(address, {}).setdefault(server[1], set()).add(server)
    working = {stored.address for stored in case.every if works(stored)}
    for line in case.whole.others:
        server = server_of(line)
        tried.setdefault(str(line["client_ip"]), {}).setdefault(server[1], set()).add(server)
    for server, some in given(case).items():
        listed = brokers.own.get(server, set())
        ports = {port for _, _, port in listed}
        called = {server[0], brokers.names.get(server[0])}
        if not listed or any(host in called and port == server[1] for _, host, port in listed):
            continue
        names = ", ".join(f"{host}:{port}" for _, host, port in sorted(listed)[:3])
        reaching = {ip for ip in {one.address for one, _ in some} if reaches(tried.get(ip, {}), server, ports)}
        for stored, client in some:
            ip = stored.address
            if ip in working or ip in reaching:
                continue
            profile = stored.open()
            metadata_uses = sum(use.served for (_, key, _), use in profile.uses.items() if key == METADATA)
            if metadata_uses < STUCK or not whole_line(profile):
                continue
            case.add((server, names), stored.uid, uid(stored.uid, 1), Diagnosis(
                "advertised_unused", WARNING,
                f"{{who}} receive{{s}} the brokers {names} from {{servers}}, connect{{s}} to none of them and "
                f"request{{s}} Metadata "
                "repeatedly, on {n}",
                "The names may not resolve on the client's machine: resolve them there, and compare advertised.listeners.",
                {"client_ip": ip, "client_id": client, "server": place(server)},
            ))  # fmt: skip


def reaches(tried: dict[int, set[Server]], server: Server, ports: set[int]) -> bool:
    """Whether a connection to another server with one of these ports was attempted."""
    fewer = ports if len(ports) < len(tried) else tried
    return any(port in ports and tried.get(port, {server}) != {server} for port in fewer)


def controllers(case: DiagnosisContext) -> None:
    """Clients that connect to a controller's listener."""
    for profile, client in case.worth(lambda stored: stored.server in case.controllers):
        worked = any(key != API_VERSIONS and use.served for (_, key, _), use in profile.uses.items())
        if worked or profile.server not in case.controllers or not profile.opening or not whole_line(profile):
            continue
        case.add(case.group(profile.uid, client), profile.uid, uid(profile.uid, profile.opening[0].exchange), Diagnosis(
            "controller_listener", ERROR,
            "{who} connect{s} to {servers}, a controller's listener, which accepts neither Produce nor Metadata, on {n}",
            "Set bootstrap.servers to a listener of the brokers; controller.listener.names is for brokers and controllers, and "
            "for tools with bootstrap.controllers (KIP-919).", subject(profile, client),
        ))  # fmt: skip


def unreachable(case: DiagnosisContext) -> None:
    """Addresses to which clients tried to connect and that never accepted a connection."""
    tried: dict[Server, list[Row]] = {}
    reached = {stored.server for stored in case.every}
    for line in case.whole.others:
        server = server_of(line)
        if line["began"] != "syn" or (line["client_captured"] or 0) or (line["server_captured"] or 0):
            reached.add(server)
        elif (line["server_packets"] or 0) == 0 or (
            line["ended"] == "rst" and line["packets"] <= 2 * (line["server_packets"] or 0)
        ):
            tried.setdefault(server, []).append(line)
        else:
            reached.add(server)
    if not case.kafka and not any(line["server_packets"] for line in case.whole.others):
        return  # without the servers' packets the capture does not show which of them respond
    brokers = case.whole.tracker.brokers
    ports, running = {server[1] for server in case.kafka}, serving(case, {server[0] for server in tried})
    for server, lines in tried.items():
        listed = any(endpoint in brokers.nodes for endpoint in brokers.endpoints(server))
        if server in reached or not (listed or server[1] in ports):
            continue
        refused = any(line["server_packets"] for line in lines)
        local = is_loopback(server[0]) and any(not is_loopback(str(line["client_ip"])) for line in lines)
        wrong = listed and (local or not refused or runs(running.get(server[0]), lines))
        how = "was refused" if refused else "got no response"
        sentence = (
            f"brokers advertise {place(server)}, and every connection to it"
            if listed
            else f"every connection to {place(server)}"
        )
        advice = (
            "nothing listens there, or a firewall refuses: check whether that broker runs, and compare advertised.listeners"
            if refused
            else "compare advertised.listeners and firewalls"
        )
        if wrong and refused:
            advice = "the machine serves Kafka on another port: compare advertised.listeners with listeners"
        if local:
            advice = "an address of the broker's own machine is advertised: set advertised.listeners to what clients can reach"
        for line in lines:
            one, kind = str(line["connection"]), "wrong_listener" if wrong else "unreachable"
            case.add((server,), one, one, Diagnosis(
                kind, ERROR, f"{sentence} {how}: {{n}}", f"{advice[0].upper()}{advice[1:]}.",
                {"client_ip": line["client_ip"], "client_id": None, "server": place(server)},
            ))  # fmt: skip


Spans = tuple[list[int], list[int]]
"""Start times in order, and for each the latest end time of the spans up to it."""


def serving(case: DiagnosisContext, hosts: set[str]) -> dict[str, Spans]:
    """The time spans during which machines served Kafka, by address."""
    found: dict[str, list[tuple[int, int]]] = {}
    for stored in case.every:
        if stored.server[0] in hosts and stored.server in case.kafka:
            line = stored.open().line
            found.setdefault(stored.server[0], []).append((line.get("first_ns") or 0, line.get("last_ns") or 0))
    made = {}
    for host, some in found.items():
        begun, ended = zip(*sorted(some))
        made[host] = list(begun), list(accumulate(ended, max))
    return made


def runs(served: Spans | None, lines: list[Row]) -> bool:
    """Whether another port of the same machine served Kafka while this one refused connections."""
    begun, until = served or ([], [])
    for line in lines:
        time = int(line["first_ns"] or 0)
        before = bisect_right(begun, time)
        if before and until[before - 1] >= time:
            return True
    return False


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (advertised, unused, controllers, unreachable)
