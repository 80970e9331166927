"""Options that several commands share."""

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kcap.cli.completion_words import columns_of, filter_words, listed
from kcap.cli.places import Reads, Writes
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.jobs.cores import AUTO
from kcap.jobs.cores import processes as processes_for
from kcap.output.formats import FORMATS

if TYPE_CHECKING:
    from kcap.analyzer import Options
    from kcap.filter.ast import Filter
    from kcap.tls.secrets import Secrets

F = TypeVar("F", bound=Callable[..., object])


class FormatName(click.Choice[str]):
    """A format of a command. The default on a terminal is called `text` if it is more than a table; both names are accepted."""

    OTHER: Final = {"table": "text", "text": "table"}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the format. Raises BadParameter for one that the command does not have."""
        other = self.OTHER.get(value)
        return super().convert(other if other in self.choices and value not in self.choices else value, param, ctx)


def filter_of(text: str | None) -> "Filter | None":
    """A display filter as a tree; the parser is loaded only if there is a filter. Raises FilterError."""
    if not text:
        return None
    from kcap.filter.parse import parse

    return parse(text)


DECODE_AS: Final = re.compile(r"tcp\.port\s*==\s*(\d{1,5})(?:([-:])(\d{1,5}))?\s*,\s*kafka")
"""tshark's syntax: one port, a range 9092-9094, or a first port and a count, 9092:3."""
NOT_GIVEN: Final = "no capture given; name a file, or - for standard input"
PORT_LAST: Final = 65535


