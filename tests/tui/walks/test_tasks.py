"""Five questions of a new user: five keys at most lead to the answer, and the answer is on the screen."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.tui.driving import PCAPS, SMALL, notified, opened, press, screen

MOST_KEYS = 5
MOST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """A question, the keys to its answer, and what is seen then."""

    capture: str
    keys: tuple[str, ...]
    seen: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Keys that lead to the exchange that the question is about."""


TASKS = {
    "the slowest Produce, and why": Task(
        "java-transactions.pcap", ("colon", "s", "p", "r", "enter"),
        ("api == Produce", "Latency", "157ms", "157ms in the broker: appended, and may have waited for followers"),
    ),
    "who was throttled, and did they comply": Task(
        "quota-3.9.pcap", ("T",), ("app-quota", "4 of 4", "5 of 5", "complied with 4 of 4 throttles"),
    ),
    "who breaks on 4.x": Task(
        "old-java-new-broker.pcap", ("V",), ("breaks", "relic-0.10.2.2", "removed in", "no longer takes Produce v2"),
    ),
    "why a login failed": Task(
        "problems/sasl-mechanism-mismatch.pcap", ("P",),
        ("client report-gen requested 9 times the SASL mechanism SCRAM-SHA-512", "offered PLAIN", "next step"),
    ),
    "why TLS failed": Task(
        "problems/tls-plaintext-confusion.pcap", ("P",), ("a TLS client at 127.0.0.1 gets nothing back", "next step"),
    ),
    "what is in a record": Task(
        "java-transactions.pcap", ("R",), ("orders.txout-2", "value  120 bytes", "the quick brown fox"), tuple(["down"] * 9),
    ),
    "the packets of that exchange, for others": Task(
        "java-transactions.pcap", ("e", "p", "enter"), (".pcapng: ", "packets of 1 exchange"), tuple(["down"] * 9),
    ),
}  # fmt: skip
"""The last two are one question: read a record and save its packets, with Escape between them."""


@pytest.mark.parametrize("question", TASKS)
def test_five_keys_lead_to_the_answer(
    question: str, fresh_settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = TASKS[question]
    assert len(task.keys) <= MOST_KEYS

    async def run() -> None:
        async with opened(PCAPS / task.capture, size=SMALL) as pilot:
            await press(pilot, *task.before)
            began = time.monotonic()
            await press(pilot, *task.keys)
            while not answered(pilot.app) and time.monotonic() - began < 4 * MOST_SECONDS:
                await pilot.pause(0.05)
            assert answered(pilot.app), screen(pilot.app)
            assert time.monotonic() - began < 4 * MOST_SECONDS  # on a busy machine; alone it takes a part of a second
            await press(pilot, "escape")

    def answered(app: Any) -> bool:
        lines = " ".join(f"{notified(app)} {screen(app)}".split())
        return all(" ".join(text.split()) in lines for text in task.seen)

    asyncio.run(run())


def test_reading_a_record_and_saving_its_packets_take_five_keys() -> None:
    read, save = TASKS["what is in a record"], TASKS["the packets of that exchange, for others"]
    assert len((*read.keys, "escape", *save.keys)) <= MOST_KEYS
    assert (read.capture, read.before) == (save.capture, save.before)
