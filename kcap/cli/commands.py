"""Every command: its name, its module and its line in the help. Pure data: `kcap --help` loads no command."""

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A command; the module's `run` is the click command."""

    module: str
    summary: str


COMMANDS: Final = {
    "rows": Entry("kcap.cli.rows", "One row an exchange: request, response, latency and its parts, errors, topics."),
    "show": Entry("kcap.cli.show", "One exchange, every byte of it: messages in words, where the time went, a hex dump."),
    "decode": Entry("kcap.cli.decode", "Bytes to meaning, without a capture: requests, responses, record batches."),
    "schema": Entry("kcap.cli.schema", "Kafka's messages: APIs, versions, what each version changed, fields."),
    "connections": Entry("kcap.cli.connections", "One row a TCP connection, and where each of its bytes went."),
    "health": Entry("kcap.cli.health", "How far the capture can be trusted: holes, drops, cuts, oddities."),
}
"""In the order of the help."""
