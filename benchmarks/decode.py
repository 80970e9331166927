"""Compares the row projection with other decoders on the same bodies in the same run: kafka-python and kio, if they are
installed.

usage: python benchmarks/decode.py CAPTURE... [--messages 20000] [--rounds 5]

Bodies are the Metadata 12+ and Fetch 12+ responses and Produce 9+ requests of the captures, repeated to the wanted number. `pip
install kafka-python kio` beside kcap installs the other two. Prints the best of the rounds in microseconds per message; if a
library does not know a version, prints its error. Also prints how long the first level of a large response's tree takes.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import kcap
from kcap.decode.programs import program_index
from kcap.decode.projection import load_compiled, project

say = print
WANTED = {("Metadata", 1): 12, ("Fetch", 1): 12, ("Produce", 0): 9}
"""(API, side) -> first version."""
Bodies = dict[tuple[str, int, int], list[bytes]]
"""(API, version, side) -> bodies after the complete header."""


def collect(captures: Sequence[str]) -> Bodies:
    """The bodies of the captures."""
    found: Bodies = defaultdict(list)
    for exchange in kcap.open(*captures):
        row = exchange.row
        for side in (0, 1):
            first = WANTED.get((row["api"], side))
            message = (exchange.request, exchange.response)[side] if first is not None else None
            if first is None or message is None or row["api_version"] < first or message.undecoded is not None:
                continue
            found[row["api"], row["api_version"], side].append(message.frame[message.header.end :])
    return found


def best(rounds: int, run: Callable[[], object]) -> float:
    """Seconds of the quickest round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def projection(place: tuple[str, int, int], bodies: Sequence[bytes], engine: Any) -> Callable[[], object]:
    """Measures kcap's own projection: all bodies as one batch, with an empty tag section of the header before each."""
    from kcap.schema.registry import api_key

    key = api_key(place[0])
    assert key is not None
    program = program_index(key, place[1], place[2])
    buffer, starts, ends = bytearray(), [], []
    for body in bodies:
        starts.append(len(buffer))
        buffer += b"\0" + body
        ends.append(len(buffer))
    programs = [program] * len(bodies)
    result = project(buffer, starts, ends, programs, engine=engine)
    assert set(result.status) == {0}, "a body did not read"
    return lambda: project(buffer, starts, ends, programs, engine=engine)


def kafka_python(place: tuple[str, int, int], bodies: Sequence[bytes]) -> Callable[[], object]:
    """Measures kafka-python 3's compiled decoder."""
    api, version, side = place
    module = {"Metadata": "metadata", "Fetch": "consumer", "Produce": "producer"}[api]
    decoder: Any = getattr(import_module(f"kafka.protocol.{module}"), api + ("Request", "Response")[side])
    decoder.decode(bodies[0], version=version)
    return lambda: [decoder.decode(body, version=version) for body in bodies]


def kio(place: tuple[str, int, int], bodies: Sequence[bytes]) -> Callable[[], object]:
    """Measures kio's reader in Rust."""
    api, version, side = place
    kind = ("request", "response")[side]
    schema = import_module(f"kio.schema.{api.lower()}.v{version}.{kind}")
    read: Any = import_module("kio.serial").entity_reader(getattr(schema, api + kind.capitalize()))
    read(bodies[0], 0)
    return lambda: [read(body, 0) for body in bodies]


def tree_of_large(bodies: Bodies) -> tuple[int, float]:
    """Bytes of a response of at least 350 kB, and seconds until the fields of its body are nodes."""
    from struct import pack

    topics = max(
        (b for (api, _, side), many in bodies.items() if (api, side) == ("Metadata", 1) for b in many), key=len, default=b""
    )
    version = next(version for (api, version, side) in bodies if (api, side) == ("Metadata", 1))
    body = kcap.decode_response(pack(">i", 1) + b"\0" + topics, 3, version).tree().find("body", "Topics")
    assert body is not None
    entries = [child.data for child in body.children[1:]]
    copies = 350_000 // sum(map(len, entries)) + 1
    count = copies * len(entries) + 1
    head = topics[: body.start - 5]
    varint = bytearray()
    while count > 127:
        varint.append(count & 127 | 128)
        count >>= 7
    varint.append(count)
    frame = pack(">i", 1) + b"\0" + head + bytes(varint) + b"".join(entries) * copies + topics[body.end - 5 :]

    def first_level() -> None:
        message = kcap.decode_response(frame, 3, version)
        found = message.tree().find("body")
        assert found is not None
        assert len(found.children) > 3

    return len(frame), best(5, first_level)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = collect(options.captures)
    if not found:
        sys.exit("none of the wanted messages in these captures")
    plainly = tree_of_large(found)[1]
    load_compiled()
    size, seconds = tree_of_large(found)
    say(
        f"tree of a Metadata response of {size:,} bytes: first level in {seconds * 1000:.2f} ms,"
        f" {plainly * 1000:.1f} ms in Python"
    )
    others: dict[str, Callable[..., Callable[[], object]]] = {"kafka-python": kafka_python, "kio": kio}
    say(
        f"{'message':<22}{'bytes':>8}{'jitted':>9}{'plain':>9}"
        + "".join(f"{name:>14}{'ratio':>8}" for name in others)
        + "   us a message"
    )
    for place, real in sorted(found.items()):
        bodies = (real * (options.messages // len(real) + 1))[: options.messages]
        each = 1e6 / len(bodies)
        jitted = best(options.rounds, projection(place, bodies, "jit")) * each
        plain = best(1, projection(place, bodies, "plain")) * each
        line = f"{place[0]} v{place[1]} {('request', 'response')[place[2]]:<10}"
        line = f"{line:<22}{sum(map(len, real)) // len(real):>8}{jitted:>9.2f}{plain:>9.1f}"
        for make in others.values():
            try:
                theirs = best(1, make(place, bodies)) * each
            except Exception as error:  # noqa: BLE001 - whatever another decoder raises, the line says so
                line += f"{type(error).__name__[:12]:>14}{'':>8}"
            else:
                line += f"{theirs:>14.1f}{theirs / jitted:>7.0f}x"
        say(line)


if __name__ == "__main__":
    main()
