"""Charts of latencies: the histogram, and the figures over time.

In: the result of a report with a histogram. Out: SVG, a page around it, or a PNG. Law: the charts use only the result; SVG and
HTML need no library.
"""

from collections.abc import Callable
from importlib import import_module
from math import log10
from pathlib import Path
from typing import Any, Final

from kcap.errors import MissingExtraError, UsageError
from kcap.output.escaping import html_text
from kcap.output.grid import duration
from kcap.reports.definition import Row, counts_of
from kcap.reports.text import duration_short, time_of_day

WIDTH, HEIGHT, LEFT, TOP, FOOT = 860, 230, 70, 34, 34
COLORS: Final = {"p50_ns": "#2a7", "p99_ns": "#c53", "max_ns": "#999"}


def drawer(path: str) -> Callable[[str, Row, str], None]:
    """The function that draws a file with this name from a report and its HTML page.

    Raises UsageError for an unknown suffix, MissingExtraError if a library is missing.
    """
    found = DRAWERS.get(Path(path).suffix.lower())
    if found is None:
        raise UsageError(f"--plot {path!r}: the name must end in .svg, .html or .png")
    if found is draw_png:
        pyplot()
    return found


def svg(result: Row) -> str:
    """Both charts."""
    panels = [histogram(result)]
    series = result.get("over_time")
    if series and len(series["count"]) > 1:
        panels.append(over_time(series))
    body = "".join(f'<g transform="translate(0,{at * HEIGHT})">{panel}</g>' for at, panel in enumerate(panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(panels)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT * len(panels)}" font-family="sans-serif" font-size="11" role="img">'
        f'<rect class="b" width="100%" height="100%" fill="#fff"/>{body}</svg>'
    )


def text(x: float, y: float, value: str, anchor: str = "middle", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="#333">{html_text(value)}</text>'


def grid_line(y: float) -> str:
    """A line across a chart."""
    return f'<line class="g" x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'


def histogram(result: Row) -> str:
    """The histogram: one bar per class."""
    counts, edges = counts_of(result["rows"]), result["histogram_edges_ns"]
    most = max(counts, default=0) or 1
    step, room = (WIDTH - LEFT - 20) / len(counts or [0]), HEIGHT - TOP - FOOT
    out = [text(LEFT, 18, f"latency, {sum(counts):,} responses", "start", "bold"), text(LEFT - 6, TOP + 8, f"{most:,}", "end")]
    out += [text(LEFT - 6, TOP + room, "0", "end"), grid_line(TOP + room)]
    for at, count in enumerate(counts):
        high = count / most * room
        x, y = LEFT + at * step, TOP + room - high
        label = f"below {duration_short(edges[0])}" if at == 0 else f"from {duration_short(edges[at - 1])}"
        out.append(
            f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{step - 2:.1f}" height="{high:.1f}" fill="#47a">'
            f"<title>{label}: {count:,}</title></rect>"
        )
        if at:
            out.append(text(x, HEIGHT - 14, duration_short(edges[at - 1])))
    return "".join(out)


def over_time(series: Row) -> str:
    """p50, p99 and the slowest of each step, on a logarithmic scale."""
    values = [v for name in COLORS for v in series[name] if v]
    low, high = (log10(max(1, f(values))) for f in (min, max)) if values else (3.0, 6.0)
    span, room = max(high - low, 0.5), HEIGHT - TOP - FOOT
    step = (WIDTH - LEFT - 20) / len(series["count"])
    out = [text(LEFT, 18, f"over time, {duration(series['step_ns'])} a step", "start", "bold")]
    for part in range(3):
        level = low + span * part / 2
        y = TOP + room - room * part / 2
        out.append(grid_line(y))
        out.append(text(LEFT - 6, y + 4, duration(round(10**level)), "end"))
    whole = series["step_ns"] * len(series["count"])
    for part, anchor in enumerate(("start", "middle", "end")):
        at_ns = series["first_ns"] + whole * part // 2
        out.append(text(LEFT + (WIDTH - LEFT - 20) * part / 2, HEIGHT - 14, time_of_day(at_ns), anchor))
    for place, (name, color) in enumerate(COLORS.items()):
        out.append(f'<circle cx="{WIDTH - 190 + 60 * place}" cy="14" r="4" fill="{color}"/>')
        out.append(text(WIDTH - 182 + 60 * place, 18, name.removesuffix("_ns"), "start"))
        before = None
        for at, value in enumerate(series[name]):
            if not value or value < 0:
                before = None
                continue
            x, y = LEFT + (at + 0.5) * step, TOP + room - (log10(value) - low) / span * room
            if before is not None:
                out.append(f'<line x1="{before[0]:.1f}" y1="{before[1]:.1f}" x2="{x:.1f}" y2="{y:.1f}" stroke="{color}"/>')
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{color}"/>')
            before = x, y
    return "".join(out)


def write(path: str, data: bytes) -> None:
    """Writes a file, which appears when it is complete."""
    from kcap.output.sink import new_file

    with new_file(path) as file:
        file.write(data)


def pyplot() -> Any:
    """matplotlib's pyplot. Raises MissingExtraError if it is not installed."""
    try:
        import_module("matplotlib").use("Agg")
        return import_module("matplotlib.pyplot")
    except ImportError:
        raise MissingExtraError("a .png needs matplotlib (pip install matplotlib); .svg and .html need nothing") from None


def draw_png(path: str, result: Row, _page: str) -> None:
    """Draws the same two charts with matplotlib."""
    plot = pyplot()
    series = result.get("over_time")
    figure, axes = plot.subplots(2 if series else 1, 1, figsize=(9, 6), squeeze=False)
    counts, edges = counts_of(result["rows"]), result["histogram_edges_ns"]
    axes[0][0].bar(["<" + duration_short(edges[0]), *map(duration_short, edges)], counts)
    axes[0][0].set_title(f"latency, {sum(counts):,} responses")
    if series:
        for name, color in COLORS.items():
            points = [(at * series["step_ns"] / 1e9, value / 1e6) for at, value in enumerate(series[name]) if value]
            axes[1][0].plot([x for x, _ in points], [y for _, y in points], color=color, label=name.removesuffix("_ns"))
        axes[1][0].set(yscale="log", ylabel="ms", xlabel="s")
        axes[1][0].legend()
    figure.tight_layout()
    from kcap.output.sink import new_file

    with new_file(path) as file:
        figure.savefig(file, format="png")
    plot.close(figure)


DRAWERS: Final[dict[str, Callable[[str, Row, str], None]]] = {
    ".svg": lambda path, result, _page: write(path, svg(result).encode()),
    ".html": lambda path, _result, page: write(path, page.encode()),  # the page includes the charts
    ".png": draw_png,
}
