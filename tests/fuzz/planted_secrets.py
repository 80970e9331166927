"""Planted secrets in damaged captures: no output of kcap holds one. Mutants are those of mutate_captures.py.

usage: python tests/fuzz/planted_secrets.py [--seed N] [--seconds N] [--keep FOLDER] [PATH...]

In: the capture of `tests/laws/test_planted_secrets.py`; captures that are given are mixed with it, packet after packet, so that
its messages are damaged among others. Out: one line per mutant whose outputs hold a secret or the mark that all of them begin
with, with the number that makes it again (`--seed N --seconds 0`). Every exchange of a mutant is written in all forms of
`show`, and some of the tables and of the other commands.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import kcap
from kcap.cli.show import exchange_json, exchange_lines
from kcap.errors import KcapError
from kcap.output.escaping import json_text
from tests.cli.running import run_here
from tests.fuzz.mutate_captures import Mutant, Packet, packets_of, sources
from tests.laws.test_planted_secrets import DEEP, SECRETS, dumped, forms, stories
from tests.support.messages import saved
from tests.support.wire import Tap

MARK = b"Plantd-"
MARKS = {MARK.decode(), MARK.hex(), MARK.hex(" "), *(MARK.decode().encode(code).hex() for code in ("utf-16-le", "utf-16-be"))}
FORMS = MARKS.union(*map(forms, SECRETS))
TABLES = ("exchanges", "connections", "captures", "weirds", "partitions", "records", "negotiations", "topic_names", "brokers")
REPORTS = (
    "health", "check", "errors", "clients", "versions", "connections", "groups", "transactions", "stats", "slow", "topics",
    "latency", "throttle", "check --format sarif", "versions --format json", "stats --format html", "versions --format html",
    "rows -T ek", "rows --partitions --records", "rows -T fields -e kafka.client_id -e kafka.group_id -e kafka.error",
    " ".join(("rows -T fields", *DEEP)),
)  # fmt: skip


def mutant(number: int, planted: Path, others: list[tuple[str, int, int, list[Packet]]]) -> tuple[str, bytes]:
    """What was done, and the file."""
    rng = random.Random(number)
    found = packets_of(planted)
    assert found is not None
    link, unit, packets = found
    alike = [one for one in others if one[1:3] == (link, unit)]
    if alike and rng.random() < 0.5:
        packets += [Packet(p.seconds, p.fraction, bytearray(p.data), p.cut) for p in rng.choice(alike)[3][:100]]
    made = Mutant(rng, link, unit, packets)
    made.mutate(())
    return "+".join(made.what), made.pcap()


def shown(path: str) -> Iterator[tuple[str, str]]:
    """What `show` writes of every exchange, by what `show` itself writes it: the command reads a capture for each."""
    try:
        exchanges = list(kcap.open(path))
    except KcapError:  # what is left is no capture
        return
    for exchange in exchanges:
        name = "show {connection}.{exchange}".format_map(exchange.row)
        for with_hex, payloads in ((False, False), (True, False), (False, True)):
            lines = exchange_lines(exchange, None, with_hex=with_hex, payloads=payloads, show_secrets=False)
            yield name + " --hex" * with_hex + " --payloads" * payloads, "\n".join(lines)
        yield f"{name} --json --payloads", json_text(exchange_json(exchange, False, True), default=str)


def hits(path: str, rng: random.Random) -> list[str]:
    """Commands whose output holds a secret."""
    words = [
        ["rows", path, "--table", name, "--format", rng.choice(("jsonl", "csv", "table"))] for name in rng.sample(TABLES, 4)
    ]
    words += [[*report.split()[:1], path, *report.split()[1:]] for report in rng.sample(REPORTS, 2)]
    outputs = [(" ".join(command).replace(path, "FILE"), run_here(*command)[1]) for command in words]
    found = []
    for command, written in (*outputs, *shown(path)):
        if any(form in written for form in FORMS) or ("--hex" in command and MARK in dumped(written)):
            found.append(command)
    copy = Path(path).with_suffix(".redacted")
    run_here("cut", path, "-o", str(copy), "--redact")
    if copy.exists() and any(secret in copy.read_bytes() for secret in SECRETS):
        found.append("cut --redact")
    copy.unlink(missing_ok=True)
    return found


def sweep(usage: str | None, taps: Iterable[Tap], name: str, odd: Callable[[str, random.Random], list[str]]) -> int:
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
                found = odd(str(path), random.Random(number))
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
