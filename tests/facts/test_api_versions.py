"""Laws of ApiVersions: its bodies tell the client's software and the broker's ranges; a refusal offers nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts.api_versions import Offer, offer_of, software_of
from tests.support import messages as m

RANGES = st.dictionaries(st.integers(0, 92), st.tuples(st.integers(0, 9), st.integers(9, 20)), min_size=1, max_size=60)


@given(RANGES)
def test_an_answer_offers_its_ranges(ranges: dict[int, tuple[int, int]]) -> None:
    body = m.api_versions_answer(1, ranges)[8:]
    offer = offer_of(body, 3)
    assert offer is not None
    assert offer.ranges == ranges


def test_an_answer_without_end_offers_its_first_apis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OFFERED_APIS_MAX", 50)
    body = m.api_versions_answer(1, dict.fromkeys(range(100), (0, 9)))[8:]
    offer = offer_of(body, 3)
    assert offer is not None
    assert offer.ranges == dict.fromkeys(range(50), (0, 9))


@given(RANGES)
def test_equal_offers_are_packed_alike(ranges: dict[int, tuple[int, int]]) -> None:
    assert Offer(ranges).packed == Offer(dict(reversed(ranges.items()))).packed


def test_a_refusal_offers_nothing() -> None:
    assert offer_of(m.refused_answer(1)[8:], 4) is None
    ranges = b"\0\x23" + m.many([b"\0\x12\0\0\0\x03"])
    assert offer_of(ranges, 4) is None, "from 2.4 on the range of ApiVersions itself stands in it"


def test_requests_name_their_software_from_version_3_on() -> None:
    body = m.api_versions(1, "librdkafka", "2.3.0")[4 + 8 + 2 + len("app") :]
    assert software_of(body, 3, 1) == ("librdkafka", "2.3.0")
    assert software_of(b"", 2, 0) is None


@given(st.binary(max_size=60), st.integers(-1, 9))
def test_nothing_raises(body: bytes, version: int) -> None:
    offer_of(body, version)
    software_of(body, version, 0)
