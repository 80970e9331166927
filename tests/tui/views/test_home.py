"""What views need of an app."""

from kcap.tui.app import KcapApp
from kcap.tui.views.home import Home, knows_partitions, later
from tests.tui.views.stub import EmptyBook, StubApp, StubBook


def names_of(interface: type) -> set[str]:
    """The members that an interface adds to those that it extends."""
    return {name for name in (*vars(interface), *interface.__annotations__) if not name.startswith("_")}


NEEDED = names_of(Home)


def test_the_app_has_what_views_need() -> None:
    of_an_instance = {"book", "look", "pair", "other", "places", "show_secrets"}
    of_the_class = {
        "selected", "save_settings", "narrow", "show_exchange", "seek_records", "save_text", "save_packets", "mark",
        "free_screens",
    }  # fmt: skip
    assert of_an_instance | of_the_class == NEEDED
    app = StubApp(StubBook("pipelined.pcap"), "health")
    for name in NEEDED - of_an_instance:
        assert hasattr(KcapApp, name)
        assert hasattr(app, name)


def test_partitions_are_asked_for_when_reading_is_over() -> None:
    assert not knows_partitions(EmptyBook("reading"))  # type: ignore[arg-type]
    assert not knows_partitions(EmptyBook("done"))  # type: ignore[arg-type]
    assert knows_partitions(StubBook("pipelined.pcap"))  # type: ignore[arg-type]


def test_what_is_not_there_has_its_reason() -> None:
    assert later(EmptyBook("reading"), "names") == "names are available when the capture has been read"  # type: ignore[arg-type]
    assert later(EmptyBook("failed"), "names") == "the capture was not read to its end: names are not available"  # type: ignore[arg-type]
