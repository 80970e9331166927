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
        "kcap.cli.tui", "Browse captures in the terminal UI: exchanges, details, bytes, reports. So does kcap FILE..."
    ),
    "web": Entry("kcap.cli.web", "Open the terminal UI in a browser, on 127.0.0.1 unless --host names another address."),
    "rows": Entry("kcap.cli.rows", "Show one row per exchange: request, response, latency and its parts, errors, topics."),
    "live": Entry("kcap.cli.live", "Show rows of the traffic on an interface, or its findings; save its packets to a ring."),
    "show": Entry("kcap.cli.show", "Show one exchange: both messages field by field, where the time went, a hex dump."),
    "decode": Entry("kcap.cli.decode", "Decode bytes without a capture: requests, responses, record batches."),
    "schema": Entry("kcap.cli.schema", "Show Kafka's messages: APIs, versions, what each version changed, fields."),
    "connections": Entry("kcap.cli.connections", "Show one row per TCP connection, with an account of each of its bytes."),
    "sql": Entry("kcap.cli.sql", "Query the tables of captures, or saved tables, with SQL."),
    "check": Entry("kcap.cli.check", "Report what is wrong: clients and brokers, since when, evidence, confidence, next step."),
    "groups": Entry("kcap.cli.groups", "Show consumer groups over time: members, rebalances with their cause, commits."),
    "transactions": Entry(
        "kcap.cli.transactions", "Show transactions: what each wrote, how long it stayed open, how it ended; fences."
    ),
    "diff": Entry("kcap.cli.diff", "Show what changed between two captures, with a test for each measured difference."),
    "health": Entry("kcap.cli.health", "Show how far the capture can be trusted: holes, drops, cuts, oddities."),
    "stats": Entry(REPORTS, "Show which requests take the time, with health, totals and the slowest of each class.", "stats"),
    "latency": Entry(REPORTS, "Show latency percentiles by API, client, broker, topic or time, without long polls.", "latency"),
    "slow": Entry(REPORTS, "Show the slowest exchanges, and why each of them was slow.", "slow"),
    "throttle": Entry(REPORTS, "Show which clients were throttled, for how long, and whether they complied.", "throttle"),
    "errors": Entry(REPORTS, "Show errors by code, API, client or partition; retries; how leadership errors ended.", "errors"),
    "topics": Entry(REPORTS, "Show which clients write and read which topic: records, bytes, batches, formats, lag.", "topics"),
    "clients": Entry(REPORTS, "Show the clients: software, users, groups, what they request, write and read.", "clients"),
    "versions": Entry("kcap.cli.versions", "Show version negotiation: clients, brokers, upgrade readiness, diagnoses."),
    "cut": Entry("kcap.cli.cut", "Save the packets of the exchanges that a filter selects, for Wireshark."),
    "split": Entry("kcap.cli.split", "Divide one capture into several files, by connections or by time."),
    "merge": Entry("kcap.cli.merge", "Combine several captures into one file, in time order."),
    "completion": Entry("kcap.cli.completion", "Print the completion script for bash, zsh or fish."),
}
"""Commands in the order of the help."""
