"""Oddities in packed form are those that were reported."""

import pickle
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from kcap.identities import uid_of_number
from kcap.model import REF_FILE_SHIFT
from kcap.sightings import Sightings
from kcap.weird import Weird, WeirdKind

UIDS = st.one_of(st.none(), st.integers(0, 3).map(uid_of_number), st.integers(0, (1 << 64) - 1).map(uid_of_number))
REPORTS = st.lists(
    st.tuples(
        st.sampled_from([WeirdKind.GAP, WeirdKind.ORPHAN, WeirdKind.DECODER_FAILED]),
        st.text(max_size=3) | st.just("\ud800"),
        st.integers(0, 3).map(lambda at: at >> 1 << REF_FILE_SHIFT | at & 1) | st.integers(0, (1 << 62) - 1),
        st.integers(0, (1 << 63) - 1),
        UIDS,
        st.integers(1, 9),
    ),
    max_size=60,
)


@given(REPORTS, st.integers(0, 30))
def test_what_comes_out_is_what_went_in(reports: list[tuple[WeirdKind, str, int, int, str | None, int]], most: int) -> None:
    """Law: as objects in a dictionary that are sorted; above `most`, oddities of further connections are those of none."""
    packed = Sightings()
    plain: dict[tuple[WeirdKind, str | None], tuple[Weird, int]] = {}
    for at, (kind, detail, ref, position, uid, count) in enumerate(reports):
        if at == len(reports) // 2:
            packed = pickle.loads(pickle.dumps(packed))
        packed.count(kind, detail, ref, position, uid, count, most)
        key = kind, None if len(plain) >= most and (kind, uid) not in plain else uid
        file, packet = divmod(ref, 1 << REF_FILE_SHIFT)
        weird, before = plain.get(key, (Weird(kind, detail, file, packet, position, key[1]), 0))
        plain[key] = weird, before + count
    assert len(packed) == len(plain)
    assert list(packed) == sorted(plain.values(), key=lambda one: (one[0].file, one[0].packet, one[0].connection or ""))
    assert list(packed.entered()) == list(plain.values())


def test_a_flood_of_oddities_takes_little_memory() -> None:
    """Each of its own connection, every other with a detail of its own."""

    def flood() -> Sightings:
        packed = Sightings()
        for at in range(5000):
            detail = f"{at} bytes" if at % 2 else "no request"
            packed.count(WeirdKind.ORPHAN, detail, at, 1000 * at, uid_of_number(at << 40), 1, 1 << 16)
        return packed

    flood()  # kernels are loaded
    tracemalloc.start()
    try:
        packed = flood()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(packed) == 5000
    assert held < 80 * len(packed)
