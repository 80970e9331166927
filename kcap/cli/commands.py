"""Every command: its name, its module and its line in the help. `kcap --help` loads no command."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import click


class Entry(NamedTuple):
    """A command; `attribute` of the module is the click command."""

    module: str
    summary: str
    attribute: str = "run"

    def load(self) -> "click.Command":
        command: click.Command = getattr(import_module(self.module), self.attribute)
        return command


REPORTS: Final = "kcap.cli.reports"
COMMANDS: Final = {
    "browse": Entry(
        "kcap.cli.tui", "Browse captures on the screen: exchanges, details, bytes, reports. kcap FILE... does too."
    ),
    "web": Entry("kcap.cli.web", "The screen of browse in a browser: on 127.0.0.1, by an address that works once."),
    "rows": Entry("kcap.cli.rows", "One row an exchange: request, response, latency and its parts, errors, topics."),
    "live": Entry("kcap.cli.live", "Rows of what passes an interface, as it passes; a ring of files beside it."),
    "show": Entry("kcap.cli.show", "One exchange, every byte of it: messages in words, where the time went, a hex dump."),
    "decode": Entry("kcap.cli.decode", "Bytes to meaning, without a capture: requests, responses, record batches."),
    "schema": Entry("kcap.cli.schema", "Kafka's messages: APIs, versions, what each version changed, fields."),
    "connections": Entry("kcap.cli.connections", "One row a TCP connection, and where each of its bytes went."),
    "sql": Entry("kcap.cli.sql", "SQL over the tables of captures, or over saved ones."),
    "check": Entry("kcap.cli.check", "What is wrong here: findings, whom they concern, since when, how sure, what to do."),
    "groups": Entry("kcap.cli.groups", "Consumer groups over time: members, rebalances with their cause, commits."),
    "transactions": Entry(
        "kcap.cli.transactions", "Transactions: what each wrote, how long it stayed open, how it ended; fences."
    ),
    "diff": Entry("kcap.cli.diff", "What changed between two captures, with a test for each measured difference."),
    "health": Entry("kcap.cli.health", "How far the capture can be trusted: holes, drops, cuts, oddities."),
    "stats": Entry(
        REPORTS, "A digest: which requests take the time, with health, totals and the slowest of each class.", "stats"
    ),
    "latency": Entry(
        REPORTS, "Latency percentiles by API, client, broker, topic, time; what dominates; long polls apart.", "latency"
    ),
    "slow": Entry(REPORTS, "The slowest exchanges, and why each of them was slow.", "slow"),
    "throttle": Entry(REPORTS, "Which clients were throttled, for how long, and whether they complied.", "throttle"),
    "errors": Entry(
        REPORTS, "Errors by code, API and client; of partitions; retries, and how leadership errors ended.", "errors"
    ),
    "topics": Entry(REPORTS, "Which clients write and read which topic: records, bytes, batches, formats, lag.", "topics"),
    "clients": Entry(REPORTS, "Who the clients are: software, users, groups, what they request, write and read.", "clients"),
    "versions": Entry("kcap.cli.versions", "Version negotiation: clients, brokers, upgrade readiness, diagnoses."),
    "cut": Entry("kcap.cli.cut", "The packets of the exchanges that a filter selects, as a capture for Wireshark."),
    "split": Entry("kcap.cli.split", "One capture as several files, by connections or by time."),
    "merge": Entry("kcap.cli.merge", "Several captures as one file, in time order."),
    "completion": Entry("kcap.cli.completion", "What bash, zsh or fish reads to complete kcap's words."),
}
"""In the order of the help."""
