"""The laws of trees as functions."""

from collections.abc import Iterator
from itertools import pairwise

from kcap.decode.nodes import UNDECODED, Node


def check(node: Node) -> int:
    """Asserts that children tile their parents all the way down; returns how many nodes there are."""
    children = node.children
    count = 1
    if children and all(child.buffer != node.buffer for child in children):
        (only,) = children
        assert (only.start, only.end) == (0, len(only.buffers[only.buffer]))
        parent = only.buffers.entries[only.buffer]
        assert parent.parent == node.buffer
        assert node.start <= parent.start <= parent.end <= node.end
    elif children:
        assert {child.buffer for child in children} == {node.buffer}
        assert (children[0].start, children[-1].end) == (node.start, node.end), node
        for a, b in pairwise(children):
            assert a.end == b.start, (a, b)
    for child in children:
        assert 0 <= child.start <= child.end <= len(child.data) + child.start
        count += check(child)
    return count


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents first."""
    yield node
    for child in node.children:
        yield from walk(child)


def undecoded(node: Node) -> list[Node]:
    """The nodes that hold what could not be read."""
    return [inner for inner in walk(node) if inner.name == UNDECODED]
