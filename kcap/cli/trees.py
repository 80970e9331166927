"""Trees and bytes as lines of text.

In: nodes. Out: lines. Law: each line shows where its bytes are; secrets are masked unless they are requested, both in words and
in bytes; control characters become visible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kcap.decode.nodes import UNDECODED, Node
from kcap.decode.secrets import Path, is_secret_node, step
from kcap.limits import WORDS_MAX
from kcap.output.escaping import visible
from kcap.wire.text import MASKED

ELLIPSIS: Final = "…"
ROW_BYTES: Final = 16
PAYLOADS: Final = frozenset({"key", "value", "headerValue"})
"""Nodes of records with the application's data."""


@dataclass(frozen=True, slots=True)
class TreeStyle:
    message: str | None = None
    """Schema name, which decides what is secret."""
    shift: int = 0
    """Number of bytes before the frame, from which offsets count."""
    show_secrets: bool = False
    payloads: bool = True
    """Whether keys and values of records are shown; otherwise only their size."""
    bytes: int = 8
    """Number of bytes of each leaf that are shown beside it; 0 shows only offsets."""


def clean(text: str) -> str:
    """Text without control characters, limited in length."""
    if len(text) > WORDS_MAX:
        text = text[:WORDS_MAX] + ELLIPSIS
    return visible(text)


def length_line(size: int, look: TreeStyle) -> str:
    """The four bytes before a frame of `size` bytes."""
    shown = f"{(size & 0xFFFFFFFF).to_bytes(4, 'big').hex(' '):<{3 * look.bytes}}  " if look.bytes else ""
    return f"{0:>6} {4:>6}  {shown}Length: {size}"


def tree_lines(root: Node, look: TreeStyle, name: str | None = None) -> list[str]:
    """The tree, one node per line: offset, size, bytes, and the node with its meaning, indented."""
    title = name or root.name
    lines = [_line(root, title, root.words, 0, look, leaf=False, hidden=True)]
    lines += _below(root, (), 1, look, in_records=False)
    return lines


def _below(parent: Node, path: Path, depth: int, look: TreeStyle, *, in_records: bool) -> Iterator[str]:
    for node in parent.children:
        inner = () if depth == 1 else step(path, node)
        secret = not look.show_secrets and is_secret_node(look.message, inner, node, parent.children)
        veiled = not look.payloads and _is_payload(node, in_records)
        children = () if secret else node.children
        words = f"{MASKED}, {node.end - node.start} bytes" if secret else node.words
        if veiled and node.name != UNDECODED:
            words = f"{len(node.value)} bytes"
        if not words and node.value == "":
            words = '""'
        yield _line(node, node.name, words, depth, look, leaf=not children, hidden=secret or veiled)
        if children:
            batches = in_records or (node.name.endswith("Records") and isinstance(node.value, bytes))
            yield from _below(node, inner, depth + 1, look, in_records=batches)


def _is_payload(node: Node, in_records: bool) -> bool:
    """Whether the node has, or may have, the application's data."""
    if node.name == UNDECODED:
        return True
    return in_records and node.name in PAYLOADS and isinstance(node.value, bytes) and not node.children


def _line(node: Node, name: str, words: str, depth: int, look: TreeStyle, *, leaf: bool, hidden: bool) -> str:
    where = f"{node.start + look.shift}" if node.buffer == 0 else f"{node.buffers.entries[node.buffer].how}:{node.start}"
    size = node.end - node.start
    text = "  " * depth + name + (f": {clean(words)}" if words else "")
    if not look.bytes:
        return f"{where:>6} {size:>6}  {text}"
    shown = ""
    if leaf and not hidden:
        shown = node.data[: look.bytes].hex(" ") + (ELLIPSIS if size > look.bytes else "")
    return f"{where:>6} {size:>6}  {shown:<{3 * look.bytes}}  {text}".rstrip()


def hex_lines(data: bytes, hidden: Sequence[tuple[int, int]] = ()) -> list[str]:
    """A hex dump, sixteen bytes per line; bytes in hidden spans are `**`."""
    veil = bytearray(len(data))
    for start, end in hidden:
        veil[start:end] = b"\x01" * (min(end, len(data)) - start)
    lines = []
    for at in range(0, len(data), ROW_BYTES):
        row, over = data[at : at + ROW_BYTES], veil[at : at + ROW_BYTES]
        pairs = ["**" if cover else f"{byte:02x}" for byte, cover in zip(row, over, strict=True)]
        text = "".join("*" if c else chr(b) if 32 <= b < 127 else "." for b, c in zip(row, over, strict=True))
        lines.append(f"{at:06x}  {' '.join(pairs[:8]):<23}  {' '.join(pairs[8:]):<23}  {text}")
    return lines


def beside(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two columns in `width` characters; each line is cut to its half."""
    half = (width - 3) // 2
    lines = []
    for at in range(max(len(left), len(right))):
        a = left[at] if at < len(left) else ""
        b = right[at] if at < len(right) else ""
        lines.append(f"{cut(a, half):<{half}} | {cut(b, half)}".rstrip())
    return lines


def cut(text: str, width: int) -> str:
    """The text, cut to a number of characters."""
    return text if len(text) <= width else text[: width - 1] + ELLIPSIS
