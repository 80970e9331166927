"""Peak memory of `kcap rows --format parquet`, and its parts: the process's own pages, and those of libraries.

usage: python benchmarks/memory.py CAPTURE... [--rounds 2] [--kcap .venv/bin/kcap]

For each capture, after one run that is not counted (it compiles kernels, which takes memory of its own): `ru_maxrss` of the
process, the minimum of the rounds, and the values of /proc/PID/status at the peak, and after a quarter and three quarters of
the time. Use captures of very different sizes: the figures should hardly differ. Linux only.

    python benchmarks/grow.py SOURCE.pcap 1G.pcap --size 1G; python benchmarks/grow.py SOURCE.pcap 4G.pcap --size 4G
    python benchmarks/memory.py 1G.pcap 4G.pcap
"""

import argparse
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

EVERY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Held:
    """Memory of a process in MB."""

    own: float
    libraries: float

    @property
    def all(self) -> float:
        return self.own + self.libraries

    def __str__(self) -> str:
        return f"{self.all:,.0f} MB ({self.own:,.0f} own, {self.libraries:,.0f} of libraries)"


def held(process: int) -> Held:
    """The present memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    said = {name: value for name, _, value in (line.partition(":") for line in lines)}
    own, libraries = (int(said.get(name, "0 kB").split()[0]) / 1024 for name in ("RssAnon", "RssFile"))
    return Held(own, libraries)


def watched(command: list[str]) -> tuple[float, list[Held]]:
    """Peak MB of a command, and its memory over time."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    moments = []
    while True:
        done, status, usage = os.wait4(child.pid, os.WNOHANG)
        if done:
            break
        moments.append(held(child.pid))
        time.sleep(EVERY_SECONDS)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return usage.ru_maxrss / 1024, moments


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kcap", default=".venv/bin/kcap")
    options = parser.parse_args()
    say = print
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "rows.parquet"))
        for capture in options.captures:
            command = [*options.kcap.split(), "rows", capture, "--jobs", "1", "--format", "parquet", "-o", out]
            watched(command)
            peak, moments = min((watched(command) for _ in range(options.rounds)), key=lambda found: found[0])
            say(f"{os.path.getsize(capture) / 1e6:,.0f} MB: peak {peak:,.0f} MB")
            say(f"  at the highest moment {max(moments, key=lambda moment: moment.all)}")
            for part in (1, 3):
                say(f"  {part}/4 through {moments[len(moments) * part // 4]}")


if __name__ == "__main__":
    main()
