"""Laws of the lean process: pandas stays out until it is asked for; what is given back is there when it is needed."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcap import runtime
from kcap.runtime import STEPS, PageRelease, file_bytes, give_way, untouched
from tests.cli.running import COMMAND, ENVIRONMENT, PCAPS


@pytest.mark.parametrize("leads", [True, False])
def test_a_session_gives_way_to_other_sessions_by_the_value_of_its_group(
    leads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process in the session of a terminal leaves the group alone: the shell is in it."""
    group, nicer = tmp_path / "autogroup", list[int]()
    group.write_text("/autogroup-1 nice 0")
    monkeypatch.setattr(runtime, "AUTOGROUP", str(group))
    monkeypatch.setattr(os, "nice", nicer.append)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid() if leads else 1)
    give_way(4)
    assert nicer == [4]
    assert group.read_text() == ("4" if leads else "/autogroup-1 nice 0")


def test_a_group_that_may_not_be_changed_now_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nicer: list[int] = []
    monkeypatch.setattr(runtime, "AUTOGROUP", str(tmp_path))  # a folder cannot be written to
    monkeypatch.setattr(os, "nice", nicer.append)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    give_way(4)
    assert nicer == [4]


def test_tests_keep_their_priority() -> None:
    """Or those behind some readings in this process would have the lowest, for good."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    give_way(1)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True)


def test_no_format_needs_pandas() -> None:
    run(
        "import sys, os\nfrom kcap.cli.main import main\n"
        "for form in ('table', 'jsonl', 'csv', 'parquet', 'arrow'):\n"
        f"    assert main(['rows', {str(PCAPS / 'java-transactions.pcap')!r}, '--format', form, '-o', os.devnull]) == 0\n"
        "assert 'pandas' not in sys.modules and 'numba' not in sys.modules"
    )


@pytest.mark.parametrize("report", ["health", "latency", "check", "groups", "transactions", "versions", "connections"])
def test_no_report_needs_pandas(report: str) -> None:
    run(
        "import sys, os\nfrom kcap.cli.main import main\n"
        f"assert main([{report!r}, {str(PCAPS / 'java-transactions.pcap')!r}, '-o', os.devnull]) == 0\n"
        "assert 'pandas' not in sys.modules and 'numba' not in sys.modules"
    )


def test_pandas_is_found_when_it_is_asked_for() -> None:
    run(
        "import sys\nfrom kcap.runtime import load_arrow\nload_arrow()\nimport pyarrow as pa\n"
        "table = pa.table({'a': [1, None]})\nassert 'pandas' not in sys.modules\n"
        "assert len(table.to_pandas()) == 2\nimport pandas as pd\nassert pa.array(pd.Series([1, 2])).to_pylist() == [1, 2]"
    )


def test_pandas_that_is_loaded_stays() -> None:
    run("import sys, pandas\nfrom kcap.runtime import load_arrow\nload_arrow()\nimport pyarrow as pa\nassert pa.array([1])")


MAPS = """\
5583c0000000-5583c0001000 r--p 00000000 fd:00 131 /usr/bin/python3
Anonymous:             0 kB
7f0000000000-7f0000003000 r-xp 00001000 fd:00 132 /usr/lib/libx.so.1.2
Size:                 12 kB
Anonymous:             0 kB
7f0000003000-7f0000004000 r--p 00004000 fd:00 132 /usr/lib/libx.so.1.2
Anonymous:             4 kB
7f0000004000-7f0000005000 rw-p 00005000 fd:00 132 /usr/lib/libx.so.1.2
Anonymous:             0 kB
7f0000005000-7f0000006000 r--s 00000000 fd:00 133 /usr/lib/shared.so
Anonymous:             0 kB
7f0000006000-7f0000008000 r--p 00000000 00:00 0
Anonymous:             0 kB
"""


def test_only_what_a_library_has_in_its_file_is_given_back() -> None:
    """Not what was written to (relocations), what can be, what others share, what is no library."""
    assert list(untouched(MAPS.splitlines(keepends=True))) == [(0x7F0000000000, 0x3000)]


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what a process holds, others do not")
def test_libraries_work_when_their_pages_were_given_back() -> None:
    """Resident pages of files fall, and come again when they are needed."""
    run(
        "import ctypes, json, sys\nfrom kcap.runtime import give_back, load_arrow\nload_arrow()\n"
        "import pyarrow as pa\n"
        "def held():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('RssFile'))\n"
        "before = held()\ngive_back()\nassert held() < before / 2\n"
        "assert pa.array(['b', 'a']).dictionary_encode().dictionary.to_pylist() == ['b', 'a']\n"
        "assert json.loads('[1]') == [1]"
    )


def test_memory_is_looked_at_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    steps: list[int] = []
    monkeypatch.setattr("kcap.runtime.give_back", lambda: calls.append(len(steps)))
    monkeypatch.setattr("kcap.runtime.file_bytes", lambda: 0 if STEPS < len(steps) < 64 * STEPS else 1 << 40)
    pages = PageRelease()
    for _ in range(70 * STEPS):
        steps.append(1)
        pages.step()
    assert calls == [STEPS, 64 * STEPS], "few pages are kept"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells what a process holds, others do not")
def test_pages_of_files_count() -> None:
    """The same as the status of the process says (proc_pid_status(5))."""
    found = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    held = sum(int(line[1]) << 10 for line in found if line[0] in ("RssFile:", "RssShmem:"))
    assert held > 1 << 20
    assert abs(file_bytes() - held) < 1 << 20


def test_the_memory_pool_is_the_user_s_where_one_is_named() -> None:
    program = (
        "import os, sys\nos.environ['ARROW_DEFAULT_MEMORY_POOL'] = 'system'\n"
        "from kcap.runtime import load_arrow\nload_arrow()\nimport pyarrow as pa\n"
        "assert pa.default_memory_pool().backend_name == 'system'"
    )
    run(program)
    run(
        program.replace("os.environ['ARROW_DEFAULT_MEMORY_POOL'] = 'system'", "").replace(
            "== 'system'", "in ('jemalloc', 'system', 'mimalloc')"
        )
    )


@pytest.mark.parametrize(("given", "others"), [("of_library=True", "pa.jemalloc_memory_pool"), ("", "")])
def test_what_arrow_allocates_by_itself_is_in_the_heap_of_the_library(given: str, others: str) -> None:
    """Arrow's own threads do not ask Python which pool there is; what they freed would stay in the heaps of another."""
    run(
        f"import os\nfrom kcap.runtime import load_arrow\nload_arrow({given})\n"
        "import pyarrow as pa, pyarrow.dataset as ds\n"
        "assert ds.dataset(pa.table({'a': range(100_000)})).to_table(filter=ds.field('a') > 5).num_rows == 99_994\n"
        f"pools = [pa.mimalloc_memory_pool, {others}]\n"
        "pools = [made() for made in pools if made.__name__[:-12] in pa.supported_memory_backends()]\n"
        "assert pools and not any(each.max_memory() for each in pools)\n"
        "assert 'ARROW_DEFAULT_MEMORY_POOL' not in os.environ, 'the reading process has its own'"
    )


