"""Laws of the door to Arrow: the same entries on both sides."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.arrays import arrow
from kcap.arrays.arrow import (
    CODED,
    Coded,
    absent,
    as_schema,
    binary,
    coalesced,
    coded,
    flattened,
    joined,
    lists,
    nulls,
    numbers,
    of_type,
    picked,
    raw,
    renamed,
    take,
    validity,
    with_texts,
)

words = st.lists(st.one_of(st.none(), st.sampled_from("abc"), st.text(max_size=3)), min_size=1, max_size=6)


def test_values_and_validity_are_those_of_the_array() -> None:
    array = pa.array([1, None, 3], pa.int64())
    valid = validity(array)
    assert valid is not None
    assert valid.tolist() == [True, False, True]
    assert raw(array, np.int64)[valid].tolist() == [1, 3]
    assert validity(pa.array([1, 2])) is None
    assert raw(pa.array([], pa.int64()), np.int64).tolist() == []


def test_entries_are_picked_coded_and_laid_in_lists() -> None:
    words = pa.array(["b", "a", "b"])
    numbers, known = coded(words)
    assert [known[number] for number in numbers] == ["b", "a", "b"]
    assert take(words, np.array([1, 1])).to_pylist() == ["a", "a"]
    laid = lists(np.array([0, 2, 2, 3], np.int32), words, np.array([False, True, False]))
    assert laid.to_pylist() == [["b", "a"], None, ["b"]]
    assert nulls(2, pa.string()).to_pylist() == [None, None]
    assert binary(pa.binary(2), 2, np.frombuffer(b"abcd", np.uint8)).to_pylist() == [b"ab", b"cd"]


def test_functions_called_by_name_are_those_of_arrow() -> None:
    """Of whole arrays and of parts of them, with nulls and without."""
    words, others = pa.array(["b", None, "a", "b"]), pa.array(["x", "y", "z", None])
    lists_of = pa.array([["b"], None, [], ["a", None]])
    for cut in (slice(None), slice(1, None), slice(2, 3), slice(0, 0)):
        some = words[cut]
        assert absent(some).tolist() == [word is None for word in some.to_pylist()]
        assert coalesced(some, others[cut]).equals(
            some.fill_null("?")
            if not some.null_count
            else pa.array([a if a is not None else b for a, b in zip(some.to_pylist(), others[cut].to_pylist())], pa.string())
        )
        assert flattened(lists_of[cut]).equals(lists_of[cut].flatten())
        assert take(some, np.arange(len(some))[::-1]).equals(some.take(pa.array(range(len(some) - 1, -1, -1), pa.int64())))
    number, known = coded(words, nulls_too=True)
    assert [known[at] for at in number] == ["b", None, "a", "b"]
    with pytest.raises(pa.ArrowIndexError):
        take(words, np.array([4]))


def test_commands_that_make_no_use_of_it_do_not_import_all_functions() -> None:
    program = (
        "import sys; from kcap.runtime import load_arrow; load_arrow(); import pyarrow as pa, numpy as np\n"
        "from kcap.arrays import arrow as a, vectors as v\n"
        "a.coded(pa.array(['a'])); a.take(pa.array([1]), np.array([0])); v.grouped(np.array([1, 1]))\n"
        "a.lists(np.array([0, 1], np.int32), pa.array([1]), np.array([False])); a.flattened(pa.array([[1]]))\n"
        "assert 'pyarrow.compute' not in sys.modules and 'numpy.ma' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nulls_share_their_memory_and_are_as_many_as_asked_for() -> None:
    for size in (0, 1, 7, 8, 9, 5000):
        for kind in (pa.string(), pa.int32(), pa.list_(pa.string())):
            made = nulls(size, kind)
            made.validate(full=True)
            assert made.equals(pa.nulls(size, kind))
    assert nulls(5, pa.int8()).buffers()[0].address == nulls(6, pa.int8()).buffers()[0].address


def test_one_entry_all_the_time_is_picked_like_others() -> None:
    words = pa.array(["b", None, "a"])
    for places in ([0, 0, 0], [1, 1], [2, 0, 1], []):
        assert picked(words, np.array(places, np.int64)).equals(take(words, np.array(places, np.int64)))


def test_numbers_are_null_where_they_are_not_valid() -> None:
    values, valid = np.arange(-5, 15, dtype=np.int16), np.arange(20) % 3 > 0
    made = numbers(pa.int16(), values, valid)
    made.validate(full=True)
    assert made.equals(pa.array([int(v) if here else None for v, here in zip(values, valid)], pa.int16()))
    assert numbers(pa.int16(), values, None).null_count == 0


def test_no_function_here_imports_pandas() -> None:
    """The command line hides pandas while pyarrow looks for it; these functions must not bring it in afterwards."""
    program = (
        "import sys; from kcap.runtime import load_arrow; load_arrow(); import pyarrow as pa, numpy as np\n"
        "from kcap.arrays import arrow as a\n"
        "w = pa.array(['x', None]); a.coded(w); a.take(w, np.array([0])); a.validity(w)\n"
        "a.raw(pa.array([1], pa.int64()), np.int64)\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_many_batches_are_one_with_the_same_rows() -> None:
    batches = [pa.record_batch({"a": [at], "b": [str(at)]}) for at in range(5)]
    assert joined(batches, batches[0].schema) == [pa.record_batch({"a": [*range(5)], "b": [*map(str, range(5))]})]
    assert joined([], batches[0].schema) == []


@given(words, st.data(), st.sampled_from([0, 1024]))
def test_coded_texts_are_the_texts(known: list[str | None], data: st.DataObject, few: int) -> None:
    """Law: texts by numbers are the same texts one after the other and dictionary-encoded, whatever is null or equal."""
    places = np.array(data.draw(st.lists(st.integers(0, len(known) - 1), max_size=9)), np.int64)
    texts = [known[place] for place in places]
    made = Coded(pa.array(known, pa.string()), places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "FEW", few)
        short = made.dictionary()
    assert of_type(made, pa.string()).to_pylist() == short.to_pylist() == texts
    assert short.type == CODED
    assert short.dictionary.null_count == 0
    if not few:
        assert set(short.dictionary.to_pylist()) == set(texts) - {None}
    for nulls_too in (False, True):
        codes, values = coded(short, nulls_too)
        there = [text is not None or nulls_too for text in texts]
        assert [values[code] for code, one in zip(codes, there) if one] == [text for text, one in zip(texts, there) if one]
    back = np.arange(len(places))[::-1]
    assert made.take(back).plain().to_pylist() == texts[::-1]
    assert renamed(short, str.upper).to_pylist() == [None if text is None else text.upper() for text in texts]


def test_a_batch_has_its_texts_as_a_schema_says() -> None:
    plain = pa.schema([pa.field("a", pa.string(), metadata={"doc": "x"}), pa.field("n", pa.int64())], {"kcap.table": "t"})
    short = with_texts(plain, coded=True)
    batch = pa.RecordBatch.from_arrays([pa.array(["x", None, "x"]), pa.array([1, 2, 3])], schema=plain)
    encoded = as_schema(batch, short)
    assert encoded.schema.equals(short, check_metadata=True)
    assert short.field("a").metadata == {b"doc": b"x"}
    assert as_schema(encoded, with_texts(short, coded=False)).equals(batch, check_metadata=True)
    assert as_schema(batch, plain) is batch
