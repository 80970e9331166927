"""A tree as lines."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.decode.nodes import Buffers, Node
from kcap.tui.tree_lines import CAP, Item, Outline


def item(name: str, *children: Item, many: int = 0) -> Item:
    made = [*children, *(Item([(f"{name}{at}", "")], f"{name}{at}") for at in range(many))]
    return Item([(name, "")], name, (lambda: made) if made else None)


def names(outline: Outline) -> list[str]:
    return ["  " * line.depth + line.line[0][0] for line in outline.lines]


def tree() -> list[Item]:
    return [item("a", item("b", item("c")), item("d")), item("e", many=3)]


def test_opening_and_closing() -> None:
    outline = Outline()
    outline.show(tree())
    assert names(outline) == ["a", "e"]
    outline.right()
    assert names(outline) == ["a", "  b", "  d", "e"]
    outline.right()
    assert outline.cursor == 1
    outline.set_all(0, wanted=True)
    assert names(outline) == ["a", "  b", "    c", "  d", "e"]
    outline.cursor = 2
    outline.left()
    assert outline.cursor == 1
    outline.left()
    outline.left()
    outline.left()
    assert names(outline) == ["a", "e"]


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["toggle", "all", "none", "left", "right"])), max_size=15))
def test_lines_are_a_walk_through_what_is_open(steps: list[tuple[int, str]]) -> None:
    """Law: whatever was pressed, the lines are those of the open items, in depth-first order."""
    outline = Outline()
    outline.show(tree())
    for at, what in steps:
        outline.cursor = at % len(outline.lines)
        if what == "toggle":
            outline.toggle(outline.cursor)
        elif what in ("all", "none"):
            outline.set_all(outline.cursor, wanted=what == "all")
        else:
            getattr(outline, what)()

    def walk(items: list[Item], depth: int) -> list[str]:
        out = []
        for one in items:
            out.append("  " * depth + one.name)
            if one.open and one.make is not None:
                out += walk(list(one.make()), depth + 1)
        return out

    assert names(outline) == walk(outline.roots, 0)
    assert 0 <= outline.cursor < len(outline.lines)


def test_long_lists_come_in_parts() -> None:
    outline = Outline()
    outline.show([item("x", many=2 * CAP + 7)])
    outline.right()
    assert len(outline.lines) == 1 + CAP + 1
    assert outline.lines[-1].line[0][0] == f"… {CAP + 7:,} more"
    for _ in range(2):
        outline.cursor = len(outline.lines) - 1
        outline.right()
    assert names(outline) == ["x", *(f"  x{at}" for at in range(2 * CAP + 7))]


def test_what_was_open_is_open_in_the_next_tree() -> None:
    outline = Outline()
    outline.show(tree())
    outline.set_all(0, wanted=True)
    before, opened = names(outline), outline.opened()
    outline.reopen(tree(), opened)
    assert names(outline) == before


def nodes(buffers: Buffers, start: int, end: int, side: str) -> Item:
    """Halves of halves."""
    node = Node(f"{start}-{end}", None, "", buffers, 0, start, end)
    half = (start + end) // 2
    make = (lambda: [nodes(buffers, start, half, side), nodes(buffers, half, end, side)]) if end - start > 1 else None
    return Item([(node.name, "")], node.name, make, side=side, node=node)


@given(offset=st.integers(0, 63), side=st.sampled_from(["request", "response"]))
def test_a_byte_finds_its_line(offset: int, side: str) -> None:
    buffers, outline = Buffers(bytes(64)), Outline()
    outline.show([nodes(buffers, 0, 64, "request"), nodes(buffers, 0, 64, "response")])
    assert outline.find(side, 0, offset)
    found = outline.current
    assert found is not None
    assert found.node is not None
    assert (found.side, found.node.start, found.node.end) == (side, offset, offset + 1)
    assert not outline.find("none", 0, offset)


def test_a_byte_far_in_a_long_list_is_found() -> None:
    buffers, outline = Buffers(bytes(3 * CAP)), Outline()
    root = Node("root", None, "", buffers, 0, 0, 3 * CAP)
    places = range(3 * CAP)
    entries = [Item([], str(at), side="request", node=Node(str(at), at, "", buffers, 0, at, at + 1)) for at in places]
    outline.show([Item([("root", "")], "root", lambda: entries, side="request", node=root)])
    assert outline.find("request", 0, 3 * CAP - 1)
    assert outline.current is entries[-1]
