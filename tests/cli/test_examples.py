"""Every command has examples, and every example is one that the command takes."""

import re
import shlex
from pathlib import Path
from shutil import copy

import click
import pytest

import kcap as kcap_module
from kcap.cli.commands import COMMANDS
from kcap.cli.examples import EXAMPLES, epilog
from kcap.cli.main import main
from kcap.filter.parse import parse
from tests.cli.running import PCAPS, kcap

LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]
STOPS = ("|", ">", "<")


def test_every_command_has_some() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(len(lines) >= 2 for lines in EXAMPLES.values())
    assert epilog("schema").count("\n") == 1 + len(EXAMPLES["schema"])


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_examples_are_taken(name: str, line: str) -> None:
    """Options exist, choices and numbers fit, filters parse."""
    words = shlex.split(line)
    words = words[words.index("kcap") :]
    if words[1] not in COMMANDS and name == "browse":
        words.insert(1, name)  # the command that needs no name
    end = next((at for at, word in enumerate(words) if word in STOPS), len(words))
    assert words[1] == name
    command: click.Command = COMMANDS[name].load()
    with command.make_context(name, words[2:end]) as context:
        if context.params.get("only"):
            assert parse(context.params["only"]) is not None


NOT_RUN = ("kcap live", "kcap web", "kcap browse", "ssh ", "kcap incident", "kcap *.pcap", "kcap - ", " < ")
"""What needs an interface, a screen or a browser, another machine or a pipe."""


@pytest.mark.parametrize("line", [line for _, line in LINES if not any(word in line for word in NOT_RUN)])
def test_examples_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each does what it says over a capture of its own: exit code 0, or 1 where it has --fail-on."""
    capture = PCAPS / "too-large.pcap"
    for name in set(re.findall(r"[\w*]+\.pcap(?:ng)?|ring/", line.partition(" -o ")[0])):
        place = tmp_path / name.replace("*", "any") / ("one.pcap" if name == "ring/" else "")
        place.parent.mkdir(exist_ok=True)
        copy(capture, place)
    if "rows.parquet" in line.partition(" -o ")[0]:
        assert main(["rows", str(capture), "-o", str(tmp_path / "rows.parquet")]) == 0
    (tmp_path / "request.bin").write_bytes(bytes.fromhex("0012 0000 00000007 0003 61646d"))
    (tmp_path / "response.hex").write_text("00000007 00 00000000 0000 00000000 01 00")
    (tmp_path / "00000000000000000000.log").write_bytes(b"")
    (exchange,) = kcap_module.open(capture).exchanges(["connection", "exchange"]).to_arrow().slice(0, 1).to_pylist()
    line = line.replace("C5e1a7b2c90d4f00d.17", f"{exchange['connection']}.{exchange['exchange']}")
    line = line.replace("C5e1a7b2c90d4f00d", exchange["connection"])
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)[1:]
    words = words[: next((at for at, word in enumerate(words) if word in STOPS), len(words))]
    words = [found for word in words for found in ([word] if "*.pcap" not in word else sorted(map(str, Path().glob(word))))]
    code = main(words)
    said = capsys.readouterr()
    assert code in ((0, 1) if "--fail-on" in line else (0,)), said.err
    assert said.out or said.err or "-o" in words


def test_help_shows_them() -> None:
    reported = kcap("topics", "--help").stdout.decode()
    assert "Examples:\n    kcap topics a.pcap\n" in reported
