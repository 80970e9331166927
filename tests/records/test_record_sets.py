"""Records fields as a whole: equal to Kafka's readers, and safe with any bytes."""

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kcap
from kcap.records.batch import Record
from kcap.records.record_sets import count_wrapped, decode_records, plain_size
from tests.decode.samples import sample, vectors
from tests.records.batches import batch, message, record


def test_every_vector_equals_kafkas() -> None:
    """Law: batches, records and trailing bytes as Kafka's own reader reports them."""
    for vector in vectors("records"):
        found = kcap.decode_records(bytes.fromhex(vector["hex"])).to_json()
        assert found == {"batches": vector["batches"], "trailing_bytes": vector["trailing_bytes"]}, vector["case"]


def test_every_cut_keeps_the_batches_before_it() -> None:
    """Of a blob cut at any byte the complete batches are the same, the rest is trailing."""
    for vector in sample("records")[::9]:
        blob = bytes.fromhex(vector["hex"])
        for cut in range(len(blob)):
            found = decode_records(blob[:cut])
            assert sum(b.size for b in found.batches) + found.trailing_bytes == cut
            want = vector["batches"][: len(found.batches)]
            assert [b.base_offset for b in found.batches] == [b["base_offset"] for b in want]


def test_damaged_batches_are_still_described() -> None:
    """One byte changed anywhere: no exception, and the sizes add up."""
    chance = random.Random(4)
    for vector in sample("records"):
        blob = bytearray.fromhex(vector["hex"])
        if not blob:
            continue
        blob[chance.randrange(len(blob))] ^= 1 << chance.randrange(8)
        found = decode_records(blob)
        found.to_json()
        assert sum(b.size for b in found.batches) + found.trailing_bytes == len(blob)


@given(st.binary(max_size=120), st.sampled_from([b"", batch(record()), message(b"x")]))
def test_any_bytes(tail: bytes, head: bytes) -> None:
    """Law: nothing raises."""
    decode_records(head + tail).to_json()


def test_a_wrapper_is_counted() -> None:
    """What the projection leaves out of record_count."""
    import gzip

    inner = message(b"a", offset=0) + message(b"b", offset=1)
    blob = b"before" + message(gzip.compress(inner), codec=1, offset=7) + b"behind"
    assert count_wrapped(blob, 6, len(blob) - 6, len(blob)) == 2


def test_a_wrapper_that_its_body_does_not_hold_whole_has_no_records() -> None:
    """As in `decode_records`: what stands behind the body is not its own, and may be too short for a header."""
    import gzip

    blob = message(gzip.compress(message(b"a", offset=0)), codec=1, offset=7)
    assert count_wrapped(blob + b"of the next body", 0, len(blob) + 8, len(blob)) == 0
    assert count_wrapped(blob[:12], 0, len(blob), 12) == 0


def test_reading_is_lazy() -> None:
    """A batch of magic 2 is not decompressed before its records are asked for."""
    found = decode_records(batch(b"not zstd", codec=4))
    (only,) = found.batches
    assert only._contents is None
    assert only.records == []
    assert only.fault


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_bomb_stays_small(codec: str) -> None:
    """50 MB of zeros in a few kilobytes: the batch is described, its records are not read, memory stays below the limit."""
    program = (
        "import resource, sys, zlib, zstandard, kcap\n"
        "from tests.records.batches import batch\n"
        "zeros = zlib.compressobj(wbits=31) if sys.argv[1] == 'gzip' else zstandard.ZstdCompressor().compressobj()\n"
        "packed = b''.join(zeros.compress(bytes(1 << 20)) for _ in range(50)) + zeros.flush()\n"
        "blob = batch(packed, codec=1 if sys.argv[1] == 'gzip' else 4)\n"
        "kcap.decode_records(b'')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = kcap.decode_records(blob)\n"
        "assert 'more than' in found.batches[0].fault, found.batches[0].fault\n"
        "assert found.to_json()['batches'][0]['undecoded']\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, codec], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40 << 10


def test_plain_sizes() -> None:
    """Law: the same records take the same plain bytes with and without a codec; what does not inflate has none."""
    checked = 0
    for vector in vectors("records"):
        for found in decode_records(bytes.fromhex(vector["hex"])).batches:
            size = plain_size(found)
            if not found.codec_id:
                assert size == found.size
            elif found.magic == 2 and not found.fault:
                records = sum(record_bytes(record) for record in found.records)
                assert size is not None
                assert 0 <= size - 61 - records <= 60 * len(found.records), "lengths, deltas and headers stand beside"
                checked += 1
            else:
                assert (size is None) == bool(found.fault) or found.magic < 2
    assert checked > 20


def record_bytes(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
