"""Planted secrets in damaged captures: no output of kcap holds one. Mutants are those of mutate_captures.py.

usage: python tests/fuzz/planted_secrets.py [--seed N] [--seconds N] [--keep FOLDER] [PATH...]

In: the capture of `tests/laws/test_planted_secrets.py`; captures that are given are mixed with it, packet after packet, so that
its messages are damaged among others. Out: one line per mutant whose outputs hold a secret or the mark that all of them begin
with, with the number that makes it again (`--seed N --seconds 0`). Every exchange of a mutant is written in all forms of
`show`, and some of the tables and of the other commands. Law: what a mutation copied into a records field is a payload from
then on, and no find where payloads are requested (`--payloads`, `--hex`); at any other place, and in any other form, it is one.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import kcap
from kcap.cli.show import exchange_json, exchange_lines
from kcap.decode.message import Message
from kcap.decode.nodes import Node
from kcap.decode.secrets import BULK
from kcap.errors import KcapError
from kcap.output.escaping import json_text
from tests.cli.running import run_here
from tests.fuzz.mutate_captures import Mutant, Packet, packets_of, sources
from tests.laws.test_planted_secrets import DEEP, SECRETS, dumped, forms, stories
from tests.support.messages import saved
from tests.support.wire import Tap

if TYPE_CHECKING:
    from kcap.exchange import Exchange

MARK, OTHER = b"Plantd-", b"Plantx-"
MARKS = {MARK.decode(), MARK.hex(), MARK.hex(" "), *(MARK.decode().encode(code).hex() for code in ("utf-16-le", "utf-16-be"))}
FORMS = MARKS.union(*map(forms, SECRETS))
TABLES = ("exchanges", "connections", "captures", "weirds", "partitions", "records", "negotiations", "topic_names", "brokers")
REPORTS = (
    "health", "check", "errors", "clients", "versions", "connections", "groups", "transactions", "stats", "slow", "topics",
    "latency", "throttle", "check --format sarif", "versions --format json", "stats --format html", "versions --format html",
    "rows -T ek", "rows --partitions --records", "rows -T fields -e kafka.client_id -e kafka.group_id -e kafka.error",
    " ".join(("rows -T fields", *DEEP)),
)  # fmt: skip


def mutant(
    number: int, planted: Path, others: list[tuple[str, int, int, list[Packet]]], instead: tuple[bytes, bytes] = (b"", b"")
) -> tuple[str, bytes]:
    """What was done, and the file. `instead`: bytes, and what is moved in their place."""
    rng = random.Random(number)
    found = packets_of(planted)
    assert found is not None
    link, unit, packets = found
    alike = [one for one in others if one[1:3] == (link, unit)]
    if alike and rng.random() < 0.5:
        packets += [Packet(p.seconds, p.fraction, bytearray(p.data), p.cut) for p in rng.choice(alike)[3][:100]]
    made = Mutant(rng, link, unit, packets, instead=instead)
    made.mutate(())
    return "+".join(made.what), made.pcap()


def exchanges_of(path: str) -> "list[Exchange]":
    """All exchanges of a capture."""
    try:
        return list(kcap.open(path))
    except KcapError:  # what is left is no capture
        return []


def shown(exchange: "Exchange") -> Iterator[tuple[str, str]]:
    """What `show` writes of an exchange, by what `show` itself writes it: the command reads a capture for each."""
    name = "show {connection}.{exchange}".format_map(exchange.row)
    for with_hex, payloads in ((False, False), (True, False), (False, True)):
        lines = exchange_lines(exchange, None, with_hex=with_hex, payloads=payloads, show_secrets=False)
        yield name + " --hex" * with_hex + " --payloads" * payloads, "\n".join(lines)
    yield f"{name} --json --payloads", json_text(exchange_json(exchange, False, True), default=str)


def exposes(command: str, written: str) -> bool:
    """Whether an output of a command holds a secret."""
    return any(form in written for form in FORMS) or ("--hex" in command and MARK in dumped(written))


@dataclass(frozen=True, slots=True)
class Blanked:
    """An exchange in whose records fields no planted bytes are that a mutation moved there."""

    row: dict[str, Any]
    request: Message | None
    response: Message | None


def blanked(exchange: "Exchange", twin: "Exchange") -> "Exchange":
    """An exchange with the records fields of its twin."""
    sides = ((exchange.request, twin.request), (exchange.response, twin.response))
    return cast("Exchange", Blanked(exchange.row, *(one and with_records_of(one, other) for one, other in sides)))


def with_records_of(message: Message, other: Message | None) -> Message:
    """A message with the records fields of another, as its own header and fields place them, where both are of one size."""
    frame = bytearray(message.frame)
    if message.name in BULK and other is not None and len(other.frame) == len(frame):
        for field in records_of(message.tree()):
            frame[field.start : field.end] = other.frame[field.start : field.end]
    return Message(bytes(frame), message.header, message.name, message._plan, message._unknown)


def records_of(node: Node) -> Iterator[Node]:
    """The records fields of a message, by the decoder that defines what is right; what is inside of one is not looked at."""
    for child in node.children:
        if child.name == "Records":
            yield child
        else:
            yield from records_of(child)


def found_in(path: str, twin: Callable[[], bytes]) -> list[str]:
    """Forms of `show` that hold a secret, but for payloads of records where these are requested. `twin`: the same capture,
    where other letters than those of the mark were moved.
    """
    found = [(one, command) for one in exchanges_of(path) for command, written in shown(one) if exposes(command, written)]
    if not any(asks_for_payloads(command) for _, command in found):
        return [command for _, command in found]
    (folder := Path(path).parent / "twin").mkdir(exist_ok=True)
    (other := folder / Path(path).name).write_bytes(twin())
    twins = {name_of(one): one for one in exchanges_of(str(other))}
    kept = []
    for one, command in found:
        payload = name_of(one) in twins and asks_for_payloads(command)
        if not (payload and not exposes(command, dict(shown(blanked(one, twins[name_of(one)])))[command])):
            kept.append(command)
    return kept


def name_of(exchange: "Exchange") -> tuple[str, int]:
    """By which it is the same in both of two captures."""
    return exchange.row["connection"], exchange.row["exchange"]


def asks_for_payloads(command: str) -> bool:
    """Whether a command shows the bytes of records on request."""
    return "--payloads" in command or "--hex" in command


def hits(path: str, rng: random.Random, twin: Callable[[], bytes]) -> list[str]:
    """Commands whose output holds a secret."""
    words = [
        ["rows", path, "--table", name, "--format", rng.choice(("jsonl", "csv", "table"))] for name in rng.sample(TABLES, 4)
    ]
    words += [[*report.split()[:1], path, *report.split()[1:]] for report in rng.sample(REPORTS, 2)]
    outputs = ((" ".join(command).replace(path, "FILE"), run_here(*command)[1]) for command in words)
    found = [command for command, written in outputs if exposes(command, written)]
    found += found_in(path, twin)
    copy = Path(path).with_suffix(".redacted")
    run_here("cut", path, "-o", str(copy), "--redact")
    if copy.exists() and any(secret in copy.read_bytes() for secret in SECRETS):
        found.append("cut --redact")
    copy.unlink(missing_ok=True)
    return found


Odd = Callable[[str, random.Random, Callable[[], bytes]], list[str]]
"""What is wrong with a mutant: its path, chance, and what makes the same one with no mark in the pieces that were moved."""


def sweep(usage: str | None, taps: Iterable[Tap], name: str, odd: Odd) -> int:
    """The command line of a fuzzer: mutants of a capture of these connections, in a file of this name, until the time is over.
    Out: 1 where `odd` found something in one.
    """
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    others, number, finds = sources(options.paths), options.seed, 0
    ends = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        planted, path = Path(folder) / "planted.pcap", Path(folder) / name
        saved(planted, *taps)
        while number == options.seed or time.monotonic() < ends:
            what, data = mutant(number, planted, others)
            path.write_bytes(data)
            try:
                found = odd(str(path), random.Random(number), lambda at=number: mutant(at, planted, others, (MARK, OTHER))[1])
            except Exception:  # noqa: BLE001 - a find, whatever it is
                found = [traceback.format_exc()]
            if found:
                finds += 1
                print(number, what, *found, sep="\n    ", flush=True)
                if options.keep is not None:
                    (options.keep / f"{number}.pcap").write_bytes(data)
            number += 1
    print(f"{number - options.seed} mutants from {options.seed} on, {finds} with a find")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(sweep(__doc__, stories(), "mutant.pcap", hits))
