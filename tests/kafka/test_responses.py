"""A broker's stream as responses."""

import struct
from collections.abc import Iterable
from dataclasses import replace

import pytest

from kcap import limits
from kcap.kafka.frames import FLAG
from kcap.kafka.resync import Region
from tests.support.wire import Tap, analyze, metadata, metadata_answer, produce_answer, request, response


def test_several_answers_in_one_segment() -> None:
    tap = Tap().open().client(b"".join(metadata(i) for i in range(4))).server(b"".join(metadata_answer(i, i) for i in range(4)))
    seen = analyze(tap.segments)
    assert [r[0] for r in seen.brief("response_bytes")] == [20, 36, 52, 68]
    assert len({r["response_first_ref"] for r in seen.rows}) == 1


def test_the_answer_before_is_what_a_request_queues_behind() -> None:
    tap = Tap().open().client(metadata(1)).client(metadata(2)).server(metadata_answer(1)).server(metadata_answer(2))
    first, second = analyze(tap.segments).brief("previous_ns", "response_last_ns")
    assert first[0] is None
    assert second[0] == first[1]


def test_an_answer_is_one_once_its_correlation_id_was_seen() -> None:
    """The rest may be cut away by the end of the capture."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1, 100)[:9])
    assert analyze(tap.segments).brief("outcome", "response_bytes", "response_last_ns", "response_flags") == [
        ("answered", 1620, None, FLAG["truncated"])
    ]


def test_a_search_takes_only_an_answer_whose_body_fits() -> None:
    """Small ids stand anywhere in a body."""
    tap = Tap().open().client(metadata(1) + metadata(2) + metadata(3))
    tap.server(metadata_answer(1))
    tap.server(response(77, b"\0\0\0\x0a\0\0\0\2\0\0\0\0\0\0\0\3junk"))
    tap.server(metadata_answer(2) + metadata_answer(3))
    lost = [*tap.segments[:5], replace(tap.segments[5], payload=tap.segments[5].payload[3:], seq=tap.segments[5].seq + 3)]
    seen = analyze(lost + tap.segments[6:])
    assert seen.brief("correlation_id", "outcome", "response_bytes") == [(i, "answered", 20) for i in (1, 2, 3)]


def test_a_search_looks_for_what_was_captured_once_and_not_for_each_id(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, asked = limits.IDS_SEARCHED, 0
    captured = Region.captured

    def counted(region: Region, start: int) -> Iterable[tuple[int, int]]:
        nonlocal asked
        asked += 1
        return captured(region, start)

    tap = Tap().open().client(b"".join(metadata(i) for i in range(1, ids + 1)))
    tap.server(metadata_answer(1))
    cut = len(tap.segments)
    tap.server(response(77, b"\0\0\0\x0a\0\0\0\2\0\0\0\0\0\0\0\3junk"))
    tap.server(b"".join(metadata_answer(i) for i in range(2, ids + 1)))
    first = tap.segments[cut]
    lost = [*tap.segments[:cut], replace(first, payload=first.payload[3:], seq=first.seq + 3)]
    monkeypatch.setattr(Region, "captured", counted)
    seen = analyze(lost + tap.segments[cut + 1 :])
    assert seen.brief("correlation_id", "outcome") == [(i, "answered") for i in range(1, ids + 1)]
    assert 0 < asked < ids


def test_a_search_does_not_believe_a_body_that_makes_no_sense_so_far() -> None:
    """A length and an id in the middle of a body, a frame that would end in a hole: what was captured of it says no."""
    body = b"junk" + (8 + 4 + 40 + 20 + 4 - 4).to_bytes(4, "big") + b"\0\0\0\3\xff\xff\xff\x01" + bytes(40)
    tap = Tap().open().client(metadata(1) + metadata(2) + metadata(3) + metadata(4))
    for reply in (metadata_answer(1), response(77, body), metadata_answer(2), metadata_answer(3), metadata_answer(4)):
        tap.server(reply)
    tap.close()
    lost = (4, 7)
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at not in lost])
    assert [row[0] for row in seen.brief("correlation_id", "outcome") if row[1] == "answered"] == [2, 4]


def test_an_answer_with_a_reserved_id_may_come_before_its_request() -> None:
    """Java clients authenticate again with ids near the largest, far from all others."""
    again = (1 << 31) - 8
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(again)).server(metadata_answer(again))
    tap.client(metadata(2)).server(metadata_answer(2))
    swapped = [*tap.segments[:5], tap.segments[6], tap.segments[5], *tap.segments[7:]]
    seen = analyze(swapped)
    assert sorted(row[0] for row in seen.brief("correlation_id", "outcome") if row[1] == "answered") == [1, 2, again]
    assert not seen.weirds


def test_an_answer_is_believed_before_the_next_request_is_known() -> None:
    """The requests may stand behind a hole of their own, while answers behind one are searched already."""
    tap = Tap().open().client(metadata(1) + metadata(2))
    tap.client(metadata(3)).server(metadata_answer(1)).server(metadata_answer(2)).server(metadata_answer(3))
    tap.segments.append(tap.segments.pop(4))
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at != 4])
    assert [row for row in seen.brief("correlation_id", "outcome") if row[1] == "answered"] == [
        (2, "answered"),
        (3, "answered"),
    ]


def test_an_answer_that_a_segment_begins_with_is_believed_by_where_the_next_one_stands() -> None:
    """Old brokers write a response's head and body apart; here a body is lost, and with it the next request."""
    tap = Tap().open()
    for number in range(1, 6):
        tap.client(metadata(number))
        reply = metadata_answer(number, 4)
        tap.server(reply[:20]).server(reply[20:60]).server(reply[60:])
    client_of_4, first_of_2, middle_of_3 = 15, 8, 13  # three to open, then four a number
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at not in (client_of_4, first_of_2, middle_of_3)])
    reported = {row[0]: row[1] for row in seen.brief("correlation_id", "outcome", "response_bytes")}
    assert reported[3] == "answered"
    assert reported[2] == "unanswered"


