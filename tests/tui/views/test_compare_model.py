"""What two exchanges have in common and what not."""

import pytest

from kcap.tui.views import compare_model as model
from tests.tui.driving import book_of
from tests.tui.views.laws import sheet_holds

JAVA = "java-transactions.pcap"


def of_api(api: str, *numbers: int) -> list:
    """Exchanges of an API, by their order in the capture."""
    book = book_of(JAVA)
    names = book.snapshot().table(["api"]).column(0).to_pylist()
    rows = [at for at, name in enumerate(names) if name == api]
    return [book.frames(rows[number]) for number in numbers]


def test_an_exchange_has_no_difference_from_itself() -> None:
    (one,) = of_api("TxnOffsetCommit", 0)
    rows, more = model.message_rows(one, one)
    assert rows
    assert not more
    assert not [row for row in rows if row["differs"]]
    assert {row["more"] for row in model.timing_rows(one.row, one.row)} <= {"0", ""}


def test_the_sides_are_mirror_images() -> None:
    one, other = of_api("TxnOffsetCommit", 0, 1)
    there, back = model.message_rows(one, other)[0], model.message_rows(other, one)[0]
    assert {(r["side"], r["field"], r["first"], r["second"]) for r in there} == {
        (r["side"], r["field"], r["second"], r["first"]) for r in back
    }
    apart = [row["apart"] for row in model.timing_rows(one.row, other.row)]
    assert apart == [-row["apart"] for row in model.timing_rows(other.row, one.row)]


def test_every_value_of_a_message_is_one_of_its_tree() -> None:
    (one,) = of_api("TxnOffsetCommit", 0)
    found = {path: text for path, text, _ in model.fields(one, "request")[0]}
    assert found["TransactionalId"] == "orders-tx-1"
    assert any(path.endswith(".Partitions[1].CommittedOffset") for path in found), "entries have the key that they carry"
    assert not any(path.endswith("count") for path in found)


def test_fields_stand_in_the_order_of_the_messages() -> None:
    pairs = model.paired([("a", "1", 1), ("b", "2", 2), ("d", "4", 4)], [("a", "1", 1), ("c", "3", 3), ("d", "5", 5)])
    assert [path for path, _, _ in pairs] == ["a", "c", "b", "d"]
    assert [(one is None, other is None) for _, one, other in pairs] == [
        (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("GroupId", ("", "GroupId")), ("header.ClientId", ("header", "ClientId")),
        ("Topics[a.b].Partitions[1].Offset", ("Topics[a.b]", "Partitions[1].Offset")), ("Topics[x.y]", ("", "Topics[x.y]")),
    ],
)  # fmt: skip
def test_a_path_is_cut_before_its_innermost_entry(path: str, parts: tuple[str, str]) -> None:
    assert model.split(path) == parts


def test_the_sheets_lead_to_the_exchanges() -> None:
    one, other = of_api("TxnOffsetCommit", 0, 1)
    for sheet in model.sheets(one, other):
        sheet_holds(sheet, JAVA, counts=False)
    assert "different requests" in model.sheets(one, of_api("Metadata", 0)[0])[0].note
    assert model.title(one.row, other.row).endswith(f" and .{other.row['exchange']}")


def test_secrets_stay_masked_and_are_compared_by_their_bytes() -> None:
    book = book_of("sasl-raw-tokens.pcap")
    from kcap.wire.text import MASKED

    table = book.snapshot().table(["api"]).column(0).to_pylist()
    rows = [at for at, name in enumerate(table) if name == "SaslAuthenticate"]
    for at in rows[:2]:
        found = book.frames(at)
        same, _ = model.message_rows(found, found)
        assert any(MASKED in row["first"] for row in same)
        assert not any(row["differs"] for row in same)
