"""The plain interpreter on its own: what the projection's laws do not show."""

from itertools import pairwise

from kcap.decode.interpreter import COMPLETE, MALFORMED, SHORT, State, run
from kcap.decode.programs import ROWS, program_index
from kcap.decode.projection import project
from kcap.decode.slots import BATCH_COUNT, ERROR_CODE, ERROR_COUNT, RECORD_COUNT, TOP_ERROR
from tests.decode.oracle import columns
from tests.decode.samples import decode, vectors
from tests.decode.test_projection import batch, read, text

HEARTBEAT, API_VERSIONS, FETCH = 12, 18, 1


def state_of(key: int, version: int, side: int, body: bytes) -> State:
    state = State()
    state.begin(0, program_index(key, version, side), 0)
    run(state, ROWS, body, len(body))
    return state


def test_an_error_is_only_known_when_it_is_sure() -> None:
    """Of a cut response the outermost error counts at once, "no error" only when the end was seen."""
    body = bytes.fromhex("0000000000000000")
    assert state_of(HEARTBEAT, 4, 1, body).mask >> ERROR_CODE & 1
    cut = state_of(HEARTBEAT, 4, 1, body[:-1])
    assert (cut.status, cut.mask >> ERROR_CODE & 1, cut.mask >> TOP_ERROR & 1) == (SHORT, 0, 1)
    failed = state_of(HEARTBEAT, 4, 1, bytes.fromhex("0000000000001b"))
    assert (failed.status, failed.values[ERROR_CODE], failed.mask >> ERROR_CODE & 1) == (SHORT, 27, 1)
    assert not failed.mask >> ERROR_COUNT & 1


def test_a_refused_version_is_read_as_it_is_written() -> None:
    """ApiVersions: error 35 is version 0 whatever the request's version, any other error is not."""
    refusal = bytes.fromhex("002300000001001200000004")
    for version in (1, 3, 4):
        state = state_of(API_VERSIONS, version, 1, refusal)
        assert (state.status, state.values[ERROR_CODE]) == (COMPLETE, 35)
    assert state_of(API_VERSIONS, 3, 1, refusal.replace(b"\0\x23", b"\0\0")).status != COMPLETE


def test_odd_batches_end_the_walk() -> None:
    """A batch that is cut, of an unknown magic or shorter than its header is not counted; the message goes on behind."""
    good = bytes(8) + (49).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(40) + (3).to_bytes(4, "big")
    assert len(good) == 61
    for odd in (good[:60], good[:16] + b"\x03" + good[17:], good[:8] + (20).to_bytes(4, "big") + good[12:], b"noise"):
        records = good + odd
        head = bytes.fromhex("000000000000000100017400000001000000000000") + bytes(16) + bytes(4)
        body = head + len(records).to_bytes(4, "big") + records
        state = state_of(FETCH, 4, 1, body)
        assert (state.status, state.values[BATCH_COUNT], state.values[RECORD_COUNT]) == (COMPLETE, 1, 3)


def test_impossible_lengths_are_malformed() -> None:
    """Negative lengths and endless varints are damage, not a wait for more."""
    assert state_of(HEARTBEAT, 0, 0, bytes.fromhex("8000")).status == MALFORMED
    assert state_of(HEARTBEAT, 4, 0, b"\0" + b"\xff" * 9).status == MALFORMED
    assert state_of(FETCH, 4, 1, bytes.fromhex("0000000080000000")).status == MALFORMED
    assert state_of(HEARTBEAT, 4, 0, b"\0" + bytes.fromhex("818004")).status == MALFORMED


def test_every_value_equals_the_trees() -> None:
    """Law: projection = tree, for every vector."""
    found = [v for v in vectors("messages") if v.get("note") != "a string is not UTF-8"]
    buffer, starts, ends, programs = batch(found)
    result = project(buffer, starts, ends, programs, engine="plain")
    for at, vector in enumerate(found):
        body = decode(vector).tree().find("body")
        assert body is not None
        want = columns(body, vector["api_key"], vector["version"], int(vector["kind"] == "response"))
        got = read(result, buffer, at)
        want_topics, got_topics = want.pop("topics"), got.pop("topics")
        want_topics = [one for before, one in pairwise([None, *want_topics]) if one != before or any(one)]
        assert {name: text(value) for name, value in got.items()} == want, vector["api"]
        assert [text(name) for name, _ in got_topics] == [name for name, _ in want_topics]
        assert [uuid is None for _, uuid in got_topics] == [uuid is None for _, uuid in want_topics]
        assert result.status[at] == COMPLETE
        assert result.position[at] == ends[at]
