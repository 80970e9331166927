"""`kcap live`: rows of the traffic on an interface, captured by dumpcap or tcpdump."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import click

from kcap.cli.options import analyzer_options, filters, keys, outputs, ports
from kcap.cli.places import Writes
from kcap.cli.rows import WithPayloads, order_of, shapes
from kcap.errors import CaptureError, MissingExtraError, UsageError
from kcap.limits import SAID_MAX
from kcap.output.escaping import json_text
from kcap.reports.text import time_of_day

if TYPE_CHECKING:
    from kcap.analyzer import Options
    from kcap.reports.findings.live import FindingEvent
    from kcap.session import Capture

TOOLS: Final = ("dumpcap", "tcpdump")
"""Tools in order of preference: dumpcap counts the packets that the kernel dropped."""
RING: Final = re.compile(r"(\d{1,6}):(\d{1,9})\s*([kMG]i?)?B?", re.IGNORECASE)
UNITS: Final = {"": 10**6, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
STARTS_SECONDS: Final = 5
"""Seconds within which a capturing tool writes the file header or fails."""


class Ring(NamedTuple):
    """A ring: number of files and their size in bytes."""

    files: int
    size: int
    path: str


@click.command("live", cls=WithPayloads, short_help="Show rows of the traffic on an interface.")
@click.option("-i", "--interface", metavar="IF", help="Capture on this interface, as tcpdump names it; any for all.")
@click.option(
    "-f",
    "--capture-filter",
    "captured",
    metavar="FILTER",
    default="tcp",
    show_default=True,
    help="Capture filter in tcpdump's syntax.",
)
@click.option(
    "-s",
    "--snaplen",
    metavar="N",
    type=click.IntRange(64, 262144),
    help="Capture at most N bytes of each packet. Default: all.",
)
@click.option("--ring", metavar="FILES:SIZE", help="Also write the packets, to a ring of FILES files of SIZE each: 10:100MB.")
@click.option(
    "-w", "ring_path", metavar="FILE", type=Writes(),
    help="Name of the --ring files; a number and the time are added before the suffix.",
)  # fmt: skip
@click.option("-D", "listing", is_flag=True, help="List the interfaces.")
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Report the findings of kcap check instead of rows, as each begins and ends. --format jsonl is for programs.",
)
@click.option("--tui", "screen", is_flag=True, help="Open the terminal UI: the list, rates, problems as they arise.")
@click.option(
    "--span",
    metavar="SECONDS",
    type=click.IntRange(5, 3600),
    default=60,
    show_default=True,
    help="With --check or --tui: how far back rules look, in capture time.",
)
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.IntRange(1, 600),
    default=5,
    show_default=True,
    help="With --check or --tui: how often rules look.",
)
@click.option("--with", "tool", type=click.Choice(TOOLS), help="The capture program. Default: dumpcap, or else tcpdump.")
@keys
@ports
@filters
@shapes
@outputs
def run(
    interface: str | None,
    captured: str,
    snaplen: int | None,
    ring: str | None,
    ring_path: str | None,
    listing: bool,
    tool: str | None,
    checking: bool,
    screen: bool,
    span: int,
    every: int,
    only: str,
    **given: Any,
) -> int:
    """Show rows of the traffic on an interface, as exchanges are decided. Ctrl-C ends the capture and shows the last rows.

    dumpcap (of Wireshark) or tcpdump must be installed, and you must be allowed to capture. --ring saves the packets in a ring
    of files. They are captured separately, so they are complete even if rows cannot keep up.
    """
    found = capturing_tool(tool)
    if listing:
        return subprocess.run([found, "-D"], check=False).returncode
    if interface is None:
        raise UsageError("-i names the interface; -D lists them")
    order = order_of(given)
    kept = ring_of(ring, ring_path)
    if checking and (given["form"] not in (None, "table", "jsonl") or given["output"] is not None or only):
        raise UsageError("--check writes findings to standard output, as text or --format jsonl; it takes no -o and no filter")
    if screen and (checking or given["form"] is not None or given["output"] is not None):
        raise UsageError("--tui shows rows and findings on the screen; it takes no --check, no -o and no --format")
    from kcap.cli.output import write_rows
    from kcap.session import Capture

    options = analyzer_options()
    capture = Capture(["-"], options).filter(only)
    if screen:
        from kcap.cli.tui import keys_from_terminal

        keys_from_terminal(piped=False)
    with tempfile.TemporaryFile() as said:
        tools = [start(found, interface, captured, snaplen, None, said)]
        if kept is not None:
            tools.append(start(found, interface, captured, snaplen, kept, said))
        signal.signal(signal.SIGINT, ending(tools))
        source = tools[0].stdout
        assert source is not None
        try:
            if screen:
                return watched(source, said, interface, options, only, (span, every))
            os.dup2(source.fileno(), sys.stdin.fileno())
            code = findings(capture, span, every, given["form"] == "jsonl") if checking else write_rows(capture, order)
        except CaptureError:
            raise CaptureError(f"{found} captured nothing: {last_line(said)}; kcap live -D lists interfaces") from None
        finally:
            for process in tools:
                process.terminate()
                process.wait()
    return code


def watched(source: IO[bytes], said: IO[bytes], interface: str, options: "Options", only: str, look: tuple[int, int]) -> int:
    """Shows the traffic in the terminal UI; returns the exit code. `look`: how far back rules look, and how often, in s.

    Raises CaptureError if the tool ends without a byte, before the terminal UI starts.
    """
    import select

    from kcap.cli.tui import browse, request

    poll = select.poll()
    poll.register(source, select.POLLIN | select.POLLHUP)
    if [event for _, event in poll.poll(1000 * STARTS_SECONDS) if not event & select.POLLIN]:
        raise CaptureError(last_line(said))
    ports = options.kafka_ports, options.not_kafka_ports
    return browse(request(["-"], ports, source=interface, span=look[0], every=look[1]), source.fileno(), only)


def findings(capture: "Capture", span: int, every: int, machine: bool) -> int:
    """Writes findings as they begin and end, until the capture ends; returns the exit code."""
    from kcap.cli.configuration import rule_thresholds
    from kcap.output.escaping import visible
    from kcap.reports.findings.live import SECOND, Watch

    limits = rule_thresholds()
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder:
        reading = capture.read(keep_connections=True)
        reading.files.keeps = True
        for event in Watch(reading, folder, span * SECOND, every * SECOND, limits).events():
            line = json_text(event.row()) if machine else visible(sentence(event))
            click.echo(line)
    return 0


def sentence(event: "FindingEvent") -> str:
    """An event as a line: time of day, whether it begins, severity, what happens, the rule."""
    row, word = event.finding, {"begin": "begins", "end": "ends", "open": "goes on"}[event.event]
    return f"{time_of_day(event.time_ns)}  {word:<7}  {row['severity']:<8}  {row['sentence']} [{row['id']}]"


def capturing_tool(tool: str | None) -> str:
    """The capturing program. Raises MissingExtraError if there is none."""
    found = next((path for name in ((tool,) if tool else TOOLS) if (path := shutil.which(name))), None)
    if found is None:
        what = tool or "neither dumpcap nor tcpdump"
        raise MissingExtraError(
            f"{what} {'is not' if tool else 'is'} installed; apt install tcpdump, or wireshark-common for dumpcap; or capture "
            "elsewhere: ssh HOST tcpdump -U -w - tcp | kcap rows -"
        )
    return found


def ring_of(text: str | None, path: str | None) -> Ring | None:
    """The ring of `10:100MB` and its path. Raises UsageError for an invalid one."""
    if text is None and path is None:
        return None
    if text is None or path is None:
        raise UsageError("--ring FILES:SIZE and -w FILE go together")
    match = RING.fullmatch(text.strip())
    if match is None or not int(match[1]) or not int(match[2]):
        raise UsageError(f"--ring {text!r} is not understood; it is written 10:100MB, files and the size of each")
    return Ring(int(match[1]), int(match[2]) * UNITS[(match[3] or "").lower()], path)


def start(
    tool: str, interface: str, captured: str, snaplen: int | None, ring: Ring | None, said: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Starts the tool, with output to a pipe or a ring. It does not receive Ctrl-C, which kcap passes on."""
    words = [tool, "-i", interface, *(["-s", str(snaplen)] if snaplen else [])]
    dumpcap = os.path.basename(tool) == "dumpcap"
    if ring is not None:
        rotate = ["-b", f"files:{ring.files}", "-b", f"filesize:{max(1, ring.size // 1000)}"]
        words += [*(rotate if dumpcap else ["-W", str(ring.files), "-C", str(max(1, ring.size // 10**6))]), "-w", ring.path]
    else:
        words += ["-w", "-", *([] if dumpcap else ["-U"])]
    words += ["-q", "-f", captured] if dumpcap else [captured]
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if ring else subprocess.PIPE, stderr=said,
        start_new_session=True,
    )  # fmt: skip


def ending(tools: "list[subprocess.Popen[bytes]]") -> "signal._HANDLER":
    """Handles Ctrl-C: the first one ends the capture and with it the rows, the next one interrupts kcap."""

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for process in tools:
            process.terminate()

    return end


def last_line(said: IO[bytes]) -> str:
    """The last line that the tool wrote on standard error."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip()[-SAID_MAX:].splitlines()
    return next((line.strip().strip("()") for line in reversed(lines) if line.strip()), "no reason is given")
