"""Options that several commands share, and what they mean."""

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from kcap.analyzer import Options
from kcap.cli.completion_words import columns_of, filter_words, listed
from kcap.cli.places import Reads, Writes
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.output.formats import FORMATS

if TYPE_CHECKING:
    from kcap.tls.secrets import Secrets

F = TypeVar("F", bound=Callable[..., object])

DECODE_AS: Final = re.compile(r"tcp\.port\s*==\s*(\d{1,5})\s*,\s*kafka")
PORT_LAST: Final = 65535


def ports(command: F) -> F:
    """-d, --not-kafka."""
    for decorator in (
        click.option(
            "--not-kafka", metavar="PORT", multiple=True, type=click.IntRange(1, PORT_LAST),
            help="Connections of this port are no Kafka.",
        ),
        click.option(
            "-d", "decode_as", metavar="tcp.port==N,kafka", multiple=True,
            help="Connections of this port are Kafka, whatever they look like.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def inputs(command: F, *, tables: bool = False) -> F:
    """FILE..., -r, -d, --not-kafka, --tls-keylog. `tables`: saved tables are read too."""
    for decorator in (
        click.option(
            "--tls-key", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False), expose_value=False,
            callback=_remember, help="RSA private key of a broker, for TLS 1.2 with RSA key exchange. May repeat.",
        ),
        click.option(
            "--tls-keylog", metavar="FILE", multiple=True, type=click.Path(exists=True, dir_okay=False), expose_value=False,
            callback=_remember,
            help="Secrets of TLS sessions, as clients and brokers write them (NSS key log). May repeat. "
            "Default: the file that SSLKEYLOGFILE names.",
        ),
        ports,
        click.option(
            "-r", "more_files", metavar="FILE", multiple=True, type=Reads(tables=tables),
            help="Another capture, as tshark users type it.",
        ),
        click.argument("files", metavar="FILE...", nargs=-1, type=Reads(tables=tables)),
    ):  # fmt: skip
        command = decorator(command)
    return command


def filters(command: F) -> F:
    """-Y."""
    return click.option(
        "-Y", "--filter", "only", metavar="FILTER", default="", shell_complete=filter_words,
        help='Only exchanges that this display filter lets pass: "api == Fetch and latency > 50ms".',
    )(command)  # fmt: skip


def outputs(command: F) -> F:
    """--format, --columns, -o, --limit."""
    for decorator in (
        click.option("--limit", metavar="N", type=click.IntRange(0), help="Stop after N rows."),
        click.option(
            "-o", "--output", metavar="FILE", type=Writes(),
            help="Write there; the file appears when it is complete. The name says the format: .json .jsonl .csv .tsv "
            "(also .gz .zst after these) .parquet .arrow .feather .arrows .md .html .txt",
        ),
        click.option(
            "--columns", metavar="A,B,...", shell_complete=listed(columns_of), help="These columns, in this order."
        ),
        click.option(
            "--format", "form", type=click.Choice(FORMATS),
            help="How rows are written. Default: table, or what the name of -o says. arrow is an IPC stream, feather a file.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def paths_of(files: Sequence[str], more_files: Sequence[str]) -> list[str]:
    """The captures to read.

    Raises UsageError when there are none.
    """
    paths = [*files, *more_files]
    if not paths:
        raise UsageError("no capture given; name a file, or - for standard input")
    return paths


def analyzer_options(decode_as: Sequence[str], not_kafka: Sequence[int]) -> Options:
    """The user's word on ports.

    Raises UsageError for a rule that is not understood, or that contradicts another.
    """
    ports = set()
    for rule in decode_as:
        match = DECODE_AS.fullmatch(rule.strip())
        if match is None or not 1 <= int(match[1]) <= PORT_LAST:
            raise UsageError(f"-d {rule!r} is not understood; it is written tcp.port==9094,kafka")
        ports.add(int(match[1]))
    both = ports & set(not_kafka)
    if both:
        raise UsageError(f"port {min(both)} is given as Kafka and as not Kafka")
    return Options(frozenset(ports), frozenset(not_kafka), secrets_given())


def _remember(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    """Keeps the files with secrets for `secrets_given`: every command that reads captures takes them, none looks at them."""
    context.meta[f"kcap.{parameter.name}"] = value


def secret_files() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Key logs and private keys that the user named; without any, the key log of the environment, where there is one."""
    context = click.get_current_context(silent=True)
    keylogs, keys = ((context.meta.get(f"kcap.{name}") or () if context else ()) for name in ("tls_keylog", "tls_key"))
    usual = os.environ.get("SSLKEYLOGFILE", "")
    return (keylogs or (usual,) if keylogs or os.path.isfile(usual) else ()), keys


def secrets_given() -> "Secrets | None":
    """The secrets of `secret_files`; None where there are none.

    Raises CaptureError for a file that does not read.
    """
    keylogs, keys = secret_files()
    if not keylogs and not keys:
        return None
    from kcap.cli.main import say
    from kcap.tls.files import read_secrets

    return read_secrets(keylogs, keys, say)


def column_names(text: str | None) -> list[str] | None:
    """`a, b` as names, None for none given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


TABLE_NAMES: Final = tuple(TABLES)
