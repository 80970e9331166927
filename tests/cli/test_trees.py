"""Laws of trees as text: every byte has its line, secrets and payloads only where they are asked for."""

import kcap
from kcap.cli.trees import TreeStyle, beside, clean, cut, hex_lines, tree_lines
from kcap.decode.nodes import Node
from tests.decode.test_secrets import SASL
from tests.records.batches import batch, record

FETCH = bytes(4 + 4) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4 + 2 + 8) + b"\xff" * 8 + b"\xff" * 4


def leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in leaves(child)] if node.children else [node]


def test_every_byte_is_in_a_line() -> None:
    message = kcap.decode_request(bytes.fromhex("0003 0001 00000001 0004 74657374 00000001 0005 7465737431"))
    lines = tree_lines(message.tree(), TreeStyle(message.name))
    assert lines[-1] == "    18      7  00 05 74 65 73 74 31              Name: test1"
    assert sum(leaf.end - leaf.start for leaf in leaves(message.tree())) == 25
    assert len(lines) == len(message.frame) - 14


def test_secrets_are_masked_unless_asked_for() -> None:
    message = kcap.decode_request(SASL)
    assert tree_lines(message.tree(), TreeStyle(message.name))[-1].endswith("password: (masked), 11 bytes")
    shown = tree_lines(message.tree(), TreeStyle(message.name, show_secrets=True))[-1]
    assert "masked" not in shown
    assert shown.partition("password: ")[2].encode().hex(" ")[:20] in shown


def test_payloads_are_sizes_where_they_are_not_asked_for() -> None:
    blob = batch(record(0, b"the key", b"the value"))
    frame = FETCH + len(blob).to_bytes(4, "big") + blob
    message = kcap.decode_response(frame, 1, 4)
    assert message.undecoded is None
    reported, kept = (tree_lines(message.tree(), TreeStyle(message.name, payloads=given)) for given in (True, False))
    assert any(line.endswith("value: the value") for line in reported)
    assert any(line.endswith("value: 9 bytes") for line in kept)
    assert not any(b"the".hex(" ") in line or "the value" in line for line in kept)


def test_a_terminal_is_told_nothing_to_obey() -> None:
    assert clean("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    assert len(clean("x" * 5000)) < 500


def test_hex_dumps_hide_spans() -> None:
    lines = hex_lines(b"0123456789abcdefXYZ", [(1, 3), (18, 40)])
    assert lines == [
        "000000  30 ** ** 33 34 35 36 37  38 39 61 62 63 64 65 66  0**3456789abcdef",
        "000010  58 59 **                                          XY*",
    ]


def test_two_columns_share_the_width() -> None:
    lines = beside(["left", "x" * 50], ["right"], 43)
    assert lines == ["left                 | right", "x" * 19 + "… |"]
    assert cut("abcdef", 4) == "abc…"
