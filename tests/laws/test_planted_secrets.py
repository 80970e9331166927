"""Secrets that were planted in a capture appear in no output of kcap, in no form, unless they are requested.

The capture holds a PLAIN password, a bearer token, delegation-token HMACs, SCRAM salts and passwords, and config values that
are secret by flag, name or look; it is read whole, cut by a snapshot length, and with damaged messages.
"""

import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from kcap.capture.frame_bytes import read
from kcap.filter.fields import deep_fields
from kcap.table.schema import arrow_schema
from kcap.tui.annotations import Annotations
from kcap.tui.exchange_tree import anatomy
from kcap.tui.notes import as_json
from kcap.tui.reader_main import Child, ReadRequest
from kcap.tui.row_index import RowIndex
from kcap.tui.spill import COLUMNS, main_path, read_file
from kcap.tui.tree_lines import Item
from tests.cli.running import run_here
from tests.cli.test_live import live, tool
from tests.support.messages import (
    Story,
    authenticate,
    authenticate_answer,
    began,
    compact,
    few,
    handshake,
    handshake_answer,
    many,
    raw,
    saved,
    text,
)
from tests.support.wire import request, response

PASSWORD, BEARER, RAW = "Plantd-Passw0rd-1", "Plantd-Bearer-tok-2", "Plantd-Raw-passw-3"
HMAC, SALT, SALTED = b"Plantd-hmac-bytes-4", b"Plantd-salt-bytes-5", b"Plantd-salted-pw-6"
FLAGGED, NAMED, LOOKS, URL, ODD = "Plantd-flag-7", "Plantd-named-8", "Plantd-pem-body-9", "Plantd-url-pw-10", "Plantd-alter-11"
SECRETS = [*map(str.encode, (PASSWORD, BEARER, RAW, FLAGGED, NAMED, LOOKS, URL, ODD)), HMAC, SALT, SALTED]
TABLES = (
    "exchanges",
    "connections",
    "captures",
    "weirds",
    "partitions",
    "records",
    "negotiations",
    "tls_turns",
    "topic_names",
    "brokers",
)


DEEP = [
    word for name, field in deep_fields().items() if field.kind == "text" and field.path[-1] != "records"
    for word in ("-e", name)
]  # fmt: skip
"""Options for all texts of messages as columns."""