def test_screens_give_back_what_arrow_freed() -> None:
    """The pool of the C library, with one heap, holds nothing of what was freed in pieces between what stays."""
    run(
        "from kcap.runtime import load_arrow, share_heap, trim_heap\nload_arrow(of_library=True)\nshare_heap()\n"
        "import pyarrow as pa\nfrom pathlib import Path\n"
        "def held():\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('RssAnon'))\n"
        "assert pa.default_memory_pool().backend_name == 'system'\n"
        "before = held()\n"
        "tables = [pa.array(range(9000)) for _ in range(3000)]\n"
        "kept = tables[::100]\n"
        "del tables\n"
        "trim_heap()\n"
        "assert held() - before < 30_000, 'kB'"
    )


@pytest.mark.parametrize("command", [("latency",), ("check",), ("sql", "select count(*) from exchanges")])
def test_a_command_that_worked_says_nothing_on_standard_error(command: tuple[str, ...], tmp_path: Path) -> None:
    """Not even when Python ends, and not in its first run, which loads Ibis and all of DuckDB to plan its queries: libraries
    that count what is left of them have to be taken down in order.
    """
    done = subprocess.run(
        [*COMMAND, *command, str(PCAPS / "aiokafka.pcap")],
        env=ENVIRONMENT | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


HEAPS = """
import ctypes, sys, threading
from kcap.runtime import share_heap
if {shared}:
    share_heap()
libc = ctypes.CDLL(None)
together = threading.Barrier(4)
def work():
    libc.malloc(ctypes.c_size_t(100_000))
    together.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another C library than glibc")


@glibc
def test_freed_memory_is_used_again_without_the_system() -> None:
    """By default what is freed together, more than twice the largest block, goes back to the system and comes page by page."""
    run(
        "import resource\nfrom kcap import limits\nfrom kcap.runtime import keep_heap\nkeep_heap()\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    blocks = [b'1' * (limits.HEAP_KEPT_BYTES // 4) for _ in range(3)]\n"
        "    del blocks\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "pages = 3 * limits.HEAP_KEPT_BYTES // 4 // resource.getpagesize()\n"
        "first, *later = [faults() for _ in range(5)]\n"
        "assert first > pages // 2 and sum(later) < pages // 2, (first, later)"
    )


@glibc
def test_threads_share_a_heap() -> None:
    heaps = [
        subprocess.run([sys.executable, "-c", HEAPS.format(shared=shared)], capture_output=True, text=True, check=True).stdout
        for shared in (True, False)
    ]
    assert [text.count("<heap nr=") > 1 for text in heaps] == [False, True]


def test_a_process_that_is_done_ends_without_taking_down_what_it_loaded() -> None:
    """What is written is there, and what was registered for its end is done."""
    program = """if True:
        import atexit, sys
        from kcap.runtime import ends_with, start_quickly
        class Loaded:
            def __del__(self):
                print("taken down")
        start_quickly()
        loaded = sys.modules["loaded"] = Loaded()
        atexit.register(print, "registered")
        print("written")
        ends_with(3, sys.stdout.flush)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "written\nregistered\n", "")
