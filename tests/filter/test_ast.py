"""What can be asked of a tree without evaluating it."""

from kcap.filter.ast import columns_of, is_deep, operands
from kcap.filter.parse import parse


def test_columns_of_a_filter() -> None:
    tree = parse("len(client_id) > 3 and not (ip.addr == ::1 or response_bytes > request_bytes) and client_id")
    assert tree is not None
    assert columns_of(tree) == ("client_id", "client_ip", "server_ip", "response_bytes", "request_bytes")
    assert not is_deep(tree)
    assert len(operands(tree)) == 6


def test_deep_filters() -> None:
    tree = parse("api == Fetch and count(request.topics.partitions.fetch_offset) > 2")
    assert tree is not None
    assert is_deep(tree)
    assert columns_of(tree) == ("api",)