def forms(secret: bytes) -> set[str]:
    """How a secret may be written; base64 from each of the three places it may have in a longer text."""
    found = {secret.decode(), secret.hex(), secret.hex(" "), secret.hex().upper(), secret.hex(":")}
    found |= {secret.decode().encode(code).hex() for code in ("utf-16-le", "utf-16-be")}
    for shift in range(3):
        whole = b64encode(bytes(shift) + secret + bytes(3)).decode()
        found.add(whole[4 : 4 * (len(secret) // 3)])
    return found


def config(name: str, value: str, *, sensitive: bool = False) -> bytes:
    """An entry of a DescribeConfigs response v1."""
    return text(name) + text(value) + bytes([0, 4, sensitive]) + many([])


def described(correlation: int) -> bytes:
    """A DescribeConfigs response v1."""
    entries = [
        config("plain.flagged", FLAGGED, sensitive=True), config("db.pwd", NAMED),
        config("cert", f"-----BEGIN KEY-----{LOOKS}"), config("connection.url", f"jdbc:x://u:{URL}@h/d"),
        config("min.insync.replicas", "2"),
    ]  # fmt: skip
    result = struct.pack(">h", 0) + text(None) + b"\x04" + text("1") + many(entries)
    return response(correlation, bytes(4) + many([result]))


def stories() -> tuple[Story, Story]:
    """Two connections with all of the secrets."""
    story = began()
    story.ask(handshake(1, "PLAIN"), handshake_answer(1))
    story.ask(authenticate(2, f"\0alice\0{PASSWORD}".encode()), authenticate_answer(2))
    story.ask(authenticate(3, f"n,,\x01auth=Bearer {BEARER}\x01\x01".encode()), authenticate_answer(3))
    story.ask(request(32, 1, 4, many([b"\x04" + text("1") + b"\xff\xff\xff\xff"]) + b"\0"), described(4))
    altered = b"\x04" + text("1") + many([text("ldap.bindcreds") + b"\0" + text(ODD)])
    story.ask(request(44, 0, 5, many([altered]) + b"\0"), response(5, bytes(4) + many([])))
    token = struct.pack(">h", 0) + text("User") + text("a") + bytes(24) + text("id") + struct.pack(">i", len(HMAC)) + HMAC
    story.ask(request(38, 0, 6, many([]) + bytes(8)), response(6, token + bytes(4)))
    scram = compact("alice") + b"\x01" + struct.pack(">i", 4096)
    scram += bytes([len(SALT) + 1]) + SALT + bytes([len(SALTED) + 1]) + SALTED + b"\0"
    story.ask(request(51, 0, 7, b"\0" + few([]) + few([scram]) + b"\0"), response(7, bytes(6)))
    old = began(port=40_001)
    old.ask(handshake(1, "PLAIN", 0), handshake_answer(1)).ask(raw(f"\0bob\0{RAW}".encode()), raw(b""))
    return story, old


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("planted")
    story, old = stories()
    cut = {at: min(9, len(s.payload) // 2) for at, s in enumerate(story.segments) if len(s.payload) > 40}
    paths = [saved(folder / "whole.pcap", story, old), saved(folder / "cut.pcap", story, cut=cut)]
    data = bytearray(paths[0].read_bytes())
    for at in range(len(data)):  # counts and lengths in front of the planted texts
        if data.startswith(b"Plantd", at) and at % 2:
            data[at - 1] ^= 0x15
    damaged = folder / "damaged.pcap"
    damaged.write_bytes(data)
    longer = folder / "longer.pcap"
    data = bytearray(paths[0].read_bytes())
    data[data.index(b"\0\x11\0\1") - 3] |= 4  # the length of a message that holds no secret takes in those behind it
    longer.write_bytes(data)
    swallowed = folder / "swallowed.pcap"
    data = bytearray(paths[0].read_bytes())
    for name, more in ((b"app", 0), (b"connection.url", 30)):  # lengths of names, which take in what stands behind them
        for found in re.finditer(re.escape(len(name).to_bytes(2, "big") + name), bytes(data)):
            data[found.start() + 1] += more or _left(data, found.end())
    swallowed.write_bytes(data)
    return [*map(str, paths), str(damaged), str(longer), str(swallowed)]


def _left(data: bytes, end: int) -> int:
    """Bytes of a request behind its client id, which ends here; none of the first, which shows that the connection is Kafka."""
    start, first = end - 17, data[end - 6] == 1
    return 0 if first else start + 4 + int.from_bytes(data[start : start + 4], "big") - end


def exchanges(path: str) -> list[str]:
    """Names of all exchanges."""
    rows = run_here("rows", path, "--columns", "connection,exchange", "--format", "tsv")[1].splitlines()[1:]
    return [row.replace("\t", ".") for row in rows]


def outputs(path: str, *more: str) -> str:
    """Everything that commands write of a capture."""
    out = []
    for table in TABLES:
        out += [run_here("rows", path, "--table", table, "--format", form)[1] for form in ("jsonl", "csv", "table")]
    for name in exchanges(path):
        out += [run_here("show", path, name, *options, *more)[1] for options in ((), ("--hex",), ("--json",))]
    for words in (
        ("health", path), ("check", path), ("errors", path), ("clients", path), ("versions", path, "--format", "json"),
        ("connections", path), ("groups", path), ("transactions", path), ("stats", path), ("slow", path), ("topics", path),
        ("check", path, "--format", "sarif"), ("diff", path, path, "--format", "json"), ("rows", path, "-T", "ek"),
        ("sql", "select * from exchanges", path), ("sql", "select * from weirds", path), ("rows", path, "-T", "fields", *DEEP),
    ):  # fmt: skip
        out.append(run_here(*words)[1])
    return "\n".join(out)


DOCUMENTS = (
    ("rows", "rows.parquet"),
    ("rows", "rows.arrow"),
    ("errors", "errors.html"),
    ("errors", "errors.md"),
    ("clients", "clients.html"),
    ("versions", "versions.html"),
    ("check", "check.html"),
    ("check", "check.sarif"),
    ("groups", "groups.html"),
    ("transactions", "transactions.html"),
    ("diff", "diff.html"),
    ("topics", "topics.html"),
    ("connections", "connections.html"),
)
"""Commands and the files that they write."""


@pytest.mark.parametrize("which", range(5), ids=["whole", "cut", "damaged", "longer", "swallowed"])
def test_no_document_holds_a_planted_secret(captures: list[str], which: int, tmp_path: Path) -> None:
    """Files for programs and browsers, searched as bytes; compression is left out of Parquet by reading it again."""
    for command, name in DOCUMENTS:
        path = tmp_path / name
        paths = [captures[which]] * (1 + (command == "diff"))
        assert run_here(command, *paths, "-o", str(path))[0] in (0, 1)
        data = path.read_bytes()
        written = data.decode("latin-1")
        if name.endswith(".parquet"):
            written = repr(pq.read_table(path).to_pylist())
        assert [secret for secret in SECRETS if any(form in written for form in forms(secret))] == [], name
        assert [secret for secret in SECRETS if secret in data or secret.decode().encode("utf-16-le") in data] == [], name


def dumped(written: str) -> bytes:
    """The bytes of all hex dumps, without the breaks between their lines; masked ones are asterisks."""
    rows = re.findall(r"(?m)^[0-9a-f]{6}  ((?:[0-9a-f*]{2} {1,2})+) ", written)
    return b"".join(b"*" if pair == "**" else bytes.fromhex(pair) for row in rows for pair in row.split())


@pytest.mark.parametrize("which", range(5), ids=["whole", "cut", "damaged", "longer", "swallowed"])
def test_no_output_holds_a_planted_secret(captures: list[str], which: int) -> None:
    written = outputs(captures[which])
    found = [secret for secret in SECRETS if any(form in written for form in forms(secret))]
    assert found == []
    dump = dumped(written)
    assert b"Plantd" not in dump
    assert dump
    assert "(masked)" in written


class ReaderStatus:
    """The other end of the reading process."""

    last: Any = None

    def send(self, value: object) -> None:
        self.last = value


def test_no_index_of_the_terminal_ui_holds_a_planted_secret(captures: list[str], tmp_path: Path) -> None:
    """What the screen keeps for its next opening is what its reading process wrote."""

    for at, path in enumerate(captures[::2]):
        folder = tmp_path / str(at)
        folder.mkdir()
        Child(ReadRequest([path], str(folder)), cast("Any", ReaderStatus()))._read()
        data = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
        assert len(data) > 1000
        written = data.decode("latin-1")
        assert [secret for secret in SECRETS if any(form in written for form in forms(secret))] == []
        assert [secret for secret in SECRETS if secret.decode().encode("utf-16-le") in data] == []


def all_of(items: Sequence[Item]) -> Iterator[Item]:
    """Items and all in them."""
    for item in items:
        yield item
        yield from all_of(item.make()) if item.make is not None else ()


def test_neither_trees_of_the_terminal_ui_nor_notes_hold_a_planted_secret(captures: list[str], tmp_path: Path) -> None:
    """What is shown of an exchange, copied, filtered by, or saved as text; notes on every exchange, as they are exported."""
    for at, path in enumerate(captures):
        folder, status = tmp_path / str(at), ReaderStatus()
        folder.mkdir()
        Child(ReadRequest([path], str(folder)), cast("Any", status))._read()
        rows = RowIndex(read_file(main_path(str(folder), "exchanges")).to_batches(), arrow_schema("exchanges", COLUMNS))
        notes, written, shown = Annotations(), list[str](), list[str]()
        assert len(rows) > 0
        for number in range(len(rows)):
            notes.mark(rows, number)
            notes.comment(rows, number, "odd")
            found = read(rows.row(number), status.last.files, status.last.layouts, {})
            shown += [item.value for item in all_of(anatomy(found, show_secrets=True))]
            for item in all_of(anatomy(found)):
                written.append(f"{''.join(span[0] for span in item.line)} {item.value} {item.filter}")
        assert any(NAMED in value for value in shown) or at, "the search finds what is not masked"
        saved_notes = as_json(notes.notes).decode()
        assert saved_notes.count("odd") == len(rows)
        text_ = "\n".join([*written, saved_notes])
        assert [secret for secret in SECRETS if any(form in text_ for form in forms(secret))] == []


def test_rows_of_live_captures_hold_no_planted_secret(captures: list[str], tmp_path: Path) -> None:
    """As records and as text, of the capture that a program in the place of tcpdump writes."""
    tool(tmp_path, "tcpdump", capture=Path(captures[0]))
    for words in (("--format", "jsonl"), ("-T", "text", "--table", "partitions")):
        done = live(tmp_path, "-i", "eth0", *words)
        assert done.returncode == 0, done.stderr
        written = done.stdout + done.stderr
        assert [secret for secret in SECRETS if any(form in written for form in forms(secret))] == []


def test_show_secrets_lifts_the_mask(captures: list[str]) -> None:
    """So the search above can find what it looks for."""
    shown = [
        run_here("show", captures[0], name, option, "--show-secrets")[1]
        for name in exchanges(captures[0])
        for option in ("--json", "--hex")
    ]
    written = "\n".join(shown)
    dump = dumped(written)
    shown_at_all = [secret for secret in SECRETS if secret != RAW.encode()]  # raw tokens are not decoded
    assert [secret for secret in shown_at_all if secret not in dump] == []
    assert [secret for secret in shown_at_all if not any(form in written for form in forms(secret))] == []


def test_a_redacted_copy_holds_no_planted_secret(captures: list[str], tmp_path: Path) -> None:
    for at, path in enumerate(captures):
        copy = tmp_path / f"{at}.pcap"
        assert run_here("cut", path, "-o", str(copy), "--redact")[0] == 0
        data = copy.read_bytes()
        assert [secret for secret in SECRETS if secret in data] == []
