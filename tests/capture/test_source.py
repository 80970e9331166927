"""Where captures come from: what is one, what is none, and pipes that must not be waited for."""

import os
import subprocess
import sys
import threading

import pytest

from kcap.capture.fileset import FileSet
from kcap.errors import CaptureError
from tests.capture.handmade import START_NS, Weirds, interface, pcap, read_all, rows, save, section

PACKETS = [(START_NS + n * 1000, bytes([n]) * 30) for n in range(20)]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"PQ\3\4" + bytes(90), "50510304.*pcap, pcapng and snoop.*gzip"),
        (b"PK\3\4" + bytes(90), "a zip archive is not read"),
        (b"\x0a\x0d\x0d\x0a" + bytes(90), "no pcapng"),
    ],
)
def test_what_is_no_capture_is_named_in_one_line(tmp_path, data, says):
    with pytest.raises(CaptureError, match=says) as caught:
        read_all(save(tmp_path, data))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unreadable_one(tmp_path):
    with pytest.raises(CaptureError, match="no such file"):
        read_all(str(tmp_path / "none.pcap"))


def test_names_say_nothing(tmp_path):
    got, found, _ = read_all(save(tmp_path, section() + interface(), "really.pcap"))
    assert not got
    assert found.files[0].format == "pcapng"


def test_a_pipe_hands_on_packets_as_they_come(tmp_path):
    data = pcap(PACKETS)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    go, arrived = threading.Event(), []

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(data[: 24 + 46])
            go.wait(10)
            pipe.write(data[24 + 46 :])

    writer = threading.Thread(target=feed)
    writer.start()
    weirds = Weirds()
    found = FileSet([path], weirds)
    for batch in found.batches():
        arrived.append(rows(batch))
        go.set()
    writer.join()
    assert len(arrived[0]) == 1
    assert sum(map(len, arrived)) == 20
    assert found.files[0].size is None
    assert not weirds.seen


def test_standard_input(tmp_path):
    path = save(tmp_path, pcap(PACKETS))
    code = (
        "from kcap.capture.fileset import FileSet\n"
        "found = FileSet(['-'], lambda *a: print(a))\n"
        "print(sum(len(batch) for batch in found.batches()), found.files[0].name)"
    )
    with open(path, "rb") as stream:
        done = subprocess.run([sys.executable, "-c", code], stdin=stream, capture_output=True, text=True, check=True)
    assert done.stdout == "20 -\n"
