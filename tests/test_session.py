"""Laws of a capture in Python: every pass sees the same; messages read again are those of the wire."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.errors import CaptureError, UsageError


def test_iteration_and_table_say_the_same(pcaps: Path) -> None:
    capture = kcap.open(pcaps / "raw-frames.pcap", pcaps / "sasl-raw-tokens.pcap")
    rows = [exchange.row for exchange in capture]
    assert rows == capture.exchanges().to_arrow().to_pylist()
    assert "SaslToken" in {row["api"] for row in rows}


@pytest.mark.parametrize("piped", [False, True])
def test_standard_input_allows_one_pass_and_its_messages_are_read_again(pcaps: Path, piped: bool) -> None:
    program = """
import json, kcap
from kcap.errors import UsageError
capture = kcap.open("-")
rows = bodies = 0
for exchange in capture:
    rows += 1
    bodies += exchange.request is not None
try:
    capture.exchanges().to_arrow()
    again = ""
except UsageError as error:
    again = str(error)
print(json.dumps([rows, bodies, again]))
"""
    with open(pcaps / "java-transactions.pcap", "rb") as file:
        given: dict[str, Any] = {"input": file.read()} if piped else {"stdin": file}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=pcaps.parent, **given)
    assert json.loads(done.stdout) == [110, 110, "a pipe can be read only once"]


def test_what_cannot_be_opened(pcaps: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"none\.pcap: no such file"):
        kcap.open(tmp_path / "none.pcap", pcaps / "aiokafka.pcap")
    with pytest.raises(UsageError, match="no capture given"):
        kcap.open()
    (tmp_path / "text.pcap").write_text("no capture at all")
    with pytest.raises(CaptureError, match="no capture"):
        kcap.open(tmp_path / "text.pcap").exchanges().to_arrow()


def test_folders_and_globs(pcaps: Path) -> None:
    assert kcap.open(str(pcaps / "rotated.pcap*")).captures().to_arrow().num_rows == 3
    assert kcap.open(pcaps).captures(["capture"]).to_arrow().num_rows > 15


def test_a_capture_opens_from_lists_paths_and_files(pcaps: Path) -> None:
    name = str(pcaps / "too-large.pcap")
    whole = kcap.open(name).exchanges(["connection", "capture"]).to_arrow()
    with open(name, "rb") as file:
        found = kcap.open(file)
    for capture in (kcap.open([name]), kcap.open(os.fsencode(name)), kcap.open(Path(name)), kcap.open((Path(name),)), found):
        assert capture.exchanges(["connection", "capture"]).to_arrow() == whole
    stream = kcap.open(io.BytesIO(Path(name).read_bytes())).exchanges(["connection", "capture"]).to_arrow()
    assert stream["connection"] == whole["connection"]
    assert set(stream["capture"].to_pylist()) == {"stream"}


def test_what_is_no_capture_is_refused(pcaps: Path) -> None:
    with pytest.raises(kcap.UsageError, match="not int"):
        kcap.open(5)  # type: ignore[arg-type]
    with pytest.raises(kcap.UsageError, match="open for text"):
        kcap.open(io.StringIO("text"))  # type: ignore[arg-type]
    with open(pcaps / "too-large.pcap", encoding="utf-8") as file, pytest.raises(kcap.UsageError, match="open for text"):
        kcap.open(file)  # type: ignore[arg-type]


def test_records_have_keys_and_values_where_they_are_asked_for(pcaps: Path) -> None:
    capture = kcap.open(pcaps / "too-large.pcap")
    assert "value" not in capture.records().to_arrow().column_names
    assert capture.records(payloads=True).to_arrow()["value"].null_count < capture.records().to_arrow().num_rows
