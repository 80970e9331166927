"""Every command has examples, and every example is one that the command takes."""

import shlex

import click
import pytest

from kcap.cli.commands import COMMANDS
from kcap.cli.examples import EXAMPLES, epilog
from kcap.filter.parse import parse
from tests.cli.running import kcap

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


def test_help_shows_them() -> None:
    told = kcap("topics", "--help").stdout.decode()
    assert "Examples:\n    kcap topics a.pcap\n" in told
