"""A capture that was read once opens at once, and never with what another capture or another option gave."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from kcap.filter.parse import parse
from kcap.table.arrow_filter import NumberedValues
from kcap.tui import reader_main, saved_index
from kcap.tui.capture_model import CaptureModel
from kcap.tui.reader_main import ReadRequest
from kcap.tui.value_codes import write_codes
from tests.tui.driving import PCAPS


@pytest.fixture(autouse=True)
def small_ones_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_main, "INDEXED_LEAST_BYTES", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def order(tmp_path: Path) -> ReadRequest:
    """A capture that was not written to lately."""
    path = tmp_path / "a.pcap"
    shutil.copy(PCAPS / "java-transactions.pcap", path)
    before = time.time() - 3600
    os.utime(path, (before, before))
    return ReadRequest([str(path)])


def whole(order: ReadRequest) -> CaptureModel:
    book = CaptureModel(order)
    assert book.process.wait(60)
    book.look()
    return book


def test_the_second_opening_has_the_rows_of_the_first_without_reading(order: ReadRequest) -> None:
    with whole(order) as first:
        assert not first.index
        rows, weirds = first.exchanges().to_pydict(), first.table("connections").to_pydict()
        profiles = first.versions()
        while first.conclusions() is None:
            time.sleep(0.02)
        found = first.conclusions()
    with whole(order) as second:
        assert second.index
        assert second.done
        assert second.exchanges().to_pydict() == rows
        assert second.table("connections").to_pydict() == weirds
        assert (second.versions() is None) == (profiles is None)
        assert second.conclusions() == found, "without another pass"
        assert second.frames(5).request
        folder = Path(second.folder)
    assert not folder.exists()
    assert Path(second.index).exists()


def test_numbers_of_values_are_in_the_index(order: ReadRequest) -> None:
    tree = parse("api == Produce")
    assert tree is not None
    with whole(order) as first:
        passing = first.snapshot().passing(tree).tolist()
        write_codes(first.folder, first.snapshot().batches, first.release)
    with (
        whole(order) as second,
        mock.patch.object(NumberedValues, "rows", autospec=True, side_effect=NumberedValues.rows) as by,
    ):
        assert second.index
        assert second.snapshot().passing(tree).tolist() == passing
        assert by.call_count == len(second.snapshot().batches)


def test_a_later_pass_is_added_to_the_index(order: ReadRequest) -> None:
    whole(order).close()
    with whole(order) as second:
        while second.table("partitions") is None:
            time.sleep(0.02)
        rows = second.table("partitions").num_rows
    with whole(order) as third:
        assert third.table("partitions").num_rows == rows, "at once"


def test_other_bytes_options_or_programs_have_another_index(order: ReadRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    key, path = saved_index.key_of(order), order.paths[0]
    assert key == saved_index.key_of(replace(order, folder="elsewhere"))
    others = [replace(order, kafka_ports=[1]), replace(order, thresholds={"a": {"b": 1.0}})]
    assert key not in [saved_index.key_of(other) for other in others]
    for unkept in ({"keylogs": ["k"]}, {"private_keys": ["k"]}, {"follow": True}, {"paths": ["-"]}):
        assert saved_index.key_of(replace(order, **unkept)) is None
    os.utime(path)
    assert saved_index.key_of(order) != key
    key = saved_index.key_of(order)
    monkeypatch.setattr(saved_index, "program", lambda: "another")
    assert saved_index.key_of(order) != key


def test_nothing_decrypted_is_kept(tmp_path: Path) -> None:
    order = ReadRequest([str(PCAPS / "tls13.pcapng")])
    with whole(order) as book:
        decrypted = book.rows > 0
    assert decrypted
    assert not list((tmp_path / "cache" / "kcap").glob("index-*"))


def test_a_folder_of_another_user_or_damaged_is_not_opened(order: ReadRequest) -> None:
    whole(order).close()
    key = saved_index.key_of(order)
    assert key is not None
    found = saved_index.opened(key)
    assert found is not None
    folder = Path(found[0])
    folder.chmod(0o755)
    assert saved_index.opened(key) is None
    folder.chmod(0o700)
    (folder / saved_index.STATUS).write_bytes(b"no pickle")
    assert saved_index.opened(key) is None


def test_indexes_have_a_bound_and_the_oldest_go_first(
    order: ReadRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache" / "kcap"
    for number, name in enumerate(("old", "new", "kept")):
        folder = cache / f"index-{name}"
        folder.mkdir(parents=True)
        (folder / "x").write_bytes(b"x" * 100)
        os.utime(folder, (number, number))
    monkeypatch.setattr(saved_index, "INDEXES_BYTES", 200)
    saved_index.sweep(cache / "index-old")
    assert {path.name for path in cache.iterdir()} == {"index-old", "index-kept"}, "the one just made stays"
