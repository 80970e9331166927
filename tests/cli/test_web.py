"""`kcap web` on the command line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kcap.cli.main import main

PCAPS = Path(__file__).resolve().parents[2] / "pcaps"


def test_what_cannot_be_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "-"]) == 2
    assert main(["web", "/nowhere.pcap"]) == 3
    assert main(["web", str(PCAPS / "aiokafka.pcap"), "--host", "192.0.2.1"]) == 4
    assert "cannot listen on 192.0.2.1 port 0" in capsys.readouterr().err


def test_it_prints_an_address_of_this_machine_and_ends_by_a_signal() -> None:
    words = [sys.executable, "-m", "kcap", "web", str(PCAPS / "aiokafka.pcap")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        try:
            assert address.startswith("http://127.0.0.1:")
            port = int(address.removeprefix("http://127.0.0.1:").partition("/")[0])
            socket.create_connection(("127.0.0.1", port), 10).close()  # an address that is printed can be opened
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
