"""Queries typed one after another: split at semicolons, completed, kept, and none of them ends the others."""

import os
import pty
import select
import stat
import subprocess
import sys
import time

import pytest

from kcap.cli.sql_shell import beginning, completions, expected, parts
from tests.cli.running import PCAPS, ROOT, kcap

QUERIES = b"show tables;\nselect count(*) as n\nfrom exchanges -- ; no end\n;select nope from exchanges;\nselect ';' as sign"


def test_queries_of_standard_input_are_answered_one_by_one():
    done = kcap("sql", PCAPS / "aiokafka.pcap", stdin=QUERIES)
    lines = done.stdout.decode().split()
    assert lines[0] == "name"
    assert "exchanges" in lines
    assert lines[-4:] == ["n", "123", "sign", ";"]
    assert done.returncode == 0
    assert b'"nope" not found' in done.stderr
    assert done.stderr.count(b"kcap:") == 1


@pytest.mark.parametrize("word", [".quit", "exit", "QUIT;", "\\q"])
def test_the_words_that_end_other_shells_end_this_one(word):
    done = kcap("sql", PCAPS / "aiokafka.pcap", stdin=f"{word}\nselect 1 as never;\n".encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_it_cannot_do_is_wrong_usage(tmp_path):
    assert kcap("sql", PCAPS / "aiokafka.pcap", "-o", tmp_path / "x.csv").returncode == 2
    assert kcap("sql", PCAPS / "aiokafka.pcap", "-").returncode == 2


def test_semicolons_in_texts_and_comments_end_nothing():
    assert parts("a;b") == ["a", "b"]
    assert parts("select ';', \";\" -- ;\n;x") == ["select ';', \";\" -- ;\n", "x"]
    assert parts("-- only ;") == ["-- only ;"]
    assert parts("'open ;") == ["'open ;"]


def test_words_are_completed():
    words = completions({"exchanges": ["api", "api_key"], "brokers": ["host"]})
    assert beginning(words, "exc") == ["exchanges"]
    assert beginning(words, "API") == ["api", "api_key"]
    assert beginning(words, "exchanges.a") == ["exchanges.api", "exchanges.api_key"]


def test_where_a_table_is_due_tables_alone_are_completed():
    """A column whose name begins a table's would stop the completion before its end."""
    tables = {"exchanges": ["exchange", "partition_count"], "partitions": ["partition", "exchange"]}
    words = completions(tables)
    for before in ("select * from ", "FROM ", "describe ", "from exchanges, ", "from exchanges join ", "summarize\t"):
        assert beginning(expected(tables, words, before), "exch") == ["exchanges"], before
        assert beginning(expected(tables, words, before), "part") == ["partitions"], before
    for before in ("", "select ", "select from_ ", "select * from exchanges where ", "from exchanges order by api, "):
        assert "exchange" in beginning(expected(tables, words, before), "exch"), before


def test_a_terminal_has_a_history_of_its_own(tmp_path):
    master, slave = pty.openpty()
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-m", "kcap", "sql", str(PCAPS / "aiokafka.pcap")]
    with subprocess.Popen(call, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        try:
            seen = b""
            # Only behind its prompt does the shell read keys; Ctrl-D would mean something else to the terminal before.
            for before, send in ((b"", b"select 'x' || count(*) from exchanges;\n"), (b"x123", b"\x04")):
                end = time.monotonic() + 30
                while b"kcap> " not in seen[seen.find(before) :][len(before) :] and time.monotonic() < end:
                    if select.select([master], [], [], 1)[0]:
                        seen += os.read(master, 4096)
                os.write(master, send)
            assert process.wait(30) == 0
        finally:
            process.kill()
    os.close(master)
    history = tmp_path / "kcap" / "sql_history"
    assert "from exchanges" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
