"""What people read first of the versions report: equal clients on one line, the worst first, and how many are omitted.

In: the report's plain values. Out: rows for tables of any form. Law: counts of the rows and of what is omitted add up to the
report's; rows are combined only if there are too many.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from kcap.reports.versions.pages import span
from kcap.reports.versions.readiness import YES, earlier

Row = dict[str, Any]
APART: Final = 30
"""Number of rows up to which they are not combined."""
CLIENTS_SHOWN: Final = 25
AGAINST_SHOWN: Final = 25
DIAGNOSES_SHOWN: Final = 12
BROKERS_SHOWN: Final = 25
EVERYTHING: Final = 1 << 30


def clients(made: Row, *, every: bool = False, shown: int = CLIENTS_SHOWN) -> tuple[list[Row], int]:
    """Rows of clients that are not brokers, and the number of omitted clients."""
    rows = [row for row in made["clients"] if not row["is_broker"]]
    if every or len(rows) <= APART:
        return [row | {"clients": 1} for row in rows], 0
    found = together(rows, client_kind)
    return found[:shown], sum(row["clients"] for row in found[shown:])


def against(made: Row, *, every: bool = False, shown: int = AGAINST_SHOWN) -> tuple[list[Row], int]:
    """Versions that the release rejects and that clients would or might continue to send; and the number of omitted ones."""
    rows = [row for row in made["readiness"] if row["would_change"] is not True]
    if every or len(rows) <= APART:
        return [row | {"clients": 1} for row in rows], 0
    found = together(rows, lambda row: (row["what"], row["software"], row["api"], row["version"], row["why"]))
    return found[:shown], sum(row["clients"] for row in found[shown:])


def inner(made: Row) -> str:
    """How many clients are brokers themselves, and their client ids; empty if there are none."""
    rows = [row for row in made["clients"] if row["is_broker"]]
    if not rows:
        return ""
    names = ", ".join(dict.fromkeys("-" if row["client_id"] is None else str(row["client_id"]) for row in rows))
    return f"{'1 client is a broker itself' if len(rows) == 1 else f'{len(rows):,} clients are brokers themselves'}: {names}"


def replaced(made: Row) -> str:
    """How many versions clients replace by themselves; empty for none."""
    count = sum(row["would_change"] is True for row in made["readiness"])
    return f"{count:,} more version{'s' if count > 1 else ''} that clients replace by themselves" if count else ""


def client_kind(row: Row) -> Hashable:
    """The values that clients on one line have in common."""
    software = row["software_name"], row["software_version"], row["guessed"], row["principal"] is not None
    apis = tuple((api["api_key"], api["min"], api["max"]) for api in row["apis"])
    return row["works_with_target"], row["works_why"], software, apis if row["works_with_target"] == "no" else ()


def together(rows: list[Row], kind: Callable[[Row], Hashable]) -> list[Row]:
    """Combines equal rows: the first of them, with the sums of all; an address that several of them have counts once."""
    groups: dict[Hashable, Row] = {}
    addresses: dict[Hashable, set[str]] = {}
    for row in rows:
        found = groups.get(kind(row))
        theirs = addresses.setdefault(kind(row), set())
        theirs.update(row["client_ips"])
        if found is None:
            groups[kind(row)] = row | {"clients": 1}
            continue
        found["clients"] += 1
        found["count"] += row["count"]
        found["addresses"] = len(theirs)
        if "connections" in row:
            found["connections"] += row["connections"]
        found["first_ns"], found["last_ns"] = min(found["first_ns"], row["first_ns"]), max(found["last_ns"], row["last_ns"])
    return list(groups.values())


def needs_words(row: Row, target: str) -> bool:
    """Whether a client's verdict is explained below the table: it does not simply work, or its library is not known or not
    listed for the release."""
    newest = row["newest_broker"]
    return row["works_with_target"] != YES or row["software_name"] is None or (newest is not None and earlier(newest, target))


def outcome(row: Row) -> str:
    """The client's prospects on the release, by API: what breaks, which versions change, or that it continues with its
    versions."""
    breaks, open_ = (
        [f"{api['api']} {span(api['min'], api['max'])}" for api in row["apis"] if api["step"] == step]
        for step in ("breaks", "unknown")
    )
    if breaks:
        return f"breaks: {some(breaks)}"
    if open_:
        return f"open: {some(open_)}"
    if row["works_with_target"] == "unknown":
        return str(row["works_why"])
    steps = [
        f"{api['api']} {api['max']} to {api['target_version']}"
        for api in row["apis"]
        if api["step"] in ("up", "down") and api["target_version"] is not None
    ]
    without = [str(api["api"]) for api in row["apis"] if api["step"] == "without"]
    parts = [f"steps: {some(steps)}"] if steps else []
    parts += [f"goes without {some(without)}"] if without else []
    return "; ".join(parts) or "keeps its versions"


def some(texts: list[str], shown: int = 4) -> str:
    return ", ".join(texts[:shown]) + (f" and {len(texts) - shown} more" if len(texts) > shown else "")


def client_text(row: Row) -> str:
    """A client id; for several clients on one line, the first id and the number of others."""
    name = "-" if row["client_id"] is None else str(row["client_id"]) or "''"
    return name + (f" and {row['clients'] - 1:,} more" if row.get("clients", 1) > 1 else "")


def address_text(row: Row) -> str:
    """An address, or the number of addresses."""
    return str(row["client_ip"]) if row["addresses"] == 1 else f"{row['addresses']:,} addresses"
