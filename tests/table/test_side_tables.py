"""Laws of the smaller tables: a row a connection, a file, an oddity; bytes add up."""

from pathlib import Path

import kcap
from kcap.columns import CAPTURES, CONNECTIONS, WEIRDS
from kcap.model import CaptureFile
from kcap.table.schema import choose
from kcap.table.side_tables import batch_of, weird_rows
from kcap.weird import Weird, WeirdKind


def test_connections_keep_account_of_their_bytes(pcaps: Path) -> None:
    rows = kcap.open(str(pcaps / "java-transactions.pcap")).connections().to_arrow().to_pylist()
    assert len(rows) == 17
    assert list(rows[0]) == [column.name for column in CONNECTIONS]
    for row in rows:
        assert row["capture"] == "java-transactions.pcap"
        for side in ("client", "server"):
            parts = [row[f"{side}_{name}"] for name in ("framed", "skipped", "opaque", "pending")]
            assert row[f"{side}_captured"] == sum(parts)
    assert sum(row["exchanges"] for row in rows) == 110


def test_captures_are_the_files(pcaps: Path) -> None:
    names = ["rotated.pcap", "rotated.pcap1", "rotated.pcap2"]
    rows = kcap.open(*(str(pcaps / name) for name in names)).captures().to_arrow().to_pylist()
    assert list(rows[0]) == [column.name for column in CAPTURES]
    assert [row["capture"] for row in rows] == names
    assert [row["packets"] for row in rows] == [209, 224, 61]
    assert {(row["format"], tuple(row["link_types"]), row["complete"]) for row in rows} == {("pcap", (1,), True)}


def test_weirds_have_a_place_where_one_was_told(pcaps: Path) -> None:
    rows = kcap.open(str(pcaps / "raw-frames.pcap")).weirds().to_arrow().to_pylist()
    assert list(rows[0]) == [column.name for column in WEIRDS]
    unknown = [row for row in rows if row["kind"] == "api_unknown"]
    assert unknown
    assert all(
        row["capture"] == "raw-frames.pcap" and row["packet"] and row["position"] and row["connection"] for row in unknown
    )


def test_a_weird_of_a_file_has_the_file_alone() -> None:
    files = [CaptureFile("x/a.pcap", "a.pcap")]
    sightings = [(Weird(WeirdKind.FILE_EMPTY, "no packet", 0, 0, 0), 1), (Weird(WeirdKind.GAP, "9 bytes", 0, 0, 0, "C1"), 3)]
    made = batch_of("weirds", choose("weirds", None), weird_rows(sightings, files)).to_pylist()
    assert made[0] == {
        "kind": "file_empty", "connection": None, "capture": "a.pcap", "packet": None, "position": None, "detail": "no packet",
        "count": 1,
    }  # fmt: skip
    assert made[1]["capture"] is None


def test_what_must_not_be_null_is_nothing_where_nothing_was_said() -> None:
    made = batch_of("connections", choose("connections", ["tls", "exchanges", "principal"]), [{}]).to_pylist()
    assert made == [{"tls": False, "exchanges": 0, "principal": None}]


def test_connections_say_what_their_exchanges_told(pcaps: Path) -> None:
    """Law: software, mechanism and name of a connection are those of its last exchange."""
    for name in ("sasl-raw-tokens", "java-transactions"):
        capture = kcap.open(pcaps / f"{name}.pcap")
        columns = ["software_name", "software_version", "sasl_mechanism", "principal"]
        last: dict[str, tuple[int, dict[str, object]]] = {}
        for row in capture.exchanges(["connection", "exchange", *columns]).to_arrow().to_pylist():
            if row["exchange"] >= last.get(row["connection"], (0, {}))[0]:
                last[row["connection"]] = row["exchange"], {column: row[column] for column in columns}
        found = {row["connection"]: row for row in capture.connections().to_arrow().to_pylist()}
        assert any(row["software_name"] or row["principal"] for row in found.values())
        for uid, (_, told) in last.items():
            assert {column: found[uid][column] for column in columns} == told
