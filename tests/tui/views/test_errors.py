"""The view of errors in a terminal."""

from tests.tui.views.stub import StubBook, drive


def test_sections() -> None:
    book = StubBook("raw-frames.pcap")
    assert "UNSUPPORTED_VERSION  code 35" in drive(book, "errors").text
    assert "fin" in drive(book, "errors", "2").text
    (text,) = drive(book, "errors", "enter").narrowed
    assert text == '&& error_code != 0 && error == UNSUPPORTED_VERSION && api == ApiVersions && client_id == "relic-raw"'


def test_sections_without_a_grouping_neither_name_one_nor_offer_its_key() -> None:
    book = StubBook("raw-frames.pcap")
    assert drive(book, "errors").lines[0].startswith(" Errors · by error, api, client_id ")
    assert "B Group" in drive(book, "errors").text
    for key, name in (("2", "unanswered"), ("3", "retries"), ("4", "leader changes")):
        seen = drive(book, "errors", key)
        assert seen.lines[0].startswith(f" Errors · {name} ")
        assert "B Group" not in seen.text


def test_without_partitions_exchanges_count() -> None:
    class Some(StubBook):
        def table(self, name: str) -> None:  # type: ignore[override]
            return None

    seen = drive(Some("librdkafka-zstd.pcap"), "errors", "B")
    assert seen.lines[0].startswith(" Errors · by error, topic ")
    assert "cannot be made" not in seen.text
    for key in ("3", "4"):
        shown = drive(Some("librdkafka-zstd.pcap"), "errors", key).text
        assert "the partitions are read from the capture" in shown, "there may be some"
        assert "no retries" not in shown
