"""kcap opens no socket and resolves no name outside `live`, the terminal UI and remote file systems."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import io, sys
from contextlib import redirect_stdout
EVENTS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event in EVENTS else None)
from kcap.cli.main import main
codes = []
for words in {commands!r}:
    with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        codes.append(main(words))
{after}
print(codes, seen)
"""
CAPTURE = str(ROOT / "pcaps" / "problems" / "healthy-1.pcap")
COMMANDS = [
    ["rows", CAPTURE, "--format", "html"], ["rows", CAPTURE, "--table", "records"], ["latency", CAPTURE], ["check", CAPTURE],
    ["health", CAPTURE], ["versions", CAPTURE], ["sql", "select count(*) from exchanges", CAPTURE], ["schema", "Fetch"],
]  # fmt: skip


def run(after: str = "") -> str:
    """What the program prints: exit codes and events."""
    program = PROGRAM.format(commands=COMMANDS, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, check=True, timeout=60, text=True)
    return done.stdout.splitlines()[-1]


def test_commands_open_no_socket() -> None:
    assert run() == f"{[0] * len(COMMANDS)} []"


def test_the_hook_sees_a_name_being_resolved() -> None:
    """So that the test above can fail."""
    found = run("import socket\ntry: socket.getaddrinfo('localhost', 9)\nexcept OSError: pass")
    assert found.endswith("['socket.getaddrinfo']")