def test_no_answer_has_a_negative_id_where_clients_count_from_zero() -> None:
    """A length prefix that is too small makes the middle of a body look like a response."""
    broken = response(2, bytes(4) + b"\0\0\0\x10\xff\xff\xff\xff" + bytes(12))
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2))
    tap.server((8).to_bytes(4, "big") + broken[4:]).client(metadata(3)).server(metadata_answer(3)).client(metadata(4))
    tap.server(metadata_answer(4))
    seen = analyze(tap.close().segments)
    assert -1 not in [row[0] for row in seen.brief("correlation_id", "outcome")]
    assert [row[0] for row in seen.brief("correlation_id", "outcome") if row[1] == "answered"] == [1, 2, 3, 4]


def test_two_small_numbers_before_a_hole_are_no_answer() -> None:
    """An id that has waited long, and a number that could be a length, stand in the body of an answer nobody waits for yet."""
    tap = Tap().open()
    for number in range(1, 4):
        tap.client(metadata(number))
    tap.server(metadata_answer(1))
    tap.server(response(77, bytes(90)))  # lost, and with it the answer to 2
    body = (17).to_bytes(4, "big") + (2).to_bytes(4, "big") + bytes(40)
    tap.server(response(9, body)[:16]).server(response(9, body)[16:30]).server(response(9, body)[30:])
    tap.client(metadata(9))
    tap.server(metadata_answer(3))
    tap.close()
    first_lost = 3 + 3 + 1
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at not in (first_lost, first_lost + 2)])
    assert (2, "answered") not in seen.brief("correlation_id", "outcome")


def test_an_answer_nobody_asked_for_is_not_as_long_as_a_slipped_prefix_says() -> None:
    """A length that is four bytes short makes a prefix of the end of a body, and an id of the next length."""
    short = (4 + 12).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(12) + b"\1\0\0\0"
    tap = Tap().client(metadata(1)).client(metadata(2)).server(short + metadata_answer(2, 1))
    seen = analyze(tap.segments).brief("correlation_id", "outcome")
    assert [row for row in seen if row[1] == "orphan"] == []
    assert (2, "answered") in seen


def test_an_id_is_not_taken_for_a_length() -> None:
    """A length that is four bytes too long makes a length of the next id, and an id of the throttle time behind it."""
    long = (4 + 16).to_bytes(4, "big") + (298).to_bytes(4, "big") + bytes(12)
    tap = Tap().client(metadata(297)).server(metadata_answer(297)).client(metadata(298)).client(metadata(299)).server(long)
    tap.server(metadata_answer(299))
    for number in (300, 301):
        tap.client(metadata(number)).server(metadata_answer(number))
    seen = analyze(tap.segments).brief("correlation_id", "outcome")
    assert [row for row in seen if row[1] == "orphan"] == []
    assert (301, "answered") in seen


def test_a_segment_that_begins_with_a_length_is_not_read_from_its_id_on() -> None:
    """The request is not in the capture; its id and a throttle time of 0 look like a length and an old id."""
    tap = Tap().open().client(metadata(0)).server(metadata_answer(0)).client(metadata(1)).server(metadata_answer(1))
    tap.client(metadata(9)).server(metadata_answer(9)).client(metadata(32))
    reply = response(32, bytes(4) + metadata_answer(0, 1)[8:] + bytes(80))
    for low in range(0, len(reply), 40):
        tap.server(reply[low : low + 40])
    for number in (33, 34):
        tap.client(metadata(number)).server(metadata_answer(number))
    lost = {4, 7, 8, 9, 11}  # three to open; the answer to 0, all of 9, the request of 32 and what follows its answer's head
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at not in lost]).brief("correlation_id", "outcome")
    assert (0, "answered") not in seen
    assert (34, "answered") in seen


