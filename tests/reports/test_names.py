"""Names in reports are bounded: a long one is shortened, and of too many the first are told apart."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kcap import limits
from kcap.arrays.arrow import parquet_file
from kcap.filter.parse import parse
from kcap.output.writers import Parquet
from kcap.reports import clients
from kcap.reports.definition import ReportRequest
from kcap.reports.groups.report import groups
from kcap.reports.names import OTHERS, bounded_files, rows_at_once, shortened, shorter, texts
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from tests.fuzz.hostile import CLASSES, array, greetings, request, response, string

SCHEMA = pa.schema({"connection": pa.string(), "client_id": pa.string(), "topics": pa.list_(pa.string()), "n": pa.int64()})


def rows(count: int, size: int = 3) -> pa.RecordBatch:
    names = [None if i == 1 else f"{i:03}".ljust(size, "n") for i in range(count)]
    lists = [None if i == 1 else [f"{i:03}".ljust(size, "t"), None] for i in range(count)]
    return pa.RecordBatch.from_arrays(
        [pa.array(["C" * 300] * count), pa.array(names, pa.string()),
         pa.array(lists, SCHEMA.field("topics").type), pa.array(range(count))],
        schema=SCHEMA,
    )  # fmt: skip


def saved(path: Path, batch: pa.RecordBatch, compression: str = "none") -> str:
    with path.open("wb") as file:
        writer = Parquet(file, batch.schema, compression)
        writer.write(batch)
        writer.close()
    return str(path)


def test_a_name_is_shortened_above_its_bound_and_stays_another_than_its_like() -> None:
    assert shortened("n" * limits.REPORT_NAME_BYTES) == "n" * limits.REPORT_NAME_BYTES
    one, other = shortened("n" * 30_000 + "1"), shortened("n" * 30_000 + "2")
    assert one != other
    assert one.startswith("n" * 160 + "... (30,001 characters, sha256 ")
    assert len(one) < limits.REPORT_NAME_BYTES
    assert len(shortened("\N{SNOWMAN}" * 10_000).encode()) < 3 * limits.REPORT_NAME_BYTES


def test_batches_without_long_names_are_left_alone() -> None:
    batch = rows(5)
    assert shorter(batch) is batch
    assert shorter(rows(5, 1000), ["client_id", "topics"])["client_id"] == rows(5, 1000)["client_id"]


@pytest.mark.parametrize("start", [0, 2])
def test_long_names_are_shortened_in_texts_and_lists_of_any_slice(start: int) -> None:
    batch = rows(5, 1000).slice(start)
    made = shorter(batch)
    assert made.schema == batch.schema
    assert made["client_id"].to_pylist() == [n and shortened(n) for n in batch["client_id"].to_pylist()]
    assert made["topics"].to_pylist() == [
        names and [name and shortened(name) for name in names] for names in batch["topics"].to_pylist()
    ]
    assert made["connection"] == batch["connection"]


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_of_too_many_names_the_first_are_told_apart(compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPORT_NAMES_MAX", 10)
    file = saved(tmp_path / "rows.parquet", rows(40), compression)
    (made,) = bounded_files([file], str(tmp_path), "exchanges", ["topics"])
    assert made != file
    found = parquet.read_table(made).to_pydict()
    given = rows(40).to_pydict()
    assert found["client_id"] == [*given["client_id"][:11], *[OTHERS] * 29]
    assert {name: found[name] for name in ("connection", "topics", "n")} == {
        name: given[name] for name in ("connection", "topics", "n")
    }
    monkeypatch.setattr(limits, "REPORT_NAMES_MAX", 40)
    assert bounded_files([file], str(tmp_path), "exchanges") == [file]


def test_files_that_are_too_small_for_too_many_names_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: a name takes five bytes of a file at least, unless the file is compressed."""
    file = saved(tmp_path / "rows.parquet", rows(40))
    monkeypatch.setattr(limits, "REPORT_NAMES_MAX", Path(file).stat().st_size // 4)
    monkeypatch.setattr(parquet, "ParquetFile", None)
    assert bounded_files([file], str(tmp_path), "exchanges", compressed=False) == [file]
    with pytest.raises(TypeError):
        bounded_files([file], str(tmp_path), "exchanges")


def test_a_saved_table_with_few_but_long_names_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPORT_NAMES_MAX", 10)
    file = saved(tmp_path / "rows.parquet", rows(8, 2000))
    (made,) = bounded_files([file], str(tmp_path), "exchanges")
    assert parquet.read_table(made)["client_id"].to_pylist() == [
        n and shortened(n) for n in rows(8, 2000)["client_id"].to_pylist()
    ]


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "long.pcap"
    path.write_bytes(CLASSES["long_names"][0](20))
    return path


def test_reports_of_long_names_show_them_shortened_and_filters_test_them_whole(long_names: Path) -> None:
    name = "7" + "n" * 30_000
    rows_ = run(clients.REPORT, ReportInput([str(long_names)]), ReportRequest())["rows"]
    assert shortened(name) in {row["client_id"] for row in rows_}
    assert all(len(row["client_id"]) <= limits.REPORT_NAME_BYTES for row in rows_)
    only = parse('client_id matches "^7n*$"')  # the shortened one ends with a digest
    (row,) = run(clients.REPORT, ReportInput([str(long_names)], only=only), ReportRequest())["rows"]
    assert row["requests"] == 1


def test_a_group_with_a_long_name_is_found_by_it(long_names: Path) -> None:
    name = "7" + "n" * 30_000
    (row,) = groups(ReportInput([str(long_names)]), [name])["rows"]
    assert row["group_id"] == shortened(name)


def test_of_too_many_addresses_messages_are_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what messages are found by is not replaced, whatever else is."""
    monkeypatch.setattr(limits, "REPORT_NAMES_MAX", 10)
    path = tmp_path / "joins.pcap"
    join, version, count = 11, 0, 40

    def member(i: int) -> bytes:
        return string(b"m%d" % i)

    def body(i: int) -> bytes:
        return request(1, join, version, string(b"g%d" % i) + bytes(4) + member(i) + string(b"consumer") + array([]))

    answer = response(1, bytes(6) + string(b"r") + member(0) + member(0) + array([member(0) + array([])]))
    path.write_bytes(greetings(count, body, answer=answer, close=True))
    rows_ = groups(ReportInput([str(path)]))["rows"]
    assert {row["group_id"] for row in rows_} == {*(f"g{i}" for i in range(10)), OTHERS}
    assert {member["client_ip"] for row in rows_ for member in row["members"]}.isdisjoint({OTHERS})


def test_wide_rows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """A row may have thousands of names: how many are read at once follows from what they take."""
    path = tmp_path / "wide.parquet"
    for names, rows in ((1, limits.REPORT_NAMES_ROWS), (40_000, 8)):
        batch = pa.RecordBatch.from_pydict({"topics": [[f"{row:04} {name:020}" for name in range(names)] for row in range(40)]})
        parquet.write_table(pa.Table.from_batches([batch]), path, compression="none", use_dictionary=False)
        assert rows // 2 <= rows_at_once(parquet.ParquetFile(path)) <= rows


def test_names_that_were_read_are_not_kept(tmp_path: Path) -> None:
    """Memory while names are counted is that of a few row groups, not of the file."""
    path, group = tmp_path / "many.parquet", 1 << 20
    names = pa.table({"client_id": [f"{number:0128}" for number in range(20 * group // 128)]})
    parquet.write_table(names, path, row_group_size=group // 128, compression="none", use_dictionary=False)
    held = []
    before = pa.total_allocated_bytes()
    for number, _ in enumerate(texts([parquet_file(str(path))], "client_id")):
        if number % 4096 == 0:
            held.append(pa.total_allocated_bytes() - before)
    assert len(held) == 40
    assert max(held) < 4 * group