def ports(command: F) -> F:
    """Adds -d and --not-kafka, which `ports_given` reads."""
    for decorator in (
        click.option(
            "--not-kafka", metavar="PORT", multiple=True, type=click.IntRange(1, PORT_LAST), expose_value=False,
            callback=_remember, help="Do not read connections of this port as Kafka. May repeat.",
        ),
        click.option(
            "-d", "decode_as", metavar="tcp.port==N,kafka", multiple=True, expose_value=False, callback=_remember,
            help="Read connections of this port as Kafka, whatever they look like; N may be a range, 9092-9094 or 9092:3.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


JOBS: Final = "kcap.settings.jobs"
"""Key of `--jobs` among a command's settings."""


def processes(command: F) -> F:
    """Adds --jobs, a setting of the context."""

    def chosen(context: click.Context, _option: click.Parameter, value: int | None) -> None:
        context.meta[JOBS] = AUTO if value is None else value

    return click.option(
        "--jobs", metavar="N", type=click.IntRange(1), expose_value=False, callback=chosen,
        help="Read a capture with N processes: 1, or 2, of which one analyzes packets and one makes rows. More are not used; "
        "one process reads a pipe. Rows are the same. Default: 2 for a large capture if two processors are free.",
    )(command)  # fmt: skip


def jobs_given() -> int:
    """The value of `--jobs`; 1 for commands without it."""
    context = click.get_current_context(silent=True)
    return 1 if context is None else int(context.meta.get(JOBS, 1))


def keys(command: F) -> F:
    """Adds --tls-keylog and --tls-key, which `secrets_given` reads."""
    for decorator in (
        click.option(
            "--tls-key", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False), expose_value=False,
            callback=_remember, help="RSA private key of a broker, for RSA key exchange in TLS 1.2 and earlier. May repeat.",
        ),
        click.option(
            "--tls-keylog", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False), expose_value=False,
            callback=_remember,
            help="Key log with the secrets of TLS sessions (NSS key log format). May repeat. "
            "Default: the file that SSLKEYLOGFILE names.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def inputs(command: F, *, tables: bool = False, jobs: bool = True) -> F:
    """Adds FILE..., -r, -d, --not-kafka, --tls-keylog and --jobs. `tables`: saved tables are accepted too; `jobs`: the command
    benefits from two processes."""
    for decorator in (
        *([processes] if jobs else []),
        keys,
        ports,
        click.option(
            "-r", "more_files", metavar="FILE", multiple=True, type=Reads(tables=tables), expose_value=False,
            callback=_remember, help="Also read this capture, as with tshark. May repeat.",
        ),
        click.argument("files", metavar="FILE...", nargs=-1, type=Reads(tables=tables)),
    ):  # fmt: skip
        command = decorator(command)
    return command


def filters(command: F) -> F:
    """Adds -Y."""
    return click.option(
        "-Y", "--filter", "only", metavar="FILTER", default="", shell_complete=filter_words,
        help='Select the exchanges that pass this display filter: "api == Fetch and latency > 50ms".',
    )(command)  # fmt: skip


CSV_SAFE: Final = "kcap.settings.csv_safe"
"""Key of `--csv-safe` among a command's settings."""


def csv_safety(command: F) -> F:
    """Adds --csv-safe, a setting of the context."""

    def chosen(context: click.Context, _option: click.Parameter, value: bool) -> None:
        context.meta[CSV_SAFE] = value

    return click.option(
        "--csv-safe", is_flag=True, expose_value=False, callback=chosen,
        help="In CSV and TSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    )(command)  # fmt: skip


def csv_is_safe() -> bool:
    """Whether the running command has `--csv-safe`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(CSV_SAFE))


def outputs(command: F) -> F:
    """Adds --format, --columns, -o, --limit and --csv-safe."""
    for decorator in (
        csv_safety,
        click.option("--limit", metavar="N", type=click.IntRange(0), help="Stop after N rows."),
        click.option(
            "-o", "--output", metavar="FILE", type=Writes(),
            help="Write to FILE, which appears when it is complete. The suffix chooses the format: .json .jsonl .csv .tsv "
            "(also .gz .zst after these) .parquet .arrow .feather .arrows .md .html .txt",
        ),
        click.option(
            "--columns", metavar="A,B,...", shell_complete=listed(columns_of),
            help="Show these columns, in this order; +A,B shows all, then these.",
        ),
        click.option(
            "--format", "form", type=FormatName(FORMATS),
            help="Output format. Default: table, or by the suffix of -o. arrow is an Arrow IPC stream, feather an IPC file.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def paths_of(files: Sequence[str]) -> list[str]:
    """The captures to read, with those of `-r`. If two processes will read them, the second one is started here.

    Raises UsageError if there are none.
    """
    paths = [*files, *remembered("more_files")]
    if not paths:
        raise UsageError(NOT_GIVEN)
    if jobs_given() != 1:
        from kcap.capture.paths import expand

        found = expand(paths)
        if processes_for(found, jobs_given()) > 1:
            from kcap.jobs.worker_process import expect

            expect(found)
    return paths


def analyzer_options() -> "Options":
    """The user's settings of ports, secrets and processes.

    Raises UsageError and CaptureError as `kafka_ports` and `secrets_given` do.
    """
    from kcap.analyzer import Options

    ports, others = kafka_ports(*ports_given())
    return Options(ports, others, secrets_given(), jobs=jobs_given())


def kafka_ports(decode_as: Sequence[str], not_kafka: Sequence[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Ports that the user declares to be Kafka's, and ports that are not.

    Raises UsageError for an invalid rule, or one that contradicts another.
    """
    ports: set[int] = set()
    for rule in decode_as:
        match = DECODE_AS.fullmatch(rule.strip())
        first = int(match[1]) if match is not None else 0
        last = first
        if match is not None and match[2] is not None:
            last = int(match[3]) if match[2] == "-" else first + int(match[3]) - 1
        if not 1 <= first <= last <= PORT_LAST:
            raise UsageError(f"-d {rule!r} is not understood; it is written tcp.port==9094,kafka or tcp.port==9092-9094,kafka")
        ports.update(range(first, last + 1))
    both = ports & set(not_kafka)
    if both:
        raise UsageError(f"port {min(both)} is given as Kafka and as not Kafka")
    return frozenset(ports), frozenset(not_kafka)


def _remember(context: click.Context, parameter: click.Parameter, value: tuple[Any, ...]) -> None:
    """Stores the value of an option for `remembered`, so that commands need no parameter for it."""
    context.meta[f"kcap.{parameter.name}"] = value


def remembered(name: str) -> tuple[Any, ...]:
    """The value of such an option for the running command; empty if it was not given."""
    context = click.get_current_context(silent=True)
    return (context.meta.get(f"kcap.{name}") or ()) if context is not None else ()


def ports_given() -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The values of `-d` and `--not-kafka`."""
    return remembered("decode_as"), remembered("not_kafka")


def secret_files() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Key logs and private keys that the user named; if there are none, the key log of the environment, if any."""
    keylogs, keys = remembered("tls_keylog"), remembered("tls_key")
    usual = os.environ.get("SSLKEYLOGFILE", "")
    return (keylogs or (usual,) if keylogs or os.path.isfile(usual) else ()), keys


def secrets_given() -> "Secrets | None":
    """The secrets of `secret_files`; None if there are none.

    Raises CaptureError for a file that cannot be read.
    """
    keylogs, keys = secret_files()
    if not keylogs and not keys:
        return None
    from kcap.cli.standard_streams import say
    from kcap.tls.files import read_secrets

    return read_secrets(keylogs, keys, say)


def column_names(text: str | None, table: str = "exchanges") -> list[str] | None:
    """`a, b` as columns of a table, `+a, b` as columns after all default ones; None if none are given."""
    if text is None:
        return None
    named = text.removeprefix("+")
    first = [] if named == text else [column.name for column in TABLES[table]]
    return first + [column for name in named.split(",") if name.strip() for column in columns_under(name.strip(), table)]


def columns_under(name: str, table: str) -> Sequence[str]:
    """The columns that a heading of the printed table stands for; any other name stands for itself."""
    declared = {column.name for column in TABLES[table]}
    if name in declared:
        return (name,)
    if f"{name}_ns" in declared:
        return (f"{name}_ns",)
    from kcap.output.grid import COMPOSED, DEFAULTS

    shown = DEFAULTS.get(table, ())
    for first, (cell, count, _) in COMPOSED.items():
        if cell.name == name and first in shown:
            return shown[shown.index(first) : shown.index(first) + count]
    return (name,)


TABLE_NAMES: Final = tuple(TABLES)
