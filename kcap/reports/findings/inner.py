"""What brokers and controllers send each other, apart from what clients send.

In: exchanges, and their classes. Out: conditions and tables by which rules leave them out. Law: a client id that anybody may
have is evidence together with what was sent under it alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kcap.reports.definition import NODE, REQUESTS_OF_BROKERS, of_brokers, shows_node

OF_CLUSTER: Final = "of_cluster"
"""A column of the tables of a capture: what `of_cluster` gives. Testing each row in each query takes a quarter of the time."""


def of_cluster(table: Any) -> Any:
    """Which exchanges are those of brokers and controllers."""
    return of_brokers(table) | table.api.fill_null("").isin(REQUESTS_OF_BROKERS)


def numbered_nodes(calls: Iterable[Mapping[str, Any]], table: Any) -> Any:
    """Brokers and controllers whose client ids alone do not show that (`shows_node`), as a table of `NODE`; None where no class
    of exchanges is of one. `calls`: the classes of the exchanges of `table`.
    """
    own = (call for call in calls if call["api"] in REQUESTS_OF_BROKERS and call["error"] == "NONE")
    if not any((call["client_id"] or "").isdecimal() for call in own):
        return None
    return table.filter(shows_node(table)).select(*NODE).distinct()
