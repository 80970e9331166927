"""Two paths are one file if device and inode are equal; an output never is an input."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kcap.errors import UsageError
from kcap.inputs import identity, is_parquet, parents, reading, refuse_input


def test_paths_of_one_file_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"x")
    Path("b").write_bytes(b"x")
    os.symlink("a", "sym")
    os.link("a", "hard")
    os.symlink(".", "here")
    paths = ("a", "./a", "no/../a", "sym", "hard", "here/a", f"file://{tmp_path}/a", f"file:{tmp_path}/a")
    assert len({identity(path) for path in paths}) == 1
    assert identity("a") != identity("b")


def test_paths_that_do_not_exist_are_their_folder_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink(".", "here")
    os.symlink("new", "dangling")
    assert len({identity(path) for path in ("new", "./new", "here/new", "dangling")}) == 1
    assert identity("new") != identity("other")
    assert identity("no/such/folder") == ("path", f"{os.path.realpath(tmp_path)}/no/such/folder")


def test_devices_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert identity(os.devnull) is None
    assert identity(str(tmp_path / "fifo")) is None
    with reading([os.devnull]):
        refuse_input(os.devnull)


@pytest.mark.parametrize(
    "same",
    ["s3://bucket/a/b.pcap", "s3a://bucket/a/b.pcap", "S3://Bucket//a/./b.pcap", "s3n://bucket/a/x/../b.pcap?region=eu-west-1"],
)
def test_urls_are_compared_after_normalisation(same: str) -> None:
    with reading(["s3://bucket/a/b.pcap"]):
        with pytest.raises(UsageError, match="input"):
            refuse_input(same)
        with pytest.raises(UsageError, match="holds the input"):
            refuse_input("s3a://bucket/a/", folder=True)
        refuse_input("s3://bucket/a/c.pcap")
        refuse_input("s3://bucket/a")
        refuse_input("gs://bucket/a/b.pcap")


def test_folders_hold_what_lies_in_them(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    path = tmp_path / "data" / "deep" / "a"
    path.write_bytes(b"x")
    assert identity(str(tmp_path)) in parents(str(path))
    with reading([str(path)]):
        refuse_input(str(tmp_path / "data"))
        refuse_input(str(tmp_path / "data" / "other"), folder=True)
        with pytest.raises(UsageError, match="holds the input"):
            refuse_input(str(tmp_path / "data"), folder=True)


def test_folders_are_expanded_only_for_an_output_that_exists(tmp_path: Path) -> None:
    member, other = tmp_path / "member", tmp_path / "other"
    member.write_bytes(b"")
    other.write_bytes(b"")
    calls = []

    def expand(paths: Sequence[str]) -> list[str]:
        calls.append(list(paths))
        return [str(member)]

    with reading([str(tmp_path), "-"], expand):
        refuse_input(str(tmp_path / "new"))
        assert calls == []
        refuse_input(str(other))
        with pytest.raises(UsageError) as refused:
            refuse_input(str(member))
        assert calls == [[str(tmp_path)]], "once for all outputs"
    assert str(refused.value) == f"{member}: this output is an input itself; write elsewhere"
    refuse_input(str(member))


def test_saved_tables_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"PAR1....")
    (tmp_path / "capture").write_bytes(b"\n\r\r\n....")
    found = [is_parquet(str(tmp_path / name)) for name in ("rows", "capture", "nothing")]
    assert found == [True, False, False]
