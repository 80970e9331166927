"""Laws of bodies that are read whole: they start behind the header's tags, and nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from kcap.facts.message_json import behind_tags, read
from tests.support import messages as m


def test_a_body_starts_behind_the_tags_of_its_header() -> None:
    tags = b"\x02\x00\x01x\x05\x00"
    asked = m.metadata(1)[4 + 8 + 2 + len("app") :]
    assert behind_tags(asked, 3, 12, 0) == 1
    assert behind_tags(tags + asked[1:], 3, 12, 0) == len(tags)
    assert behind_tags(asked, 3, 1, 0) == 0, "header version 1 has none"
    reported = m.metadata_answer(1, [(1, "a", 9)], "C")[8:]
    assert read(tags + reported[1:], 3, 12, 1) == read(reported, 3, 12, 1)
    assert read(reported, 3, 12, 1)["clusterId"] == "C"
    assert behind_tags(m.api_versions_answer(1, {})[8:], 18, 3, 1) == 0, "its header never has any (KIP-511)"


@given(st.binary(max_size=60), st.sampled_from([3, 10, 17, 18, 36, 60, 62]), st.integers(-1, 15), st.integers(0, 1))
def test_no_body_raises(data: bytes, key: int, version: int, side: int) -> None:
    assert 0 <= behind_tags(data, key, version, side) <= len(data)
    assert isinstance(read(data, key, version, side), dict)
