"""What one end writes the other maps: the same rows under the same numbers, at any time."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.limits import MAPS_MAX, TAIL_BATCHES_MAX
from kcap.tui.spill import Mapped, Pages, Spill, SpillStream, main_path, read_file

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])


def batch(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.RecordBatch.from_pydict({"n": list(numbers), "t": [f"t{n}" if n % 3 else None for n in numbers]}, SCHEMA)


def numbers(pages: Pages) -> list[int]:
    return [n for part in (*pages.main, *pages.tail) for n in part.column("n").to_pylist()]


@given(counts=st.lists(st.integers(0, 9), max_size=12), whole=st.integers(1, 12), looks=st.sets(st.integers(0, 11)))
def test_rows_keep_their_numbers(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], whole: int, looks: set[int]
) -> None:
    """Law: after each announcement that is followed, all rows so far stand there in order; at the end in the main file."""
    folder = str(tmp_path_factory.mktemp("spill"))
    spill, pages, rows = Spill(folder, "x", SCHEMA, whole), Pages(folder, "x"), 0
    for at, count in enumerate(counts):
        mark = spill.write(batch(rows, count))
        rows += count
        assert mark.rows == rows
        if at in looks:
            pages.follow(mark)
            assert numbers(pages) == list(range(rows))
    pages.follow(spill.close())
    assert numbers(pages) == list(range(rows))
    assert list(pages.tail) == []
    assert read_file(main_path(folder, "x")).column("t").to_pylist() == [f"t{n}" if n % 3 else None for n in range(rows)]


def test_what_was_mapped_stays_when_the_tail_goes(tmp_path: Path) -> None:
    spill, pages = Spill(str(tmp_path), "x", SCHEMA, 8), Pages(str(tmp_path), "x")
    pages.follow(spill.write(batch(0, 3)))
    held = list(pages.tail)
    pages.follow(spill.write(batch(3, 3)))
    pages.follow(spill.write(batch(6, 3)))
    assert [n for part in held for n in part.column("n").to_pylist()] == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["x.arrow"], "a tail that is in the main file is removed"
    spill.close()


def test_a_large_batch_is_written_as_it_is_behind_those_that_wait(tmp_path: Path) -> None:
    spill, pages = Spill(str(tmp_path), "x", SCHEMA, 8), Pages(str(tmp_path), "x")
    pages.follow(spill.write(batch(0, 3)))
    pages.follow(spill.write(batch(3, 4)))
    assert [part.num_rows for part in pages.main] == [3, 4]
    assert numbers(pages) == list(range(7))
    spill.close()


@pytest.mark.parametrize("every", [1, 7, 300])
def test_many_small_batches_are_held_as_few(tmp_path: Path, every: int) -> None:
    """`every`: batches between two looks; tails that began and ended between them are removed, too."""
    spill, pages, rows = Spill(str(tmp_path), "x", SCHEMA, 1_000_000), Pages(str(tmp_path), "x"), 0
    for at in range(5 * TAIL_BATCHES_MAX):
        spill.write(batch(0, 0))
        mark = spill.write(batch(rows, 2))
        rows += 2
        assert len(spill._pending) <= TAIL_BATCHES_MAX + 1
        if at % every == 0:
            pages.follow(mark)
            assert len(pages.tail) <= TAIL_BATCHES_MAX + 1
    pages.follow(spill.mark)
    assert numbers(pages) == list(range(rows))
    assert len(list(tmp_path.iterdir())) == 2, "the main file and a tail"
    pages.follow(spill.close())
    assert [part.num_rows for part in pages.main] == [rows]
    assert [path.name for path in tmp_path.iterdir()] == ["x.arrow"]


def test_many_looks_make_few_mappings(tmp_path: Path) -> None:
    path = str(tmp_path / "y.arrow")
    stream, mapped = SpillStream(path, SCHEMA), Mapped(path)
    for at in range(2 * MAPS_MAX + 5):
        assert len(mapped.grow(stream.write(batch(at, 1)))) == 1
    assert len(mapped._maps) <= MAPS_MAX
    assert [n for part in mapped.batches for n in part.column("n").to_pylist()] == list(range(2 * MAPS_MAX + 5))
    stream.close()


def resident(path: str) -> int:
    """Kilobytes of a file that count as memory."""
    found, here = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if not line.partition(" ")[0].endswith(":"):
            here = line.endswith(path)
        elif here and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted in /proc")
def test_released_rows_are_no_memory_of_this_process_and_can_be_read_again(tmp_path: Path) -> None:
    path = main_path(str(tmp_path), "x")
    spill, pages = Spill(str(tmp_path), "x", SCHEMA, 8), Pages(str(tmp_path), "x")
    pages.follow(spill.write(batch(0, 100_000)))
    assert sum(numbers(pages)) == sum(range(100_000))
    assert resident(path) > 700
    pages.release()
    assert resident(path) < 100
    assert sum(numbers(pages)) == sum(range(100_000))
    spill.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages are counted in /proc")
def test_rows_that_a_thread_looks_at_while_the_file_is_mapped_anew_are_released_too(tmp_path: Path) -> None:
    path = str(tmp_path / "x.arrow")
    stream, mapped = SpillStream(path, SCHEMA), Mapped(path)
    for at in range(MAPS_MAX):
        mapped.grow(stream.write(batch(1000 * at, 1000)))
    looked_at = mapped.batches
    mapped.grow(stream.write(batch(1000 * MAPS_MAX, 1000)))
    assert len(mapped._maps) == 1
    for _ in range(2):  # they are read again, and released again
        assert [n for part in looked_at for n in part.column("n").to_pylist()] == list(range(1000 * MAPS_MAX))
        assert resident(path) > 900
        mapped.release()
        assert resident(path) < 100
    del looked_at
    for at in range(MAPS_MAX):
        mapped.grow(stream.write(batch(1000 * (MAPS_MAX + 1 + at), 1000)))
    assert len(mapped._earlier) == MAPS_MAX
    stream.close()
