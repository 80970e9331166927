"""Where a report's tables come from: captures and what was saved of them tell the same."""

import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb import InterruptException
from pyarrow import parquet

import kcap
from kcap import limits
from kcap.analyzer import Options
from kcap.errors import CaptureError, UsageError
from kcap.filter.parse import parse
from kcap.reports import errors, latency, source, stats, throttle
from kcap.reports.definition import Report, ReportRequest
from kcap.reports.run import run
from kcap.reports.saved import saved_files, table_of
from kcap.reports.source import QUICK, Engine, Interrupted, ReportInput, engine_over

DUCKDB_THREADS = duckdb.connect().execute("SELECT current_setting('threads')").fetchall()[0][0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, pcaps: Path) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    capture = kcap.open(pcaps / "quota-3.9.pcap")
    parquet.write_table(capture.exchanges().to_arrow(), folder / "exchanges.parquet")
    parquet.write_table(capture.partitions().to_arrow(), folder / "partitions.parquet")
    return folder


@pytest.mark.parametrize("report", [latency.REPORT, stats.REPORT, throttle.REPORT, errors.REPORT], ids=lambda r: r.name)
@pytest.mark.parametrize("text", ["", "api == Produce and latency > 3ms"])
def test_a_capture_and_its_saved_rows_tell_the_same(report: Report, text: str, saved: Path, pcaps: Path) -> None:
    reported = run(report, ReportInput([str(pcaps / "quota-3.9.pcap")], only=parse(text)), ReportRequest())
    again = run(report, ReportInput([str(saved)], only=parse(text)), ReportRequest())
    assert reported["rows"] or (report.name == "errors" and text)
    assert reported | {"captures": []} == again | {"captures": []}


def test_filters_that_look_inside_work_while_a_capture_is_read(saved: Path, pcaps: Path) -> None:
    tree = parse("request.acks == 1")
    reported = run(latency.REPORT, ReportInput([str(pcaps / "quota-3.9.pcap")], only=tree), ReportRequest())
    assert [row["api"] for row in reported["rows"]] == ["Produce"]
    with pytest.raises(UsageError, match="no decoded bodies"):
        run(latency.REPORT, ReportInput([str(saved)], only=tree), ReportRequest())


def test_obedience_is_not_a_matter_of_the_filter(pcaps: Path) -> None:
    """Law: what else a client sent is looked up among all rows, whichever are shown."""
    path = str(pcaps / "quota-3.9.pcap")
    every = run(throttle.REPORT, ReportInput([path]), ReportRequest())["rows"]
    some = run(throttle.REPORT, ReportInput([path], only=parse("throttle > 0")), ReportRequest())["rows"]
    assert [row["violations"] for row in every] == [row["violations"] for row in some]


def test_inputs_that_do_not_go_together(saved: Path, pcaps: Path) -> None:
    with pytest.raises(UsageError, match="captures or of saved rows"):
        saved_files([str(saved), str(pcaps / "aiokafka.pcap")])
    assert saved_files([str(pcaps)]) is None
    with pytest.raises(UsageError, match="not among the saved tables: exchanges"):
        run(latency.REPORT, ReportInput([str(saved / "partitions.parquet")]), ReportRequest())


def test_columns_that_were_not_saved(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"api": ["Fetch"]}), tmp_path / "some.parquet")
    assert table_of(str(tmp_path / "some.parquet"))[0] == "exchanges"
    with pytest.raises(UsageError, match="no column"):
        run(latency.REPORT, ReportInput([str(tmp_path / "some.parquet")]), ReportRequest())


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(CaptureError, match=r"bad\.parquet"):
        run(latency.REPORT, ReportInput([str(tmp_path / "bad.parquet")]), ReportRequest())


def test_what_nobody_waits_for_ends(tmp_path: Path) -> None:
    """A sum that would take an hour, and all that is asked for behind it."""
    engine, raised = Engine(str(tmp_path)), []
    engine.register("some", pa.table({"n": range(100_000)}))
    engine.register("others", pa.table({"m": range(10_000_000)}))
    some = engine.viewed("some")
    pairs = some.cross_join(engine.viewed("others"))

    def ask() -> None:
        try:
            engine.rows(pairs.aggregate(total=(pairs.n * pairs.m % 7).sum()))
        except InterruptException as error:
            raised.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(0.5)
    assert not raised
    engine.interrupt()
    thread.join(30)
    assert len(raised) == 1
    with pytest.raises(Interrupted):
        engine.rows(some.limit(1))
    engine.close()


