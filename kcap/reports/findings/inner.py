"""What brokers and controllers send each other, apart from what clients send.

In: exchanges, and their classes. Out: conditions and tables by which rules leave them out. Law: a client id that anybody may
have is evidence together with what was sent under it alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kcap.reports.definition import CALLED, NODE, REQUESTS_OF_BROKERS, calls_node, of_brokers, shows_node

OF_CLUSTER: Final = "of_cluster"
"""A column of the tables of a capture: what `of_cluster` gives. Testing each row in each query takes a quarter of the time."""

CALLS: Final = (*NODE, *CALLED)
"""A node that calls another one."""


def of_cluster(table: Any) -> Any:
    """Which exchanges are those of brokers and controllers."""
    return of_brokers(table) | table.api.fill_null("").isin(REQUESTS_OF_BROKERS)


def numbered_nodes(calls: Iterable[Mapping[str, Any]], table: Any) -> Any:
    """Brokers and controllers whose client ids alone do not show that (`shows_node`), with the nodes that they call, as a table
    of `CALLS`; None where no class of exchanges is of one. `calls`: the classes of the exchanges of `table`.
    """
    own = (call for call in calls if call["api"] in REQUESTS_OF_BROKERS and call["error"] == "NONE")
    if not any((call["client_id"] or "").isdecimal() for call in own):
        return None
    called = table.filter(calls_node(table)).select(*CALLED).distinct()
    nodes = table.filter(shows_node(table)).select(*NODE).distinct()
    pairs = table.select(*CALLS).distinct()
    return pairs.semi_join(nodes, list(NODE)).semi_join(called, list(CALLED))
