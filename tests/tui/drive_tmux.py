"""The real program in a real terminal: tmux types, the screen is read. `python tests/tui/drive_tmux.py` shows each step.

Law: what is asked for with keys that the screen itself shows comes on the screen, and what is saved is read by others.
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 40.0


class Terminal:
    """A tmux session with kcap in it."""

    def __init__(self, folder: Path, command: str, size: tuple[int, int] = (120, 36), show: bool = False) -> None:
        self.socket, self.show = str(folder / "tmux"), show
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")},
            "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
            "XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
        }  # fmt: skip
        width, height = size
        line = f"cd {folder} && {command}; echo LEFT $?; exec cat"
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height), line, environment=environment)

    def _tmux(self, *words: str, environment: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.socket, *words], capture_output=True, text=True, check=True, env=environment, timeout=30
        )
        return done.stdout

    def screen(self) -> str:
        """What is on it."""
        return self._tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        """Types keys, by tmux's names; text as it is."""
        for key in keys:
            self._tmux("send-keys", *(("-l", key) if len(key) == 1 or " " in key else (key,)))

    def until(self, *words: str) -> str:
        """Waits until all of the words are on the screen."""
        until, lines = time.monotonic() + WAIT_SECONDS, ""
        while time.monotonic() < until:
            lines = self.screen()
            if all(word in lines for word in words):
                if self.show:
                    print(lines)
                return lines
            time.sleep(0.1)
        raise AssertionError(f"{words} did not come; there is:\n{lines}")

    def gone(self, word: str) -> str:
        """Waits until a word is no longer there."""
        until, lines = time.monotonic() + WAIT_SECONDS, ""
        while time.monotonic() < until:
            lines = self.screen()
            if word not in lines:
                return lines
            time.sleep(0.1)
        raise AssertionError(f"{word} stays:\n{lines}")

    def close(self) -> None:
        """Ends the session."""
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False, timeout=30)


def walk(folder: Path, *, show: bool = False) -> None:
    """Open, filter, select, expand, bytes, views, export, quit."""
    capture = ROOT / "pcaps" / "java-transactions.pcap"
    terminal = Terminal(folder, f"{sys.executable} -m kcap {capture}", show=show)
    try:
        terminal.until("481 packets, 17 connections", "ApiVersions v5", "Quick filters")
        terminal.keys("/", *"api == Fetc")
        terminal.until("✗", "api is never 'Fetc'", "Fetch")
        terminal.keys("Tab", "Enter")
        terminal.until("✓", "api == Fetch", "of 110")
        terminal.gone("InitProducerId")
        terminal.keys("j", "j", "Enter")
        terminal.until("Close", "FetchRequest v18")
        terminal.keys("End", "Up", "Up", "Right", "End")
        terminal.until("ErrorCode: 0 NONE")
        terminal.keys("Tab")
        terminal.until("byte ", " of ")
        terminal.keys("Escape", "Escape")
        terminal.until("/110")
        terminal.keys("L")
        terminal.until("Ladder", "Back")
        terminal.keys("Escape")
        terminal.until("Quick filters")
        terminal.keys("V")
        terminal.until("Versions", "apache-kafka-java")
        terminal.keys("Escape")
        terminal.until("Quick filters")
        terminal.keys("e")
        terminal.until("Packets of this exchange")
        terminal.keys("p")
        terminal.until("Packets as pcapng or pcap")
        terminal.keys(*"one.pcapng")
        terminal.until("one.pcapng ")
        terminal.keys("Enter")
        terminal.until("one.pcapng: ", "packets of")
        terminal.keys("F1")
        terminal.until("Keys", "Next mark")
        terminal.keys("Escape")
        terminal.gone("─ Keys ─")  # its title: a line of it may be behind the word on what was saved
        terminal.keys("q")
        terminal.until("LEFT 0")
    finally:
        terminal.close()
    made = folder / "one.pcapng"
    assert made.stat().st_size > 200
    assert packets(made)
    left = list((folder / "cache" / "kcap").glob("spill-*"))
    assert left == [], "nothing stays in the cache"


