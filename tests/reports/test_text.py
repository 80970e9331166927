"""Tables for people: they fit, and lose the least telling first."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kcap.reports.definition import EDGES_NS, Row
from kcap.reports.text import (
    LISTED,
    REASONS,
    UNLIMITED,
    Style,
    TextColumn,
    assigned,
    count,
    duration_short,
    figures,
    fitted,
    folded,
    in_columns,
    instant,
    left_out,
    lines,
    milliseconds,
    size,
    spark,
    spark_log,
    story,
    words,
    wrapped,
)  # fmt: skip
from tests.reports.made import BASE_NS

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Style(80, color=False, unicode=True)

ASCII = Style(80, color=False, unicode=False)
LOST: Row = {
    "at_ns": 1_795_240_800_000_000_000, "client_id": "app", "api": "Produce", "topic": "t", "partition": 0,
    "error": "NOT_LEADER_OR_FOLLOWER", "metadata_after_ns": 5_000_000, "good_after_ns": 9_000_000, "tries": 1,
}  # fmt: skip


def column(name: str, rank: int = 0, right: bool = False) -> TextColumn:
    return TextColumn(name, lambda row: str(row[name]), right=right, rank=rank)


@given(st.lists(st.tuples(st.text("abc", max_size=60), st.integers(0, 10**12)), max_size=5), st.integers(45, 200))
def test_no_line_is_wider_than_the_terminal(drawn: list[tuple[str, int]], width: int) -> None:
    rows = [{"name": name, "number": number, "other": name} for name, number in drawn]
    columns = [column("name"), column("number", right=True), column("other", rank=1)]
    reported = lines(rows, columns, Style(width, color=False, unicode=True))
    assert max(map(len, reported)) <= width
    assert all(str(number) in line for (_, number), line in zip(drawn, reported[1:]))


def test_the_highest_rank_goes_first() -> None:
    rows = [{"a": "x" * 30, "b": "y" * 30, "c": "z" * 30}]
    head, _, *note = lines(rows, [column("a"), column("b", 1), column("c", 2)], Style(50, color=False, unicode=True))
    assert head.split() == ["a", "b"]
    assert " ".join(note) == "no room for the columns c; a wider terminal, a pipe or a file has them"


def test_sizes_and_durations() -> None:
    assert [size(n) for n in (None, 7, 999, 1000, 99_950, 10**6, 10**15)] == [
        "", "7 B", "999 B", "1.0 kB", "100 kB", "1.0 MB", "1000 TB",
    ]  # fmt: skip
    assert [milliseconds(n) for n in (None, 0, 1.5, 4061)] == ["", "0ms", "1.50ms", "4.06s"]


def test_what_is_not_nothing_is_seen() -> None:
    assert spark([0, 1, 1000, None], PLAIN) == " ▁█ "
    assert spark([0, 1, 1000], ASCII) == " .@"
    assert spark_log([1, 1000, None, 10**6], PLAIN)[0] == "▁"
    assert spark_log([None], PLAIN) == ""


def test_words() -> None:
    assert [words(value) for value in (None, True, ["a", 1], "x\x1by")] == ["-", "yes", "a, 1", "x\\x1by"]


def test_each_reason_of_rules_has_its_words() -> None:
    """A count without words of its own would be said to be of exchanges."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "kcap" / "reports").rglob("*.py")]
    reasons = {found for text in sources for found in re.findall(r"\), [A-Z_]{4,}, \"([a-z_]+)\"\)", text)}
    assert {"group_changes", "other_hosts", "silent_members"} <= reasons
    assert reasons <= REASONS.keys()


def test_what_is_left_out() -> None:
    assert left_out({"orphan": 1200, "no_codec": 1}) == (
        "not counted: 1,200 responses without a request, 1 exchange with no codec"
    )
    assert left_out({}) == ""
    assert wrapped("", 10) == []


def test_edges() -> None:
    assert [duration_short(edge) for edge in EDGES_NS[::5]] == ["1us", "300us", "100ms", "30s"]


def test_a_series_folds_without_losing_its_peak() -> None:
    assert folded([1, None, 9, 2], 2, max) == [1, 9]
    assert folded([None, None], 1, max) == [None]