def test_a_response_is_not_made_of_bytes_that_the_broker_sent_before_the_request() -> None:
    """Behind a hole, a length and the id of a request that comes later stand inside of a body; with the request captured after
    them, they are its response only if their packet acknowledges it, as where a tap shows packets in another order."""
    inside = metadata_answer(7, 3)
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2)).server(metadata_answer(2)[:30])
    tap.server(metadata_answer(2)[30:]).server(inside).client(metadata(6)).client(metadata(7))
    del tap.segments[6]
    found = analyze(tap.segments).brief("correlation_id", "outcome")
    assert (7, "unanswered") in found
    assert (7, "answered") not in found
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2)).server(metadata_answer(2)[:30])
    tap.server(metadata_answer(2)[30:]).client(metadata(7)).server(inside)
    tap.segments[-2:] = reversed(tap.segments[-2:])
    del tap.segments[6]
    assert (7, "answered") in analyze(tap.segments).brief("correlation_id", "outcome")


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 2), (0, 3), (1, 2), (0, 1), (1, 3)])
def test_a_lost_login_moves_no_other(lost: tuple[int, ...]) -> None:
    """Each login has the same ids again: a response is never that to a login before or after its own."""
    tap, sizes, gone = Tap().open(), {}, []
    for at in range(5):
        start = len(tap.segments)
        for number in (2147483640, 2147483641, 10 + 3 * at, 11 + 3 * at, 12 + 3 * at):
            sizes[tap.time_ns] = len(metadata_answer(number, 3 + at))
            tap.client(metadata(number)).server(metadata_answer(number, 3 + at))
        gone += [start + place for place in lost if at in (1, 3)]
    rows = analyze([segment for place, segment in enumerate(tap.segments) if place not in gone]).rows
    answered = [row for row in rows if row["outcome"] == "answered"]
    assert all(row["response_bytes"] == sizes[row["request_first_ns"]] for row in answered)
    assert len(answered) >= 21, "behind a lost request, resync does not find one with a login's id"


def test_ids_of_a_login_say_nothing_of_those_that_clients_count() -> None:
    """Java clients log in with the highest ids and then go on from 0; answers may be seen before their requests."""
    tap = Tap().open()
    ids = (2147483640, 2147483641, 5, 4)
    for number in ids:
        tap.client(metadata(number)).server(metadata_answer(number, 3))
    order = (0, 1, 2, 3, 4, 6, 7, 8, 5, 10, 9)  # the second request and the last one come after their answers
    seen = analyze([tap.segments[at] for at in order]).brief("correlation_id", "outcome")
    assert sorted(seen) == sorted((number, "answered") for number in ids)


def test_an_id_and_what_follows_it_are_no_response_without_a_body() -> None:
    """Behind a hole, the id 4 of a response and the count 1 behind it look like a response of four bytes to request 1."""
    tap = Tap().open().client(metadata(1)).client(metadata(2))
    tap.add(1, 24, metadata_answer(1) + metadata_answer(2))
    del tap.segments[-1]
    tap.server(metadata_answer(3) + produce_answer(4) + metadata_answer(5))
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "response_bytes", "outcome") == [(1, None, "unanswered"), (2, None, "unanswered")]


def test_zeros_before_a_gap_are_no_length_and_id() -> None:
    """Of a response that reaches over a gap, some bytes at its beginning and an end near that of the stream prove nothing."""
    tap = Tap().open().client(metadata(0))
    tap.client(b"".join(metadata(i) for i in range(1, 8)))
    answers = b"".join(metadata_answer(i) for i in range(7)) + metadata_answer(7, 11)
    for size in (60, 60, 200, 16):
        tap.server(answers[:size])
        answers = answers[size:]
    assert not answers
    kept = [s for s in tap.segments if len(s.payload) not in (168, 200)]
    assert kept.pop(4).payload[:8] == response(0)[:3] + b"\x10\0\0\0\0"
    assert analyze(kept).brief("correlation_id", "outcome", "response_bytes") == [(0, "unanswered", None)]