def pipe(folder: Path, *, show: bool = False) -> None:
    """A pipe that goes on: rows come, keys work, bytes can be read again."""
    capture = ROOT / "pcaps" / "aiokafka.pcap"
    feed = f"(head -c 40000 {capture}; sleep 4; tail -c +40001 {capture}; sleep 600)"
    terminal = Terminal(folder, f"{feed} | {sys.executable} -m kcap -", show=show)
    try:
        terminal.until("standard input", "live", "exchanges/s", "ApiVersions v0")
        terminal.keys("G")
        terminal.until("auto scroll")
        terminal.until("CreatePartitions")
        terminal.keys("k")
        terminal.gone("auto scroll")
        terminal.keys("C-s")
        terminal.until("stopped", "/123")
        terminal.keys("Enter")
        terminal.until("Request", "00 00 ")
        terminal.keys("q")
        terminal.gone("standard input")
    finally:
        terminal.close()


@dataclass(frozen=True, slots=True)
class Step:
    """One key, the words by which the screen offers it, and what comes of it."""

    key: str
    offered: str
    then: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A question of a new user, and the keys that lead to its answer."""

    question: str
    capture: str
    steps: tuple[Step, ...]


TASKS = (
    Task("the slowest request that is no fetch, and its bytes", "java-transactions.pcap", (
        Step("v", "v Views", ("S  Statistics",)),
        Step("S", "S  Statistics", ("3:slowest",)),
        Step("3", "3:slowest", ("306ms  JoinGroup v9", "⏎ Show")),
        Step("Enter", "⏎ Show", ("JoinGroup v9  ok", "JoinGroupRequest v9", "00 00 01 21 00 0b 00 09", "42/110")),
    )),
    Task("which clients were throttled, and did they comply", "quota-3.9.pcap", (
        Step("v", "v Views", ("T  Throttling",)),
        Step("T", "T  Throttling", ("complied", "app-quota", "complied with", "9 requests")),
    )),
    Task("which client uses a version that Kafka 4 removed", "old-java-new-broker.pcap", (
        Step("v", "v Views", ("V  Versions",)),
        Step("V", "V  Versions", ("breaks", "relic-0.10.2.2", "removed in", "no longer takes Produce v2")),
    )),
    Task("why one produce failed", "too-large.pcap", (
        Step("v", "v Views", ("E  Errors",)),
        Step("E", "E  Errors", ("MESSAGE_TOO_LARGE", "Produce", "bulk-tl", "⏎ Show")),
        Step("Enter", "⏎ Show", ("3 of 19", "Produce v12", "MESSAGE_TOO", "bulk.sm")),
    )),
    Task("the packets of one exchange, for Wireshark", "java-transactions.pcap", (
        Step("e", "e Save", ("p  Packets of this exchange", "pcapng, for Wireshark")),
        Step("p", "p  Packets of this exchange", ("Packets as pcapng or pcap", "⏎ go")),
        Step("Enter", "⏎ go", (".pcapng: ", "packets of")),
    )),
)  # fmt: skip
"""Five tasks at 80x24."""
MOST_KEYS = 6
"""At most, for a task."""


def tasks(folder: Path) -> list[str]:
    """Does the tasks with keys that the screen offers. Out: a line each: keys, seconds, question."""
    lines = []
    for number, task in enumerate(TASKS):
        place = folder / str(number)
        place.mkdir()
        terminal = Terminal(place, f"{sys.executable} -m kcap {ROOT / 'pcaps' / task.capture}", size=(80, 24))
        try:
            screen = terminal.until("v Views", " connections", "bytes")  # an exchange is shown, which need not be the first
            began = time.monotonic()
            for step in task.steps:
                assert step.offered in screen, f"{task.question}: {step.key} is not offered:\n{screen}"
                terminal.keys(step.key)
                screen = terminal.until(*step.then)
            took = time.monotonic() - began
            assert len(task.steps) <= MOST_KEYS
            lines.append(f"{len(task.steps)} keys {took:5.1f} s  {task.question}")
        finally:
            terminal.close()
        for made in place.glob("*.pcapng"):
            assert packets(made), "others read what was saved"
            lines[-1] += f": {made.name}"
    return lines


def packets(path: Path) -> int:
    """Packets with data in a capture, as tshark reads it; where there is none, whether there are bytes."""
    if not shutil.which("tshark"):
        return path.stat().st_size
    words = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.len"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return sum(line.strip() not in ("", "0") for line in done.stdout.splitlines())


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, tempfile.TemporaryDirectory() as three:
        walk(Path(one), show=True)
        pipe(Path(two), show=True)
        print("\n".join(tasks(Path(three))))
