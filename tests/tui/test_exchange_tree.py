"""One exchange as a tree."""

from typing import Any

import pytest

from kcap.filter.parse import parse
from kcap.tui import exchange_tree
from kcap.tui.capture_model import CaptureModel, read_whole
from kcap.tui.exchange_tree import INSIDE, anatomy, bar, message
from kcap.tui.tree_lines import Item, Outline
from kcap.wire.text import MASKED
from tests.tui.conftest import PCAPS


def everything(items: list[Item], connection: Any = None) -> list[Item]:
    outline = Outline()
    outline.show(items)
    at = 0
    while at < len(outline.lines) and at < 3000:
        outline.set(at, wanted=True)
        at += 1
    return outline.lines


def text(items: list[Item]) -> str:
    return "\n".join("".join(part for part, _ in item.line) for item in items)


@pytest.mark.parametrize("name", ["java-transactions.pcap", "aiokafka.pcap", "kafka-0.8-clients.pcap", "broker-paused.pcap"])
def test_every_exchange_has_its_tree(name: str) -> None:
    """Law: nothing raises; the filters of lines read; bytes of a line lie inside those of the line above it."""
    filters: set[str] = set()
    with read_whole(str(PCAPS / name)) as book:
        for number in range(0, book.rows, 5):
            lines = everything(anatomy(book.frames(number)))
            filters |= {item.filter for item in lines if item.filter}
            for item in lines:
                assert all(part.isprintable() for part, _ in item.line)
    assert len(filters) > 50
    for by in filters:
        assert parse(by) is not None, by


def test_a_field_of_a_message_filters(book: CaptureModel) -> None:
    number = book.find(
        *((row := next(r for r in book.exchanges().to_pylist() if r["api"] == "Fetch"))["connection"], row["exchange"])
    )
    lines = everything(anatomy(book.frames(number), (book.table("connections") or book.exchanges()).to_pylist()[0]))
    (wait,) = [item for item in lines if item.name == "MaxWaitMs"]
    assert wait.filter == "api == Fetch && request.max_wait_ms == 500"
    assert wait.value == "500"
    assert wait.node is not None
    assert "min RTT" in text(lines)


def test_secrets_are_masked() -> None:
    with read_whole(str(PCAPS / "sasl-raw-tokens.pcap")) as book:
        rows = book.exchanges().to_pylist()
        for number, row in enumerate(rows):
            if row["api"] == "SaslToken":
                assert "a raw SASL token, which is a secret" in text(everything(anatomy(book.frames(number))))
                assert message(book.frames(number), "request") is None
    with read_whole(str(PCAPS / "java-transactions.pcap")) as book:
        assert MASKED not in text(everything(anatomy(book.frames(0))))


def test_time_is_shared_out() -> None:
    parts = [(10, "network", "·", "two"), (0, "queue", "▒", "care"), (90, "broker", "█", "one")]
    line = bar(parts, 40)
    assert [len(part) for part, _ in line] == [4, 36]
    assert "broker" in line[1][0]
    assert bar([(0, "broker", "█", "one")], 40) == []
    assert len(bar([(1, "network", "·", "two"), (10**9, "broker", "█", "one")], 40)[0][0]) == 1, "what is not nothing is seen"


def test_a_bar_names_the_wait_that_takes_the_time() -> None:
    """The list says `muted 983ms` or `poll 498ms` of exchanges whose bar said `broker` from end to end."""
    with read_whole(str(PCAPS / "quota-3.9.pcap")) as book:
        rows = book.exchanges().to_pylist()
        for column, word in INSIDE:
            for number, row in enumerate(rows):
                if (row[column] or 0) > 0.9 * (row["latency_ns"] or 0) > 0:
                    bars = next(line for line in text(anatomy(book.frames(number))).splitlines() if line.startswith("latency"))
                    assert f"▓ {word} ▓" in bars, bars
                    assert " broker " not in bars
                    break
            else:
                assert column == "throttle_ns", f"no exchange spends most of its time in {column}"


def test_one_without_an_answer() -> None:
    with read_whole(str(PCAPS / "broker-paused.pcap")) as book:
        number = next(at for at, row in enumerate(book.exchanges().to_pylist()) if row["outcome"] == "unanswered")
        assert "no response, waited" in text(anatomy(book.frames(number)))


def test_a_sentence_fits_a_narrow_terminal() -> None:
    words = "client order-in waits 360 ms in the broker, which appended its records, and may have waited for replicas it has"
    items = exchange_tree._sentence("why", words, 66, "care", name="why", by="api == Produce")
    lines = ["".join(text for text, _ in item.line) for item in items]
    assert len(lines) == 2
    assert lines[0].startswith("why     client")
    assert " ".join(" ".join(lines).split()) == f"why {words}"
    assert max(map(len, lines)) <= 76
    assert {(item.filter, item.value) for item in items} == {("api == Produce", words)}
    assert len({item.name for item in items}) == 2


@pytest.mark.parametrize("room", [40, 55, 76, 140])
def test_reasons_problems_and_the_bar_fit_their_pane(room: int) -> None:
    """Law: nothing of a reason or a problem is cut at the edge of the pane, however wide it is."""
    finding = {"id": "retransmission-bound", "severity": "medium", "filter": "client_ip == 10.0.0.1", "sentence": "lost " * 40}
    with read_whole(str(PCAPS / "java-transactions.pcap")) as book:
        number = next(at for at, row in enumerate(book.exchanges().to_pylist()) if (row["latency_ns"] or 0) > 10_000_000)
        items = anatomy(book.frames(number), findings=[finding], room=room)
    named = [item for item in items if item.name.split()[0] in ("why", "problem", "timing")]
    assert {item.name.split()[0] for item in named} == {"why", "problem", "timing"}
    assert max(2 + sum(len(text) for text, _ in item.line) for item in named) <= room
    said = " ".join(text(named).split())
    assert "retransmission-bound" in said
    assert said.count("lost") == 40
