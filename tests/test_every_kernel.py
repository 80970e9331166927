"""What the set-up compiles is all that reading needs."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

pytest.importorskip("numba")

from kcap import every_kernel, kernels

READ = """
import sys
from pathlib import Path
from unittest.mock import patch
from kcap import kernels, limits, session
from kcap.decode import projection
from kcap.capture import fileset
import kcap

assert kernels.usable()
with patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0), patch.object(projection, "JIT_AFTER", 0):
    for path in map(Path, sys.argv[1:]):
        with patch.object(session, "FileSet", lambda *a, **k: fileset.FileSet(*a, **{**k, "jit_after": 0})):
            rows = len(list(kcap.open(path)))
print("kcap.fastpath.engine" in sys.modules, "numba" in sys.modules)
"""


def test_reading_needs_no_compiler(pcaps: Path) -> None:
    """Law: captures of each format and kind of traffic call kernels with the types of the examples alone."""
    captures = [str(path) for path in sorted(pcaps.iterdir()) if path.suffix in (".pcap", ".pcapng")]
    assert len(captures) > 10
    done = subprocess.run([sys.executable, "-c", READ, *captures], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_every_kernel_that_is_called_has_an_example() -> None:
    names = [kernel.__name__ for kernel, _ in every_kernel.examples()]
    assert len(names) == len(set(names))
    assert {"walk", "batch", "parse_packets", "pcap_records", "pcapng_packets"} <= set(names)


def test_one_process_makes_it_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the file that says so is gone afterwards; one left behind by a killed process does not stay for ever."""
    monkeypatch.setattr(kernels, "folder", lambda: tmp_path)
    made: list[str] = []

    class Sample:
        def make(self, *_: object) -> None:
            assert (tmp_path / every_kernel.MAKING).exists()
            made.append("one")

    with patch.object(every_kernel, "examples", lambda: iter([(Sample(), (1,))])):
        (tmp_path / every_kernel.MAKING).touch()
        every_kernel.make()
        assert made == []
        os.utime(tmp_path / every_kernel.MAKING, (0, 0))
        every_kernel.make()
        every_kernel.make()
    assert made == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == [kernels.COMPLETE]


def test_without_a_place_to_keep_it_the_program_says_so_by_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "installed", lambda: False)
    assert every_kernel.main([]) == 1
