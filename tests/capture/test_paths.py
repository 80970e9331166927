"""The files that are meant, by what was typed."""

import gzip
import os

import pytest

from kcap.capture.paths import expand, require_capture, unique_names
from kcap.errors import CaptureError
from tests.capture.handmade import START_NS, enhanced, interface, pcap, save, section


def content(*times):
    return pcap([(START_NS + time * 1000, b"x") for time in times])


def test_a_folder_gives_its_captures_whatever_their_names(tmp_path):
    save(tmp_path, content(1), "c.txt")
    save(tmp_path, section() + interface() + enhanced(5, b"x"), "a.pcap2")
    save(tmp_path, gzip.compress(content(1)), "b.gz")
    save(tmp_path, gzip.compress(b"some text in a file"), "log.gz")
    save(tmp_path, content(1), ".hidden")
    save(tmp_path, b"# notes", "README.md")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "sub").mkdir()
    assert [os.path.basename(path) for path in expand([str(tmp_path)])] == ["a.pcap2", "b.gz", "c.txt"]


def test_globs_work_and_nothing_is_read_twice(tmp_path):
    a, b = save(tmp_path, content(1), "a.pcap"), save(tmp_path, content(1), "b.pcap")
    assert expand([str(tmp_path / "*.pcap"), a, str(tmp_path)]) == [a, b]
    assert expand([str(tmp_path / "*.none")]) == [str(tmp_path / "*.none")]


def test_names_take_as_much_of_the_path_as_it_takes():
    assert unique_names(["/x/a.pcap", "/y/b.pcap"]) == ["a.pcap", "b.pcap"]
    assert unique_names(["/x/1/a", "/x/2/a", "/y/2/a", "/y/b"]) == ["1/a", "x/2/a", "y/2/a", "b"]


def test_without_a_capture_the_first_fault_is_raised(tmp_path):
    """A file that has nothing yet may become a capture; what can be read only once is not looked into."""
    good, text = save(tmp_path, gzip.compress(content(1)), "a.gz"), save(tmp_path, b"# notes", "notes.md")
    growing, pipe = save(tmp_path, b"", "growing"), str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for paths in ([good], [text, good], [text, growing], [text, pipe], ["-"], []):
        require_capture(paths)
    other = save(tmp_path, gzip.compress(b"some text in a file"), "log.gz")
    for paths, why in (([text, other], "notes.md: no capture"), ([other], "log.gz: no capture"),
                       ([good, str(tmp_path / "none")], "none: no such file or directory")):  # fmt: skip
        with pytest.raises(CaptureError, match=why):
            require_capture(paths)


def test_a_folder_without_a_capture_is_a_fault(tmp_path):
    with pytest.raises(CaptureError, match="no capture file there"):
        require_capture([str(tmp_path)])
    save(tmp_path, content(1), "a.pcap")
    require_capture([str(tmp_path)])