def test_a_bounded_engine_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be written is; what has to be in memory, as the values of quantiles, is computed with a larger bound, and no
    larger one than it takes."""
    numbers = pa.table({"number": range(2_000_000)})
    groups = "SELECT number % 500000 AS key, count(*) AS n FROM numbers GROUP BY 1 ORDER BY 1 LIMIT 3"
    quantiles = "SELECT quantile_cont(number, [0.5]) AS half, quantile_cont(number + 1, [0.5]) AS more FROM numbers"
    found, bound = [], "SELECT current_setting('memory_limit') AS bound"
    for memory, written in ((1 << 30, "1.0 GiB"), (16 << 20, "16.0 MiB")):
        monkeypatch.setattr(limits, "REPORT_ENGINE_BYTES", memory)
        with closing(Engine(str(tmp_path))) as engine:
            engine.register("numbers", numbers)
            found.append([engine.rows(groups)])
            assert engine.rows(bound) == [{"bound": written}]
            found[-1].append(engine.rows(quantiles))
            ((taken,),) = (row.values() for row in engine.rows(bound))
            assert taken in (["1.0 GiB"] if memory == 1 << 30 else [f"{16 << times}.0 MiB" for times in range(1, 5)])
    assert found[0] == found[1] == [
        [{"key": key, "n": 4} for key in range(3)], [{"half": [999_999.5], "more": [1_000_000.5]}],
    ]  # fmt: skip


def test_what_does_not_fit_the_largest_bound_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPORT_ENGINE_BYTES", 8 << 20)
    monkeypatch.setattr(limits, "REPORT_ENGINE_BYTES_MAX", 16 << 20)
    with closing(Engine(str(tmp_path))) as engine, pytest.raises(duckdb.OutOfMemoryException):
        engine.rows("SELECT quantile_cont(range, [0.5]) AS half FROM range(4000000)")


@pytest.mark.parametrize(("jobs", "cores", "alone"), [(0, 2, True), (1, 8, True), (0, 8, False), (2, 8, False)])
def test_one_thread_for_one_process_or_few_processors(
    jobs: int, cores: int, alone: bool, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "free_cores", lambda: cores)
    given = ReportInput([str(saved)], Options(jobs=jobs))
    with engine_over(given, ["api"], []) as (engine, _):
        threads = engine.rows("SELECT current_setting('threads') AS threads")[0]["threads"]
    assert threads == (1 if alone else DUCKDB_THREADS)


def test_an_engine_of_its_own_takes_one_thread_on_few_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "free_cores", lambda: 2)
    with closing(Engine(str(tmp_path))) as engine:
        assert engine.rows("SELECT current_setting('threads') AS threads") == [{"threads": 1}]


def test_statements_over_small_tables_are_planned_by_few_optimizers_and_give_the_same(tmp_path: Path) -> None:
    small, large = (str(tmp_path / f"{name}.parquet") for name in ("small", "large"))
    parquet.write_table(pa.table({"key": [n % 7 for n in range(500)], "n": range(500)}), small)
    parquet.write_table(pa.table({"n": range(200_000)}), large)
    off = "SELECT string_split(current_setting('disabled_optimizers'), ',') AS off"
    counted = "SELECT a.key, count(*) AS n FROM small AS a, small AS b WHERE a.n = b.n AND b.n > 3 GROUP BY 1 ORDER BY 1"
    with closing(Engine(str(tmp_path))) as engine:
        engine.define("small", [small])
        disabled = engine.rows(off)[0]["off"]
        assert "statistics_propagation" in disabled
        assert not {*QUICK} & {*disabled}
        quickly = engine.rows(counted)
        engine.define("large", [large])
        assert engine.rows(off)[0]["off"] == [""], "statements over large files have all of them"
        assert engine.rows(counted) == quickly
        engine.clear()
        engine.define("small", [small])
        assert "statistics_propagation" in engine.rows(off)[0]["off"]