def test_the_size_of_records_and_the_offset_behind_it_are_no_response() -> None:
    """Records end a Fetch response: their size ends where the frame does, and the first half of an offset is the id 0."""
    tap = Tap().open().client(metadata(0)).client(metadata(1))
    inner = bytes(4) + b"\0\0\0\2" + b"\0\0\0\1" + b"\0\3abc" + bytes(20)
    whole = response(0, b"\0\0\0\x0a" + bytes(40) + b"junk" + len(inner).to_bytes(4, "big") + inner)
    for part in (whole[:52], whole[52:-12], whole[-12:], metadata_answer(1)):
        tap.server(part)
    kept = [segment for at, segment in enumerate(tap.segments) if at not in (5, 7)]
    seen = analyze(kept).brief("correlation_id", "outcome", "response_bytes")
    assert (0, "unanswered", None) in seen, seen


def test_what_stands_behind_a_hole_is_no_evidence_for_a_frame_that_the_capture_does_not_end() -> None:
    claimed = (4 << 20).to_bytes(4, "big") + (5).to_bytes(4, "big") + b"\0\0\0\x0a" + b"\0\0\0\1\x70\0" + b"host" * 6
    tap = Tap().open().client(metadata(5)).server(b"lost").server(claimed)
    for _ in range(3):
        tap.server(b"x" * 1400)
    kept = [segment for at, segment in enumerate(tap.segments) if at not in (4, 6)]
    seen = analyze(kept).brief("correlation_id", "outcome", "response_bytes")
    assert (5, "unanswered", None) in seen, seen


@pytest.mark.parametrize(("size", "outcome"), [(1616, "answered"), (0x05000028, "unanswered")])
def test_a_response_whose_end_is_missing_is_believed_by_a_share_of_it(size: int, outcome: str) -> None:
    """What reads as a body so far does not prove a length of 80 MB, which is a prefix that begins a byte too late."""
    head = size.to_bytes(4, "big") + metadata_answer(5, 100)[4:400]
    tap = Tap().open().client(metadata(5)).server(b"lost").server(head)
    kept = [segment for at, segment in enumerate(tap.segments) if at != 4]
    assert analyze(kept).brief("correlation_id", "outcome") == [(5, outcome)]


PARTITION = struct.pack(">ihqqqbib", 0, 0, 17, 17, 0, 0, -1, 1) + b"\0"
"""A partition of a Fetch v13 response: high watermark and last stable offset 17, no records."""


def test_the_partition_behind_an_offset_is_no_response_to_the_id_0() -> None:
    """From the second half of an offset of 17 on, a partition reads as a Fetch response of 21 bytes, to the last one."""
    fetch = request(1, 13, 0, b"\0" + bytes(34), "fetcher")
    body = b"\0" + bytes(10) + b"\2" + bytes(16) + b"\3" + PARTITION * 2 + b"\0\0"
    for behind in (response(9, b"\0" + bytes(12)), response(3, b"\0" + bytes(12)), b""):
        tap = Tap().open().client(fetch).server(response(0, body)[:30]).server(response(0, body)[30:] + behind)
        seen = analyze([segment for at, segment in enumerate(tap.segments) if at != 4])
        assert ("unanswered", 0, None) in seen.brief("outcome", "correlation_id", "response_bytes"), seen.rows


def test_the_same_id_again_is_no_evidence_for_a_response() -> None:
    """A length and the id 5, whose end is where they stand again: one request has one response."""
    inner = struct.pack(">iiiii", 16, 5, 0, 0, 0)
    tap = Tap().open().client(metadata(5)).server(b"lost" * 5).server(b"junk" + inner + inner + b"junk")
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at != 4])
    assert seen.brief("outcome", "response_bytes") == [("unanswered", None)]


def test_the_first_bytes_of_a_capture_are_no_response_of_megabytes_for_a_small_number() -> None:
    """What a broker writes behind the head of a response may stand first; a request with such an id may come much later."""
    tail = bytes.fromhex("0101090000000100000001000001001602000000010b3132372e312e302e31310000238500 00".replace(" ", ""))
    tap = Tap().server(tail)
    for number in range(200, 256):
        tap.client(metadata(number)).server(metadata_answer(number))
    tap.client(request(1, 4, 256, bytes(21)))
    seen = analyze([segment for at, segment in enumerate(tap.segments) if segment.payload[:4] != b"\0\0\0\x10"])
    assert ("answered", 256) not in seen.brief("outcome", "correlation_id")


def test_the_first_response_may_be_cut_by_the_snapshot_length_where_its_length_is_that_of_its_segment() -> None:
    """Of 1,620 bytes 62 were captured: too few for a length that nothing confirms."""
    for behind, outcome in ((b"", "answered"), (b"more", "unanswered")):
        tap = Tap().client(metadata(5)).server(metadata_answer(5, 100) + behind, size=2000)
        cut = [replace(segment, cut=max(0, len(segment.payload) - 62)) for segment in tap.segments]
        assert analyze(cut).brief("correlation_id", "outcome") == [(5, outcome)]
