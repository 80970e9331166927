"""`kcap FILE...` without a terminal, and what it asks of one."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kcap.cli.tui import keys_from_terminal
from kcap.errors import UsageError
from tests.cli.running import PCAPS, kcap

NODE = PCAPS / "node-platformatic.pcap"


@pytest.mark.parametrize("arguments", [[NODE], ["browse", NODE], ["-Y", "error", NODE], ["-"], ["-r", NODE]])
def test_it_needs_a_terminal(arguments: list[str | Path]) -> None:
    done = kcap(*arguments, stdin=b"")
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == ["kcap: the terminal UI needs a terminal; kcap rows FILE prints the exchanges"]


def test_what_is_wrong_is_told_before_the_screen_is_taken() -> None:
    assert kcap("none.pcap").returncode == 3
    assert b"no such file" in kcap("none.pcap").stderr
    readme = PCAPS / "README.md"
    done = kcap(readme)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"README.md: no capture" in done.stderr
    assert kcap("-Y", "api ==", NODE).returncode == 2
    assert b"^" in kcap("-Y", "api ==", NODE).stderr


def test_keys_come_from_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(os, "isatty", lambda number: number == 2)
    monkeypatch.setattr(os, "open", no_terminal)
    with pytest.raises(UsageError, match="needs a terminal"):
        keys_from_terminal(piped=False)


def test_a_terminal_that_cannot_draw_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _number: True)
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(UsageError, match=r"type dumb \(TERM\); kcap rows FILE prints the exchanges"):
        keys_from_terminal(piped=False)
    monkeypatch.setenv("TERM", "xterm")
    assert keys_from_terminal(piped=False) is None


def no_terminal(*_arguments: object) -> int:
    raise OSError


def test_a_pipe_is_handed_on() -> None:
    """In a process with a terminal of its own: standard input is the terminal then, the pipe another descriptor."""
    program = (
        "import os; from kcap.cli.tui import keys_from_terminal; n = keys_from_terminal(piped=True);"
        " os.write(1, b'%d %s' % (os.isatty(0), os.read(n, 4)))"
    )
    reader, writer = os.pipe()
    os.write(writer, b"pipe")
    process, terminal = pty.fork()
    if not process:
        os.dup2(reader, 0)
        os.execve(sys.executable, [sys.executable, "-c", program], os.environ | {"TERM": "xterm"})
    os.close(reader)
    reported = b""
    try:
        while part := os.read(terminal, 100):
            reported += part
    except OSError:
        pass  # the terminal ends with the process
    os.waitpid(process, 0)
    os.close(terminal)
    os.close(writer)
    assert reported == b"1 pipe"


def printed(program: str, *words: str | Path) -> str:
    """What a program prints in a process of its own, where nothing is loaded yet."""
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True).stdout.strip()


def test_reading_begins_before_the_screens_are_loaded() -> None:
    """Law: reading waits for nothing that it does not need: neither Textual, nor rules; Arrow it shares."""
    program = (
        "import sys; from kcap.cli.tui import browse, request\n"
        "import kcap.tui.reader_process as process\n"
        "names = 'textual', 'rich.console', 'kcap.reports.findings.report', 'kcap.analyzer', 'pyarrow.compute', 'pyarrow'\n"
        "def begun(*given): print([name for name in names if name in sys.modules]); sys.exit(0)\n"
        "process.get_context = begun\n"
        "browse(request([sys.argv[1]], (frozenset(), frozenset())), None, '')"
    )
    assert printed(program, NODE) == "['pyarrow']"


def test_reading_loads_no_list_of_arrow_functions_for_the_first_rows() -> None:
    """To import `pyarrow.compute` takes a tenth of the time up to the first rows."""
    program = (
        "import sys, socket, tempfile; from multiprocessing.connection import Connection\n"
        "from kcap.tui.reader_main import ReadRequest, serve\n"
        "mine, theirs = socket.socketpair()\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    serve(ReadRequest([sys.argv[1]], folder), Connection(theirs.detach()))\n"
        "print('pyarrow.compute' in sys.modules, 'kcap.tui.reader_tables' in sys.modules)"
    )
    assert printed(program, NODE) == "False True"


def test_screens_load_no_part_that_reads_packets_and_the_first_one_none_that_decodes_messages() -> None:
    program = (
        "import sys, kcap.tui.app\n"
        "names = 'kcap.analyzer', 'kcap.table.builder', 'kcap.decode.plan', 'kcap.capture.source', 'pyarrow.compute', 'lark'\n"
        "print([name for name in names if name in sys.modules])"
    )
    assert printed(program) == "[]"


def test_the_first_rows_load_neither_a_parser_nor_all_functions_of_arrow() -> None:
    """They are colored, sorted and drawn over time with what is there when the screens are."""
    program = (
        "import sys\n"
        "from kcap.runtime import load_arrow; load_arrow()\n"
        "import kcap.tui.app\n"
        "from kcap.tui.capture_model import read_whole\n"
        "from kcap.tui.color_rules import rules_of\n"
        "from kcap.tui.list_model import ListModel\n"
        "from kcap.tui.timeline import timeline\n"
        "with read_whole(sys.argv[1]) as book:\n"
        "    view = ListModel(book, rules=rules_of([])[0])\n"
        "    view.install(view.arrange())\n"
        "    assert view.page(0, 20, [head for head, _ in view.heads(120)])\n"
        "    assert sum(timeline(view.arranged.rows, None, 40).counts) == len(view)\n"
        "print([name for name in ('lark', 'pandas', 'pyarrow.compute', 'numpy.ma') if name in sys.modules])"
    )
    assert printed(program, NODE) == "[]"
