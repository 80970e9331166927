"""Files by path, by pattern, by folder and by URI; their bytes by offset."""

import shutil
from pathlib import Path

import pytest

from kcap.errors import CaptureError
from spark_jobs.files import Files, found, is_remote, remote


def test_paths_and_uris_of_local_files_are_the_same(pcaps: Path) -> None:
    path = str(pcaps / "pipelined.pcap")
    assert found([path, f"file://{path}"]) == [path]
    assert not is_remote(f"file://{path}")
    assert is_remote("s3a://bucket/a.pcap")


def test_bytes_by_offset(pcaps: Path) -> None:
    """Law: what is read is what the file has there, less only where it ends."""
    path = pcaps / "pipelined.pcap"
    data, files = path.read_bytes(), Files([str(path)])
    assert files.size(0) == len(data)
    assert files.read_at(0, 10, 100) == data[10:110]
    assert files.read_at(0, len(data) - 5, 100) == data[-5:]
    read = files.reading(0, 7, 50)
    assert read(20) + read(100) + read(100) == data[7:50]


def test_more_files_than_are_kept_open(pcaps: Path) -> None:
    """A task over a thousand files holds few of them open."""
    paths = [str(pcaps / "pipelined.pcap")] * 200
    files = Files(paths)
    assert {files.read_at(at, 0, 4) for at in range(200)} == {(pcaps / "pipelined.pcap").read_bytes()[:4]}


def test_what_is_not_there_is_one_line() -> None:
    with pytest.raises(CaptureError, match=r"^missing\.pcap: no such file or directory$"):
        Files(["missing.pcap"]).size(0)
    with pytest.raises(CaptureError, match="nosuch://"):
        Files(["nosuch://bucket/a.pcap"]).size(0)


def test_a_folder_behind_a_uri(tmp_path: Path, pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures are known by their first bytes; a pattern in the last part of the path picks by name."""
    from pyarrow import fs

    for name in ("b.pcap", "a.pcap", ".hidden.pcap"):
        shutil.copy(pcaps / "pipelined.pcap", tmp_path / name)
    (tmp_path / "notes.txt").write_text("no capture")
    local = fs.LocalFileSystem()
    monkeypatch.setattr("spark_jobs.files.place_of", lambda path: (local, "/" + path.partition("://")[2]))
    folder = f"s3://{str(tmp_path).lstrip('/')}"
    assert remote(folder) == [f"{folder}/a.pcap", f"{folder}/b.pcap"]
    assert remote(f"{folder}/*.txt") == [f"{folder}/notes.txt"]
    assert remote(f"{folder}/a.pcap") == [f"{folder}/a.pcap"]
    data = (pcaps / "pipelined.pcap").read_bytes()
    files = Files(remote(folder))
    assert (files.size(1), files.read_at(1, 100, 50)) == (len(data), data[100:150])
