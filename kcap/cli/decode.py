"""`kcap decode`: decodes bytes without a capture.

In: hexadecimal text, a file or standard input, or lines of vectors. Out: a tree, or JSON. Law: any bytes are explained as far
as they can be decoded; the rest has the reason why it could not.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.capture.beginnings import SNOOP
from kcap.cli.places import Reads
from kcap.errors import CaptureError, UsageError, did_you_mean, said
from kcap.output.escaping import json_text

if TYPE_CHECKING:
    from kcap.decode.message import Message

SEPARATORS: Final = re.compile(rb"0[xX]|[\s:,]+")
HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})+")
LENGTH: Final = 4
USAGE: Final = 2


@click.command("decode", short_help="Decode bytes without a capture.")
@click.option("--hex", "as_hex", metavar="HEX", help="The bytes in hexadecimal; spaces are allowed.")
@click.option("--request/--response", "is_request", default=True, help="What the bytes are.  [default: request]")
@click.option("--api", metavar="NAME|KEY", help="API of a response.")
@click.option("--api-version", metavar="N", type=click.IntRange(-32768, 32767), help="Version of a response.")
@click.option("--records", "is_records", is_flag=True, help="The bytes are record batches.")
@click.option("--data", "schema", metavar="NAME", help="The bytes are a structure that others contain: OffsetCommitKey, ...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a tree.")
@click.option(
    "--jsonl", "as_lines", is_flag=True, help="Read lines of JSON with kind and frame or hex, and write lines with body."
)
@click.option("--show-secrets", is_flag=True, help="Show passwords and tokens unmasked.")
@click.argument("files", metavar="[FILE | -]", nargs=-1, type=Reads())
def run(
    as_hex: str | None,
    is_request: bool,
    api: str | None,
    api_version: int | None,
    is_records: bool,
    schema: str | None,
    as_json: bool,
    as_lines: bool,
    show_secrets: bool,
    files: tuple[str, ...],
) -> int:
    """Decode a frame byte by byte: a request, the response of an API and version, or record batches.

    The frame may have its 4-byte length or not. A FILE has the bytes or their hexadecimal text.
    """
    import kcap.records.batch_nodes  # noqa: F401 - the trees of messages open their records fields with it

    data = read_bytes(as_hex, files)
    if as_lines:
        return _lines(data, show_secrets)
    if as_hex is None:
        data = from_text(data) or data
    if is_records:
        _show_records(data, as_json)
        return 0
    if schema is not None:
        from kcap.decode.message import decode_data

        message, shift = decode_data(schema, data, api_version), 0
    else:
        key = api_key_of(api) if api is not None else None
        if not is_request and key is None:
            raise UsageError("a response names neither its API nor its version: give --api and --api-version")
        message, shift = unframed(data, is_request, key, api_version)
    if as_json:
        kind = "data" if schema is not None else "request" if is_request else "response"
        print(json_text(message_json(kind, message, show_secrets)))
    else:
        for line in message_lines(message, shift, show_secrets):
            print(line)
    return 0


def read_bytes(as_hex: str | None, files: tuple[str, ...]) -> bytes:
    """The input as bytes.

    Raises UsageError if it is missing, invalid or a capture, CaptureError if it cannot be read.
    """
    if as_hex is not None:
        # Without quotes, the shell passes the groups of the number as further words.
        found = from_text(" ".join((as_hex, *files)).encode(errors="replace"))
        if found is None:
            raise UsageError("--hex takes pairs of hexadecimal digits")
        return found
    if len(files) != 1:
        raise UsageError(
            "no bytes given; use --hex, name a file, or - for standard input" if not files else "one file at a time"
        )
    if files[0] == "-":
        return sys.stdin.buffer.read()
    try:
        with open(files[0], "rb") as file:
            found = file.read()
    except OSError as error:
        raise CaptureError(f"{files[0]}: {said(error)}") from None
    from kcap.capture.source import form_of

    if form_of(found) or found.startswith(SNOOP):
        raise UsageError(f"{files[0]} is a capture; kcap rows lists its exchanges, and kcap show decodes one of them")
    return found


def from_text(text: bytes) -> bytes | None:
    """Hexadecimal text as bytes; None for other text."""
    digits = SEPARATORS.sub(b"", text)
    return bytes.fromhex(digits.decode()) if HEX.fullmatch(digits) else None


def api_key_of(text: str) -> int:
    """The key of an API given by its name, case-insensitive, or by its number.

    Raises UsageError for an unknown name.
    """
    from kcap.schema.registry import api_keys, api_name

    if re.fullmatch(r"-?\d{1,5}", text):
        return int(text)
    known = {str(api_name(key)).lower(): key for key in api_keys()}
    word = re.sub(r"[\s_-]", "", text).lower()
    if word in known:
        return known[word]
    advice = did_you_mean(word, [str(api_name(key)) for key in known.values()])
    raise UsageError(f"no API is called {text!r}{advice or '; kcap schema lists them'}")


def unframed(data: bytes, is_request: bool, key: int | None, version: int | None) -> tuple["Message", int]:
    """The message, and the number of bytes before its frame. A right length prefix is split off, unless the bytes decode
    completely only with it."""
    from kcap.decode.message import decode_request, decode_response

    def decode(frame: bytes) -> "Message":
        return decode_request(frame) if is_request else decode_response(frame, key, version)

    if len(data) >= LENGTH and int.from_bytes(data[:LENGTH], "big", signed=True) == len(data) - LENGTH:
        message = decode(data[LENGTH:])
        plain = decode(data) if message.undecoded is not None else message
        if plain.undecoded is not None or message.undecoded is None:
            return message, LENGTH
        return plain, 0
    return decode(data), 0


def message_lines(message: "Message", shift: int, show_secrets: bool) -> Iterator[str]:
    """The tree of a message, with its length first."""
    from kcap.cli.trees import TreeStyle, length_line, tree_lines

    name = message.name or "message"
    title = name if message.version is None else f"{name} v{message.version}"
    look = TreeStyle(message.name, shift, show_secrets)
    if shift:
        yield length_line(len(message.frame), look)
    yield from tree_lines(message.tree(), look, title)
    if message.undecoded:
        yield f"undecoded: {message.undecoded}"


def message_json(
    kind: str, message: "Message", show_secrets: bool, *, payloads: bool = True, size: int | None = None
) -> dict[str, Any]:
    """A message in the vectors' form; without payloads, records are replaced by sizes. `size`: as of `shown_as`."""
    from kcap.decode.secrets import masked, may_hold_secrets, shown_as
    from kcap.schema.registry import api_name
    from kcap.wire.text import client_text

    header, body = message.header, message.to_json("base64" if payloads else "size")
    name = shown_as(message, size)
    hidden = not show_secrets and may_hold_secrets(name)
    if body is not None and hidden:
        body = masked(name, body)
    made: dict[str, Any] = {"kind": kind}
    if kind == "data":
        made["name"] = message.name
    else:
        key = header.api_key
        made |= {"api_key": key, "api": None if key is None else api_name(key)}
    made["version"] = message.version if kind == "data" else header.api_version
    if kind != "data":
        if message.version is not None and message.version != header.api_version:
            made["body_version"] = message.version
        made |= {"header_version": header.version, "correlation_id": header.correlation_id}
    if kind == "request":
        made["client_id"] = header.client_id if show_secrets else client_text(header.client_id)
    made |= {"body": body, "unknown_tags": tags_json(message.unknown_tags, hidden)}
    if kind != "data":
        made["header_unknown_tags"] = tags_json(header.unknown_tags, hidden)
    if message.undecoded:
        made["undecoded"] = message.undecoded
    return made


