"""Laws of the table of commands: each entry is a command."""

import click
import pytest

from kcap.cli.commands import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_entry_is_a_command_with_a_line_of_help(name: str) -> None:
    command = COMMANDS[name].load()
    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name].summary.endswith(".")
    assert command.help
