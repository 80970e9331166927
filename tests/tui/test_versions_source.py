"""The view of versions is computed alike in this process and in one of its own."""

import os
from collections.abc import Iterator

import pytest

from kcap.errors import UsageError
from kcap.schema.facts import releases
from kcap.tui import versions_source
from kcap.tui.spill import PROFILES, unpickled
from kcap.tui.versions_source import VersionsInside, VersionsProcess, VersionsRequest, source_of
from tests.tui.driving import book_of

REQUEST = VersionsRequest(["java-transactions.pcap"], releases()[-1])


@pytest.fixture(scope="module")
def path() -> str:
    return os.path.join(book_of("java-transactions.pcap").folder, PROFILES)


@pytest.fixture
def process(path: str) -> Iterator[VersionsProcess]:
    made = VersionsProcess(path)
    yield made
    made.close()


def test_both_forms_give_the_same(path: str, process: VersionsProcess) -> None:
    inside = VersionsInside(unpickled(path))
    assert inside.story("C") is None, "before there is a page"
    page = inside.page(REQUEST)
    assert process.page(REQUEST) == page
    assert page.connections == len(page.rows)
    for row in page.rows:
        assert process.story(row["connection"]) == inside.story(row["connection"])
    some = page.rows[0]["connection"]
    filtered = VersionsRequest(REQUEST.files, releases()[0], "text", {some})
    assert process.page(filtered) == inside.page(filtered)
    assert [row["connection"] for row in inside.page(filtered).rows] == [some]


def test_an_error_of_the_other_process_is_raised_here_and_it_goes_on(process: VersionsProcess) -> None:
    process.page(REQUEST)
    with pytest.raises((UsageError, RuntimeError)):
        process.story("Cnone")
    assert process.page(REQUEST).rows


def test_whoever_waits_hears_of_the_end(process: VersionsProcess) -> None:
    process.close()
    with pytest.raises((EOFError, OSError)):
        process.page(REQUEST)


def test_no_story_is_waited_for_while_a_page_is_computed(process: VersionsProcess) -> None:
    with process._turn:
        assert process.story("C") is None


def test_many_profiles_are_computed_in_a_process_of_its_own(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(source_of(path), VersionsInside)
    monkeypatch.setattr(versions_source, "PROFILES_INSIDE_BYTES", 1)
    made = source_of(path)
    assert isinstance(made, VersionsProcess)
    made.close()
