"""Writes docs/tables.md from the declarations of kcap's tables; --check reports whether the page is up to date.

usage: .venv/bin/python docs/tables_page.py [--check]
"""

import sys
from pathlib import Path

from kcap.cli.dictionary import columns, flags, markdown, tables, weirds
from kcap.columns import TABLES

PAGE = Path(__file__).with_name("tables.md")
HEAD = """# Tables

This page lists every table that kcap makes from a capture, with its columns. JSON keys, CSV headers, and the columns in
Parquet, Arrow,
pandas, DuckDB and Spark have these names and types. `kcap schema --tables`, `--columns TABLE`, `--flags` and `--weirds`
print the same information.

```
kcap schema --columns exchanges
kcap rows --table connections --columns connection,phase,rtt_min_ns pcaps/quota-3.9.pcap
```

Filters (`-Y`) and `-T fields -e` also accept the name under *Wireshark* for the column of its line.

`docs/tables_page.py` writes this page from the declarations.
"""


def page() -> str:
    """The page."""
    out = [HEAD, *markdown(tables()), ""]
    for table in TABLES:
        out += [f"## {table}", "", *markdown(columns(table)), ""]
    out += ["## Flags", "", *markdown(flags()), "", "## Oddities", "", *markdown(weirds())]
    return "\n".join(out).rstrip() + "\n"


def main() -> int:
    """Writes the page, or compares it."""
    if "--check" in sys.argv:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
        sys.stdout.write("docs/tables.md is up to date\n" if same else "docs/tables.md is old: run docs/tables_page.py\n")
        return 0 if same else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