def tags_json(tags: Iterable[tuple[int, bytes]], hidden: bool) -> list[dict[str, Any]]:
    """Unknown tagged fields; their content is masked if the message may have secrets."""
    from kcap.wire.text import MASKED

    return [{"tag": tag, "data": MASKED if hidden else data.hex()} for tag, data in tags]


def _show_records(data: bytes, as_json: bool) -> None:
    if as_json:
        from kcap.records.record_sets import decode_records

        print(json_text(decode_records(data).to_json()))
        return
    from kcap.cli.trees import TreeStyle, tree_lines
    from kcap.decode.nodes import Buffers, Node
    from kcap.decode.tree import Inside
    from kcap.records.batch_nodes import record_set_nodes

    buffers = Buffers(data)
    place = Inside(buffers, 0, 0, len(data))
    root = Node("records", None, f"{len(data)} bytes", buffers, 0, 0, len(data), lambda: record_set_nodes(place))
    for line in tree_lines(root, TreeStyle()):
        print(line)


def _lines(text: bytes, show_secrets: bool) -> int:
    """Decodes line by line; returns the exit code."""
    code = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            made = decode_line(json.loads(line), show_secrets)
        except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
            made, code = {"line": number, "error": f"not a line that can be decoded: {error}"}, USAGE
        print(json_text(made))
    return code


def decode_line(line: dict[str, Any], show_secrets: bool) -> dict[str, Any]:
    """Decodes one line of the vectors' form. An invalid line raises the exceptions of Python's parsers."""
    from kcap.decode.message import decode_data
    from kcap.records.record_sets import decode_records

    kind = line["kind"]
    if kind == "negotiation":
        request, answer = line["request"], line.get("response")
        made: dict[str, Any] = {"kind": kind, "request": decode_line(request | {"kind": "request"}, show_secrets)}
        requested = {"api_key": request.get("api_key"), "version": request.get("version")}
        made["response"] = decode_line(answer | requested | {"kind": "response"}, show_secrets) if answer else None
        return made
    data = bytes.fromhex(line["frame"] if "frame" in line else line["hex"])
    if kind == "records":
        return {"kind": kind, **decode_records(data).to_json()}
    if kind == "data":
        version = line["version"] if line.get("prefix") == "none" else None
        return message_json(kind, decode_data(line["name"], data, version), show_secrets)
    if kind not in ("request", "response"):
        raise ValueError(f"no kind is called {kind!r}")
    key = line.get("api_key")
    if key is None and line.get("api") is not None:
        key = api_key_of(str(line["api"]))
    return message_json(kind, unframed(data, kind == "request", key, line.get("version"))[0], show_secrets)
