"""Several files are one capture in time order."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.capture import fileset
from kcap.capture.fileset import FileSet, size_of
from kcap.errors import CaptureError
from kcap.limits import JIT_AFTER_BYTES, JIT_SOON_BYTES, LARGE_BYTES
from tests.capture.handmade import START_NS, Weirds, pcap, read_all, save


def content(*times, mark=b"x"):
    return pcap([(START_NS + time * 1000, mark) for time in times])


def seen(found, weirds=None):
    """(time, file name) of all packets in the order they come."""
    return [
        ((int(time) - START_NS) // 1000, found.files[batch.file].name) for batch in found.batches() for time in batch.time_ns
    ]


def test_files_are_merged_by_time_and_ties_by_name(tmp_path):
    b = save(tmp_path, content(1, 5, 6, 9), "b")
    a = save(tmp_path, content(2, 5, 7, 9), "a")
    found = FileSet([b, a], Weirds())
    assert seen(found) == [(1, "b"), (2, "a"), (5, "a"), (5, "b"), (6, "b"), (7, "a"), (9, "a"), (9, "b")]
    assert [file.name for file in found.files] == ["b", "a"]
    assert [file.packets for file in found.files] == [4, 4]


def test_a_files_own_order_is_kept(tmp_path):
    a = save(tmp_path, content(1, 8, 2, 9), "a")
    b = save(tmp_path, content(3, 5, 10), "b")
    weirds = Weirds()
    assert seen(FileSet([a, b], weirds)) == [(1, "a"), (3, "b"), (5, "b"), (8, "a"), (2, "a"), (9, "a"), (10, "b")]
    assert weirds.kinds == ["time_went_back"]


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=5),
    st.sampled_from([None, 0]),
)
def test_the_merge_takes_the_least_of_all_heads(tmp_path_factory, files, jit_after):
    folder = tmp_path_factory.mktemp("merge")
    paths = [save(folder, content(*times), f"f{number}") for number, times in enumerate(files)]
    got = seen(FileSet(paths, Weirds(), jit_after))
    queues = {f"f{number}": list(times) for number, times in enumerate(files)}
    expected = []
    while queues:
        name = min(queues, key=lambda key: (queues[key][0], key))
        expected.append((queues[name].pop(0), name))
        if not queues[name]:
            del queues[name]
    assert got == expected


def test_files_apart_in_time_are_open_one_at_a_time(tmp_path, monkeypatch):
    paths = [save(tmp_path, content(*range(n * 10, n * 10 + 5)), f"f{9 - n}") for n in range(8)]
    most, found = 0, FileSet(paths[::-1], Weirds())
    opened = fileset.FileSet._member

    def count(self, index, source):
        nonlocal most
        member = opened(self, index, source)
        most = max(most, len(self._sources))
        return member

    monkeypatch.setattr(fileset.FileSet, "_member", count)
    got = seen(found)
    assert all(a[0] <= b[0] for a, b in pairwise(got))
    assert len(got) == 40
    assert most == 1
    assert not found._sources


def test_batches_of_files_apart_are_whole(tmp_path):
    paths = [save(tmp_path, content(*range(n * 100, n * 100 + 50)), f"f{n}") for n in range(3)]
    assert [len(batch) for batch in FileSet(paths, Weirds()).batches()] == [50, 50, 50]


def test_numbers_and_positions_are_those_of_the_file(tmp_path):
    a = save(tmp_path, content(1, 3, 5), "a")
    b = save(tmp_path, content(2, 4, 6), "b")
    alone = read_all(a)[0]
    both = read_all(a, b)[0]
    assert both[::2] == alone


def test_one_bad_file_among_good_ones_is_left_out(tmp_path):
    good = save(tmp_path, content(1, 2), "good")
    bad = save(tmp_path, b"hello, this is text", "bad")
    missing = str(tmp_path / "missing")
    weirds = Weirds()
    found = FileSet([bad, good, missing], weirds)
    assert len(seen(found)) == 2
    assert [path for path, _ in found.failed] == [bad, missing]
    assert [(kind, file) for kind, _, file, _, _ in weirds.seen] == [("file_unreadable", 0), ("file_unreadable", 2)]


def test_no_readable_file_at_all(tmp_path):
    with pytest.raises(CaptureError, match="none of 2"):
        FileSet([save(tmp_path, b"hello", "a"), save(tmp_path, b"hello", "b")], Weirds())
    (tmp_path / "folder").mkdir()
    with pytest.raises(CaptureError, match=r"no capture file there$"):
        FileSet([str(tmp_path / "folder")], Weirds())
    (tmp_path / "folder" / "part.parquet").write_bytes(b"PAR1")
    with pytest.raises(CaptureError, match="it holds saved tables"):
        FileSet([str(tmp_path / "folder")], Weirds())


def test_files_without_packets_do_not_disturb(tmp_path):
    empty = save(tmp_path, content(), "empty")
    good = save(tmp_path, content(1, 2), "good")
    weirds = Weirds()
    assert len(seen(FileSet([good, empty], weirds))) == 2
    assert weirds.kinds == ["file_empty"]


def test_figures_of_a_file(tmp_path):
    path = save(tmp_path, pcap([(START_NS, b"abc", 10), (START_NS + 1000, b"abcd")], snaplen=99))
    _, found, _ = read_all(path)
    file = found.files[0]
    assert (file.packets, file.packet_bytes, file.cut_packets) == (2, 7, 1)
    assert (file.first_ns, file.last_ns, file.snaplen) == (START_NS, START_NS + 1000, 99)
    assert (file.size, file.links, file.complete) == (os.path.getsize(path), {1}, True)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_capture_that_is_large_in_all_is_compiled_soon(tmp_path, missing):
    """Also where each of its files is small; tests that want no compiled loop get none."""
    files = [save(tmp_path, content(1), name) for name in "ab"]
    with open(files[0], "r+b") as file:
        file.truncate(LARGE_BYTES - size_of(files[1]) - missing)
    found = FileSet(files, Weirds())
    assert found.large is not bool(missing)
    assert found._jit_after == (JIT_AFTER_BYTES if missing else JIT_SOON_BYTES)
    assert FileSet(files, Weirds(), None)._jit_after is None
    assert size_of(str(tmp_path)) == 0
