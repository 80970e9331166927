"""Nothing stays behind, whatever ends the block; pipes are held."""

import os
import threading
from io import BytesIO

import pytest

from kcap.errors import OutputError
from kcap.export.scratch import hand_over, kept, scratch


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_stays_behind(error, tmp_path):
    out = str(tmp_path / "out.pcap")
    seen = ""
    try:
        with scratch(out) as folder:
            seen = folder
            (tmp_path / folder / "x").write_bytes(b"data")
            assert os.path.dirname(folder) == str(tmp_path), "on the output's own file system"
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt, SystemExit) as raised:
        assert isinstance(raised, error)  # noqa: PT017
    assert seen
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_the_outputs_fault(tmp_path):
    with pytest.raises(OutputError, match="no such file"), scratch(str(tmp_path / "no" / "out.pcap")):
        pass


def test_pipes_are_held_and_files_are_not(tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_bytes(b"file")
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"piped"))
    writer.start()
    with scratch(None) as folder:
        held = kept([str(file), str(pipe)], folder)
        assert held[0] == str(file)
        stream = BytesIO()
        hand_over(held[1], stream)
        assert stream.getvalue() == b"piped"
        assert os.path.dirname(held[1]) == folder
    writer.join()
