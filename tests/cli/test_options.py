"""Laws of shared options: what is understood, and what is refused with a reason."""

import click
import pytest

from kcap.cli.commands import COMMANDS
from kcap.cli.main import kcap
from kcap.cli.options import JOBS, analyzer_options, column_names, kafka_ports, paths_of
from kcap.columns import TABLES
from kcap.errors import UsageError


def rows(*words: str) -> click.Context:
    """The context of `kcap rows` with these words."""
    command = kcap.get_command(click.Context(kcap), "rows")
    assert command is not None
    return command.make_context("rows", [*words])


def test_ports_and_files_of_the_command_line() -> None:
    with rows("a", "-d", "tcp.port==9094,kafka", "-d", "tcp.port == 1 , kafka", "--not-kafka", "22", "-r", "b", "--jobs", "1"):
        options = analyzer_options()
        assert (options.kafka_ports, options.not_kafka_ports) == ({9094, 1}, {22})
        assert paths_of(["a"]) == ["a", "b"]


@pytest.mark.parametrize(
    "rule", ["9094", "udp.port==9,kafka", "tcp.port==70000,kafka", "tcp.port==0,kafka", "tcp.port==9,http", ""]
)
def test_rules_that_are_not_understood(rule: str) -> None:
    with pytest.raises(UsageError, match="is not understood"):
        kafka_ports([rule], [])


def test_the_format_of_a_terminal_has_two_names_in_every_command() -> None:
    reports = 0
    for name in COMMANDS:
        command = kcap.get_command(click.Context(kcap), name)
        form = next((option for option in command.params if option.name == "form" and "--format" in option.opts), None)
        if form is None or "json" not in form.type.choices:  # captures have formats of their own
            continue
        reports += 1
        plain = next(iter(form.type.choices))
        assert form.type.convert("text", form, None) == form.type.convert("table", form, None) == plain in ("text", "table")
        with pytest.raises(click.BadParameter, match="'xlsx' is not one of"):
            form.type.convert("xlsx", form, None)
    assert reports > 10, COMMANDS


def test_paths_and_columns() -> None:
    assert paths_of(["a"]) == ["a"]
    with pytest.raises(UsageError):
        paths_of([])
    assert column_names(None) is None
    assert column_names(" a, b,,") == ["a", "b"]
    assert column_names("") == []
    assert column_names("+plain_bytes", "partitions") == [*(column.name for column in TABLES["partitions"]), "plain_bytes"]


def test_a_range_of_ports_is_kafka() -> None:
    for rule in ("tcp.port==9092-9094,kafka", "tcp.port==9092:3,kafka"):
        assert kafka_ports([rule], [])[0] == {9092, 9093, 9094}
    for rule in ("tcp.port==9094-9092,kafka", "tcp.port==9092:0,kafka", "tcp.port==65530-65536,kafka", "tcp.port==0-5,kafka"):
        with pytest.raises(UsageError, match="is not understood"):
            kafka_ports([rule], [])


def test_heads_of_the_printed_table_name_columns() -> None:
    assert column_names("client, latency,result,topics") == [
        "client_ip", "client_port", "latency_ns", "outcome", "reason", "error", "topics",
    ]  # fmt: skip
    assert column_names("topics,nothing", "partitions") == ["topics", "nothing"]
    assert column_names("client,rtt_min", "connections") == ["client_ip", "client_port", "rtt_min_ns"]


@pytest.mark.parametrize(("words", "jobs"), [(["--jobs", "1"], 1), (["--jobs", "3"], 3), ([], 0)])
def test_the_number_of_processes_is_a_setting_of_the_analyzer(words: list[str], jobs: int) -> None:
    """Zero stands for as many as pay."""
    with rows("nothing.pcap", *words):
        assert analyzer_options().jobs == jobs


def test_commands_that_make_rows_of_captures_take_a_number_of_processes() -> None:
    """A command has the option where a second process has something to do, and then it counts."""
    with_jobs = {
        name for name, entry in COMMANDS.items() if any("--jobs" in one.opts for one in entry.load().params)
    }  # fmt: skip
    assert with_jobs == {
        "rows", "connections", "stats", "latency", "slow", "throttle", "errors", "topics", "clients", "versions", "health",
        "check", "groups", "transactions", "diff", "sql", "cut",
    }  # fmt: skip
    with click.Context(kcap) as context:
        assert JOBS not in context.meta
        assert analyzer_options().jobs == 1
