"""Counts over time of what findings are about: the same from files and by an engine."""

from pathlib import Path

from pyarrow import parquet

from kcap.reports.findings.courses import PARTS, by_engine, of_files, width_of
from kcap.reports.source import Engine
from tests.reports.findings.tables import MS, SECOND, START, exchange, many, table_of

SPAN = START, START + 24 * SECOND - 1
FILTERS = [
    "api == Produce", 'client_id == "other" and error != NONE', "", "topic == a", "latency_ns >= 2ms",
]  # fmt: skip


def test_files_and_engine_count_the_same(tmp_path: Path) -> None:
    rows = many(48, 0.5, topics=["a"], topic_ids=[None])
    rows += [exchange("C2", at, "Fetch", 20.0, 0.003, client_id="other", error="X") for at in (1, 2, 3)]
    rows.append(exchange("C2", 4, "Fetch", 23.9, None, topics=[], topic_ids=[]))
    orphan = exchange("C3", -1, "Fetch", 0) | {"request_first_ns": None, "response_first_ns": START + 5 * SECOND + MS}
    rows.append(orphan | {"client_id": "other", "error": "Y"})
    found = table_of("exchanges", rows)
    place = str(tmp_path / "exchanges.parquet")
    parquet.write_table(found, place)
    courses = of_files([place], FILTERS, SPAN)
    assert courses[0] == [2] * PARTS
    assert courses[1] == [0] * 5 + [1] + [0] * 14 + [3] + [0] * 3, "an orphan counts when its response came"
    assert courses[2] == [], "connections are no exchanges"
    assert courses[3] == courses[0]
    engine = Engine(str(tmp_path))
    engine.register("exchanges", found)
    assert by_engine(engine.rows, engine.viewed("exchanges"), FILTERS, SPAN) == courses
    engine.close()


def test_every_exchange_of_a_span_has_its_part() -> None:
    for length in (0, 1, 23, 24, 25, 10**9 + 7):
        assert length // width_of((0, length)) < PARTS


def test_what_lies_outside_of_the_span_counts_in_its_first_and_last_part(tmp_path: Path) -> None:
    """Rows of a saved table may be older or newer than its connections say."""
    found = table_of("exchanges", [exchange("C1", at, "Produce", time) for at, time in enumerate((-5, 0, 99))])
    place = str(tmp_path / "exchanges.parquet")
    parquet.write_table(found, place)
    engine = Engine(str(tmp_path))
    engine.register("exchanges", found)
    wanted = [[2] + [0] * (PARTS - 2) + [1]]
    assert of_files([place], FILTERS[:1], SPAN) == wanted
    assert by_engine(engine.rows, engine.viewed("exchanges"), FILTERS[:1], SPAN) == wanted
    engine.close()


def test_an_exchange_counts_when_its_request_was_sent(tmp_path: Path) -> None:
    found = table_of("exchanges", [exchange("C1", 1, "Produce", 3.5, 9.0)])
    place = str(tmp_path / "exchanges.parquet")
    parquet.write_table(found, place)
    engine = Engine(str(tmp_path))
    engine.register("exchanges", found)
    wanted = [[int(at == 3) for at in range(PARTS)]]
    assert of_files([place], FILTERS[:1], SPAN) == wanted
    assert by_engine(engine.rows, engine.viewed("exchanges"), FILTERS[:1], SPAN) == wanted
    engine.close()
