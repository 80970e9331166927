"""A link type that is not read is named."""

from kcap.net.link_names import LINK_NAMES, link_name
from tests.capture.handmade import batch_of
from tests.net.engines import both


def test_a_link_type_is_named_by_number_and_name() -> None:
    assert link_name(189) == "link type 189 USB_LINUX"
    assert link_name(9999) == "link type 9999"


def test_each_named_link_type_is_one_that_is_not_read() -> None:
    for link in LINK_NAMES:
        if link != 149:  # USER2, which is Apple's PKTAP in older captures
            seen = both(batch_of(bytes(80), link=link))[1].seen
            assert [detail.partition(";")[0] for _, detail, *_ in seen] == [link_name(link)]
