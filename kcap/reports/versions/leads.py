"""Display filters for the exchanges that figures of the versions report count.

In: rows of the report. Out: text that `kcap.filter` parses. Law: if the report was made without a filter, the filter selects as
many exchanges as the figure counts.
"""

from collections.abc import Sequence
from typing import Final

from kcap.reports import drill_down
from kcap.reports.definition import Row

NAMED: Final = 40
"""Number of connections that a filter may name."""
HAS_VERSION: Final = "api && api_key"
"""Requests that have a version: known APIs except raw SASL tokens."""


def client_of(row: Row) -> str:
    """Exchanges of a client: by its id if no other client has it, by its connections if they can be named, else by the software
    that it states."""
    who = drill_down.equals("client_id", row["client_id"])
    if not row["shares_id"]:
        return who
    uids = row.get("connection_uids", ())
    if 0 < row.get("connections", 0) <= len(uids):
        return drill_down.every(connections_in(uids), who)
    return drill_down.every(
        who, *(drill_down.equals(name, row[name]) for name in ("software_name", "principal") if named_by(row, name))
    )


def named_by(row: Row, name: str) -> bool:
    """Whether a client states this about itself."""
    return row.get(name) is not None and (name == "principal" or bool(row.get("names_itself")))


def versioned(row: Row) -> str:
    """Requests of a client that its row counts."""
    return drill_down.every(client_of(row), HAS_VERSION)


def of_version(row: Row) -> str:
    """Requests of a client in one version of an API."""
    return drill_down.every(
        client_of(row), drill_down.equals("api", row["api"]), drill_down.equals("api_version", row["version"])
    )


def connections_in(uids: Sequence[str]) -> str:
    """Exchanges of some connections."""
    return (
        f"connection in {{{', '.join(map(drill_down.quoted, uids[:NAMED]))}}}"
        if len(uids) > 1
        else drill_down.equals("connection", uids[0])
    )


def at_broker(row: Row) -> str:
    """Exchanges with a broker's address."""
    return drill_down.every(
        drill_down.equals("server_ip", row["server_ip"]), drill_down.equals("server_port", row["server_port"])
    )
