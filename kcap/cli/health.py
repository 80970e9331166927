"""`kcap health`: is this capture good enough to trust?"""

import json
import sys

import click

from kcap.cli.options import analyzer_options, inputs, paths_of


@click.command("health", short_help="How far the capture can be trusted.")
@inputs
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True, help="Output format."
)
def run(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    decode_as: tuple[str, ...],
    not_kafka: tuple[int, ...],
    form: str,
) -> int:
    """How far the capture can be trusted: holes, drops, cuts, oddities. A verdict for each point, and one for all."""
    from kcap.cli.output import report_failed
    from kcap.cli.progress import Progress
    from kcap.output.escaping import visible
    from kcap.reports.capture_quality import gather
    from kcap.reports.health import judge
    from kcap.session import Capture

    capture = Capture(paths_of(files, more_files), analyzer_options(decode_as, not_kafka))
    reading = capture.read(keep_connections=True)
    with Progress(reading, shown=True) as progress:
        reading.watch = progress.step
        evidence = gather(reading)
    verdict, sentence, points = judge(evidence)
    oddities = [
        {"kind": kind, "count": number, "first": evidence.sightings[kind]} for kind, number in evidence.weirds.most_common()
    ]
    if form == "json":
        rows = [{"point": p.name, "verdict": p.verdict, "sentence": p.sentence, **p.numbers} for p in points]
        names = [file.name for file in evidence.files]
        told = {"report": "health", "captures": names, "verdict": verdict, "sentence": sentence, "rows": rows}
        print(json.dumps(told | {"weirds": oddities, "left_out": {}}, ensure_ascii=False))
        return report_failed(reading)
    print(visible(sentence))
    print()
    marks = {"good": "ok", "care": "care", "bad": "BAD"}
    for point in points:
        print(visible(f"{marks[point.verdict]:<4}  {point.name:<15}  {point.sentence}"))
    if oddities:
        print("\noddities")
        width = max(len(str(oddity["kind"])) for oddity in oddities)
        for oddity in oddities:
            print(visible(f"{oddity['count']:>10,}  {oddity['kind']:<{width}}  {oddity['first']}"))
    sys.stdout.flush()
    return report_failed(reading)
