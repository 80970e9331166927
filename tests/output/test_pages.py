"""Rows as Markdown and HTML: what a capture holds is never markup."""

import io
import re
from xml.etree import ElementTree as ET

import pyarrow as pa

from kcap.output.pages import Html, Markdown, breaking, in_words

EVIL = "<script>alert(1)</script>|`x`\n*y*&"
SCHEMA = pa.schema([("name", pa.string()), ("count", pa.int64()), ("latency_ns", pa.int64())]).with_metadata(
    {"kcap.table": "t"}
)
BATCH = pa.RecordBatch.from_pydict({"name": [EVIL, None], "count": [1, None], "latency_ns": [1_500_000, 0]}, schema=SCHEMA)


def written(kind: type[Html] | type[Markdown], *batches: pa.RecordBatch) -> str:
    sink = io.BytesIO()
    writer = kind(sink, SCHEMA)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue().decode()


def test_a_page_has_the_values_as_text() -> None:
    page = written(Html, BATCH, BATCH)
    assert "<script" not in page
    body = re.sub(r" class=\w", "", page[page.index("<table") : page.index("</table>") + 8])
    rows = [[cell.text or "" for cell in row] for row in ET.fromstring(body).iter("tr")]
    assert rows[0] == ["name", "count", "latency"]
    assert rows[1] == [EVIL.replace("\n", "\\n"), "1", "1.50ms"]
    assert rows[2][:2] == ["", ""]
    assert len(rows) == 5


def test_a_time_and_a_long_name_have_places_to_break() -> None:
    """A day apart from its time, words of a name apart from each other; short names stay as they are."""
    assert breaking("2026-11-21T07:42:12.122282Z") == "2026-11-21T<wbr>07:42:12.122282Z"
    assert breaking("CONCURRENT_TRANSACTIONS") == "CONCURRENT_<wbr>TRANSACTIONS"
    assert breaking("NOT_COORDINATOR") == "NOT_COORDINATOR"
    assert breaking("<b>_and_a_longer_name_") == "&lt;b&gt;_<wbr>and_<wbr>a_<wbr>longer_<wbr>name_<wbr>"


def test_names_in_a_table_of_rows_break_between_words() -> None:
    """An error or an API of up to twenty characters would push the last columns out of the page."""
    assert in_words("UNKNOWN_LEADER_EPOCH") == "UNKNOWN_<wbr>LEADER_<wbr>EPOCH"
    assert in_words("AssignReplicasToDirs") == "Assign<wbr>Replicas<wbr>To<wbr>Dirs"
    assert in_words("CreateTopics") == "CreateTopics"
    assert in_words("<aB_c>") == "&lt;aB_c&gt;"


def test_markdown_escapes_what_would_be_markup() -> None:
    head, rule, first, *rest = written(Markdown, BATCH).splitlines()
    assert (head, rule) == ("| name | count | latency |", "|---|---:|---:|")
    assert first.startswith("| \\<script\\>alert(1)\\</script\\>\\|\\`x\\`")
    assert len(rest) == 1


def test_no_rows_have_a_header_all_the_same() -> None:
    assert written(Markdown).count("\n") == 2
    assert written(Html).endswith("</tbody></table></div></body></html>\n")
    assert "<th>count</th>" in written(Html)


def test_a_page_begins_with_a_sentence_about_all_of_its_rows() -> None:
    page = written(Html, BATCH, BATCH)
    assert page.index("<h1>") < page.index("<p>4 rows.</p>") < page.index("<table")
