"""Texts and figures of the versions report that its output forms share.

In: rows of the report's plain values. Out: texts of cells. Law: a value reads the same on the terminal, on a page and in the
terminal UI.
"""

from collections.abc import Sequence
from typing import Any, Final

from kcap.output.grid import clean

Row = dict[str, Any]
APIS_SHOWN: Final = 4
"""Number of a client's APIs to show on its line."""
VERDICT_WORDS: Final = {"yes": "works", "no": "breaks", "unknown": "unknown"}
WHAT: Final = {"removed": "removed", "not_yet": "not there yet", "unstable": "not final", "deprecated": "deprecated"}


def span(low: int, high: int) -> str:
    """`3-9`, `3`."""
    return str(low) if low == high else f"{low}-{high}"


def software(row: Row) -> str:
    """A client's library; a guess is marked."""
    name = " ".join(filter(None, (row["software_name"], row["software_version"])))
    return (f"{name} (guess)" if row["guessed"] else name) or "unknown"


def releases(row: Row) -> str:
    """A broker's releases."""
    if row["release_min"] is None:
        return f"none fits, near {row['nearest']}"
    return (
        str(row["release_min"]) if row["release_min"] == row["release_max"] else f"{row['release_min']} - {row['release_max']}"
    )


def apis(row: Row) -> str:
    """The APIs of a client; removed ones are marked."""
    return ", ".join(
        f"{api['api']} {span(api['min'], api['max'])}" + (f" (gone in {api['removed_in']})" if api["removed_in"] else "")
        for api in row["apis"]
    )


def summary(made: Row) -> str:
    """The first sentence of the summary: how many clients there are, and how many break."""
    return str(made["answer"][0])


def brokers_of(row: Row) -> str:
    """The oldest and the newest broker that the client's library works with."""
    oldest, newest = row["oldest_broker"], row["newest_broker"]
    return f"{oldest or 'not known'} to {newest}" if newest else "-"


def features(row: Row) -> str:
    """A broker's finalized features, with the names of their levels."""
    return ", ".join(map(clean, row["finalized"])) or "-"


def worst_apis(row: Row) -> str:
    """The APIs of a client that deserve attention: removed ones first, then those with a verdict, then the busiest."""
    some = sorted(row["apis"], key=lambda a: (not a["removed_in"], set(a["verdicts"]) <= {"ok"}, -a["count"]))[:APIS_SHOWN]
    text = " ".join(f"{a['api']} {span(a['min'], a['max'])}" + ("!" if a["removed_in"] else "") for a in some)
    return text + (" ..." if len(row["apis"]) > APIS_SHOWN else "")


def removed(row: Row) -> str:
    """The first release that removes something that the client uses."""
    some = [a["removed_in"] for a in row["apis"] if a["removed_in"]]
    return min(some, key=lambda text: [int(part) for part in text.split(".")]) if some else ""


def verdicts(row: Row) -> str:
    """Verdicts other than ok, with their counts."""
    total: dict[str, int] = {}
    for api in row["apis"]:
        for name, count in api["verdicts"].items():
            total[name] = total.get(name, 0) + count
    return " ".join(f"{name}:{count:,}" for name, count in total.items() if name != "ok") or ("ok" if total else "-")


def matrix(brokers: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    names: dict[int, str] = {api["api_key"]: api["api"] or str(api["api_key"]) for row in brokers for api in row["apis"]}
    ranges = [{api["api_key"]: span(api["min"], api["max"]) for api in row["apis"]} for row in brokers]
    heads = ["API", *(f"{row['server_ip']}:{row['server_port']}" for row in brokers)]
    return heads, [[names[key], *(one.get(key, "-") for one in ranges)] for key in sorted(names)]
