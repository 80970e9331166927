"""Defaults that the user has set: a configuration file and the environment.

In: `config.toml` in the folder kcap of XDG_CONFIG_HOME (XDG Base Directory Specification), or the file in KCAP_CONFIG, with a
table for each command and its options by their long names; variables KCAP_COMMAND_OPTION. Out: defaults by parameter. Law: the
command line overrides the environment, which overrides the file. Raises UsageError for unknown options.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from kcap.errors import UsageError, did_you_mean, said

FILE: Final = "config.toml"
VARIABLE: Final = "KCAP_CONFIG"
ELSEWHERE: Final = {"tui": "tui.toml"}
"""Settings that belong to another file beside this one -> that file."""
WITH_TABLES: Final = ("check",)
"""Commands whose table has tables beside options: thresholds of rules."""


def config_file() -> Path:
    """The path of the file, whether it exists or not."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    from kcap.folders import config_folder

    return config_folder() / FILE


def settings() -> dict[str, Any]:
    """The content of the file; empty if there is none, or if the environment names an empty path.

    Raises UsageError for a file that cannot be read.
    """
    path = config_file()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if os.environ.get(VARIABLE):
            raise UsageError(f"{path}: {VARIABLE} names no file") from None
        return {}
    except OSError as error:
        raise UsageError(f"{path}: {said(error)}") from None
    import tomllib  # few users have the file

    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None


def rule_thresholds() -> dict[str, dict[str, float]]:
    """Thresholds from the configuration, by rule. Raises UsageError for unknown rules or thresholds, and invalid values."""
    from kcap.reports.findings.report import rules
    from kcap.reports.findings.thresholds import thresholds_of

    return thresholds_of(settings().get("check", {}), rules(), f"{config_file()}: [check]")


def defaults(command: click.Command, name: str, file: Mapping[str, Any], commands: Mapping[str, object]) -> dict[str, Any]:
    """Defaults of one command, by the names of its parameters.

    Raises UsageError for an unknown command or option.
    """
    for table in file:
        if table in ELSEWHERE:
            from kcap.folders import config_folder

            there = config_folder() / ELSEWHERE[table]
            raise UsageError(f"{config_file()}: [{table}] is no command; the terminal UI keeps its settings in {there}")
        if table not in commands:
            raise UsageError(f"{config_file()}: [{table}] is no command{did_you_mean(table, commands)}")
    options = long_names(command)
    found: dict[str, Any] = {}
    said = file.get(name, {})
    if not isinstance(said, dict):
        raise UsageError(f"{config_file()}: {name} is a command; put its options below [{name}]")
    for option, value in said.items():
        if name in WITH_TABLES and isinstance(value, dict):
            continue  # the command reads and checks it
        key = option.replace("_", "-")
        if key not in options:
            advice = did_you_mean(key, list(options))
            raise UsageError(f"{config_file()}: [{name}] {option} is no option of kcap {name}{advice}")
        found[options[key]] = value
    for option, parameter in options.items():
        text = os.environ.get(f"KCAP_{name}_{option}".upper().replace("-", "_"))
        if text is not None:
            found[parameter] = text
    return {parameter: _several(command, parameter, value) for parameter, value in found.items()}


def long_names(command: click.Command) -> dict[str, str]:
    """Long name of each option, without its dashes -> parameter."""
    found: dict[str, str] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name is not None:
            names = [*parameter.opts, *parameter.secondary_opts]
            found |= {word.removeprefix("--"): parameter.name for word in names if word.startswith("--")}
    return found


def _several(command: click.Command, parameter: str, value: Any) -> Any:
    """The value of a repeatable option as a list; a text is split at commas."""
    option = next(one for one in command.params if one.name == parameter)
    if option.multiple and isinstance(value, str):
        return [word for word in re.split(r",\s*", value) if word] if parameter == "not_kafka" else [value]
    return value