def test_an_assignment_in_words() -> None:
    assert assigned({"topics": {"a": [0, 1], "b": [2]}}) == "a 0,1; b 2"
    assert assigned({"topics": {}}) == "nothing"
    assert assigned({"topics": {"0": [1]}, "tasks": ["0_1"]}) == "tasks 0_1"
    assert assigned({"topics": {}, "tasks": []}) == "nothing"


def test_stories_are_sentences() -> None:
    assert story(LOST).endswith("requested Metadata after 5.00ms, got a successful response after 9.00ms (1 more try)")
    assert story(LOST | {"good_after_ns": None, "metadata_after_ns": None}).endswith("no successful response in this capture")


@given(
    st.lists(st.tuples(st.text("ab ", max_size=90), st.text("cd", max_size=40)), min_size=1, max_size=5), st.integers(24, 200)
)
def test_columns_of_text_lose_no_letter_and_keep_to_the_room(rows: list[tuple[str, str]], room: int) -> None:
    lines_ = list(in_columns(rows, room))
    assert max(map(len, lines_), default=0) <= room
    letters = sorted(letter for row in rows for text in row for letter in text if letter != " ")
    assert sorted(letter for line_ in lines_ for letter in line_ if letter != " ") == letters
    first = max(1, *(len(one) for one, _ in rows))
    assert list(in_columns(rows, UNLIMITED)) == [f"{a:<{first}}  {b}".rstrip() for a, b in rows]


def test_a_sentence_goes_on_below_itself_and_no_line_is_wider() -> None:
    columns = [
        TextColumn("count", lambda row: "12"), TextColumn("bytes", lambda row: "1234567890"),
        TextColumn("why", lambda row: "because the broker closes the connection after it", right=False, wraps=True),
    ]  # fmt: skip
    for room in (30, 44, 60, 200):
        found = lines([{}], columns, Style(room, color=False, unicode=True))
        assert max(map(len, found)) <= max(room, 24)
        assert "…" not in "".join(found)
        assert all(word in " ".join(found) for word in "because the broker closes the connection after it".split())


def test_text_is_wrapped_for_any_width() -> None:
    """The help of a view in a terminal of 24 columns has no room for words beside its keys."""
    assert wrapped("a bc", 0) == wrapped("a bc", -9) == ["a", "bc"]
    assert wrapped("a bc", 1, "  ") == ["a", "  bc"]


def test_figures_have_units_behind_them_and_ids_no_separators() -> None:
    values = {
        "others_p95_ns": 3_540_000,
        "held_ms": 1_500,
        "commits": 12_345,
        "broker_id": 1_001,
        "clients": ["a", "b"],
        "share": 0.5,
    }
    assert figures(values) == "others p95 3.54ms; held 1.50s; commits 12,345; broker id 1001; clients a, b; share 0.5"
    assert figures({"topics": [str(at) for at in range(LISTED + 3)]}).endswith(" and 3 more")
    assert figures({"rtt_ns": "unknown", "ns": 5}) == "rtt ns unknown; ns 5"
    assert figures({"client_ips": ["::1"]}) == "client ip ::1"
    labels = {"violations": "requests before a throttle was over", "open_ns": "open for"}
    assert figures({"violations": 19, "open_ns": 10**9}, labels) == "requests before a throttle was over: 19; open for 1.00s"


def test_counts_have_their_plurals() -> None:
    assert (count(1, "packet"), count(2000, "packet"), count(2, "try", "tries")) == ("1 packet", "2,000 packets", "2 tries")
    assert [count(n, "packet") for n in (0, 1, 2000)] == ["0 packets", "1 packet", "2,000 packets"]


def test_a_narrow_column_has_the_room_that_a_wide_one_left() -> None:
    """A column that matters more went for want of room, and what mattered less and would have fitted with it."""
    columns = [
        TextColumn("client", str, right=False), TextColumn("verdicts", str, right=False, rank=1, whole=True),
        TextColumn("n", str, rank=2),
    ]  # fmt: skip
    texts = [["a", "w" * 30, "7"]]
    assert fitted(columns, texts, 20)[1:] == [0, 1]
    assert fitted(columns, texts, 60)[1:] == [30, 1]


def test_times_have_the_digits_they_need() -> None:
    assert instant(BASE_NS, 10**9) == "2026-11-21T06:00:00Z"
    assert instant(BASE_NS + 1_500_000, 10**6) == "2026-11-21T06:00:00.001Z"
    assert instant(BASE_NS + 7) == "2026-11-21T06:00:00.000000007Z"
