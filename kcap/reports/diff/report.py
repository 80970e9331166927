"""The report `diff`: compares two inputs.

In: captures or saved tables from before and after. Out: the report as plain values, which is its JSON form. Law: `rows` has
every comparison, differences first; `classes` has the figures of every class of both inputs; if there is no difference, the
sentence of the report says so.
"""

import tempfile
from contextlib import closing
from typing import Any, Final

from kcap.reports.definition import Row
from kcap.reports.diff.compare import ALPHA, class_words, compared, percentiles
from kcap.reports.diff.summaries import COLUMNS, SCOPES, Side, bounds, expressions, named_alike, sliced, span_of, summaries
from kcap.reports.plans import planned
from kcap.reports.source import Engine, ReportInput, engine_over, tables_of
from kcap.reports.text import count

NO_DIFFERENCE: Final = "no difference"
SPAN, SLICED = "span", "sliced"
FIRST, LENGTH = 9_123_456_701_234_567_801, 9_123_456_701_234_567_802
"""Placeholders in cached SQL for a capture's beginning and length in nanoseconds."""


def side_of(given: ReportInput, into: Engine | None = None) -> Side:
    """The summaries of an input, by SQL that is cached between runs. In the SQL, numbers that no capture has stand for the
    beginning and length of the capture. `into`: an engine to use instead of a new one.

    Raises as `engine_over` does.
    """
    with engine_over(given, COLUMNS, (), into=into) as (engine, names):

        def first_steps() -> dict[str, str]:
            rows = tables_of(engine, names, given).selected
            return {SPAN: engine.sql(span_of(rows)), SLICED: engine.sql(sliced(rows, FIRST, LENGTH))}

        def others() -> dict[str, str]:
            return {name: engine.sql(expression) for name, expression in expressions(engine.viewed(SLICED)).items()}

        decided = given.only, [(name, engine.columns(name)) for name in names]
        plan = planned(("diff, first steps", *decided), first_steps)
        (span,) = engine.rows(plan[SPAN])
        first, length = bounds(span)
        engine.derive(SLICED, plan[SLICED].replace(str(FIRST), str(first)).replace(str(LENGTH), str(length)))
        results = {name: engine.rows(sql) for name, sql in planned(("diff", *decided), others).items()}
        return summaries(results, given.captures, length)


def diff(before: ReportInput, after: ReportInput) -> Row:
    """Runs the report. Raises UsageError for what an input does not have, CaptureError if nothing can be read."""
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder, closing(Engine(folder)) as engine:
        return result(side_of(before, engine), side_of(after, engine))


def result(before: Side, after: Side) -> Row:
    """The report of two summaries."""
    before, after = named_alike(before, after)
    rows = compared(before, after)
    found = [row for row in rows if row["significant"]]
    tests = sum(row["p_value"] is not None for row in rows)
    kinds: dict[str, int] = {}
    for row in found:
        kinds[row["what"]] = kinds.get(row["what"], 0) + 1
    words = ", ".join(f"{number} {what}" for what, number in kinds.items())
    head = f"{len(found)} difference{'s' if len(found) > 1 else ''}: {words}" if found else NO_DIFFERENCE
    return {
        "report": "diff", "captures": [*before.captures, *after.captures], "rows": rows, "left_out": {},
        "before": {"captures": before.captures, "span_ns": before.span_ns},
        "after": {"captures": after.captures, "span_ns": after.span_ns},
        "sentence": f"{head} ({count(tests, 'test')}, family-wise error {ALPHA:.0%}, Holm)",
        "classes": classes(before, after),
    }  # fmt: skip


def classes(before: Side, after: Side) -> list[Row]:
    """Figures of each class: `before` and `after`, null if a capture lacks the class."""
    out: list[Row] = []
    for scope, names in SCOPES.items():
        keys = {key for side in (before, after) for key in side.classes if key[0] == scope}
        for key in sorted(keys, key=lambda one: [(value is None, str(value)) for value in one[1]]):
            who = dict(zip(names, key[1]))
            sides: dict[str, Any] = {}
            for label, side in (("before", before), ("after", after)):
                row = side.classes.get(key)
                sides[label] = None if row is None else figures(row, side)
            state = "new" if sides["before"] is None else "gone" if sides["after"] is None else "both"
            out.append({"scope": scope, "who": who, "class": class_words(who), "in": state, **sides})
    return out


def figures(row: Row, side: Side) -> Row:
    """Figures of a class in one capture."""
    beside = ("unanswered", "failed", "request_bytes", "response_bytes")
    rate = {"a_second": round(row["count"] * 1e9 / side.span_ns, 3)}
    return percentiles(row) | rate | {name: row[name] for name in beside}
