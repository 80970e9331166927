"""Parameters of commands that name files to read or write, and calls in which no output may replace an input.

In: a command and its arguments. Out: the command runs, or a UsageError names the output that is an input. Law: nothing is
opened before this check. Loads nothing heavy, since every command is called through it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from kcap.inputs import STANDARD, reading, refuse_input


class Reads(click.types.StringParamType):
    """A parameter that names files, globs or folders that the command reads."""

    def __init__(self, *, tables: bool = False) -> None:
        """`tables`: for a folder, the saved tables in it are read too."""
        self.tables = tables


class Writes(click.types.StringParamType):
    """A parameter that names a file or folder that the command writes."""

    def names(self, value: str) -> Iterable[str]:
        """The paths that are written, as far as they are known before the command runs."""
        return [value]


class Invocation(click.Context):
    """One call of a command, in which no output may replace an input. Standard output counts as an output of every command."""

    def get_help(self) -> str:
        """The text of `--help`: the command's options, followed by its examples."""
        from kcap.cli.examples import epilog

        self.command.epilog = epilog(self.info_name or "")
        return super().get_help()

    def invoke(self, callback: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the command while its inputs are protected.

        Raises UsageError for an output that is an input, before anything is opened.
        """
        from kcap.cli.configuration import config_file

        read = [*self._given((Reads, click.Path)), *self._remembered()]
        tables = any(isinstance(parameter.type, Reads) and parameter.type.tables for parameter, _ in read)
        paths = [*(path for _, path in read), str(config_file())]
        with reading(paths, partial(files_read, tables=tables) if read else None):
            for parameter, value in self._given(Writes):
                assert isinstance(parameter.type, Writes)
                for path in parameter.type.names(value):
                    refuse_input(path)
            refuse_input(STANDARD)
            return super().invoke(callback, *args, **kwargs)

    def _remembered(self) -> Iterator[tuple[click.Parameter, str]]:
        """Captures of -r, key logs and private keys: no parameters of the command (`kcap.cli.options.remembered`)."""
        for parameter in (one for one in self.command.params if isinstance(one.type, Reads | click.Path)):
            yield from ((parameter, path) for path in self.meta.get(f"kcap.{parameter.name}", ()))

    def _given(self, kind: Any) -> Iterator[tuple[click.Parameter, str]]:
        """The values of the parameters of one type."""
        for parameter in self.command.params:
            value = self.params.get(parameter.name or "")
            if isinstance(parameter.type, kind) and value:
                yield from ((parameter, path) for path in ([value] if isinstance(value, str) else value))


def files_read(paths: Sequence[str], *, tables: bool) -> list[str]:
    """The files of globs and folders; with `tables`, the saved tables too."""
    from kcap.capture.paths import expand

    saved = [str(file) for path in paths if tables and Path(path).is_dir() for file in Path(path).rglob("*.parquet")]
    return [*expand(paths), *saved]
